/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/macros.h"

enum {
        FILEID_KERNFS = 0xfe, /* include/linux/exportfs.h: the handle is the 64-bit id */
        WALK_DEPTH_MAX = 16,
        WALK_CGROUPS_MAX = 65536,
};

/* mountinfo writes space, tab, newline and backslash as three octal digits. */
static void unescape_octal(char *text)
{
        char *out = text;

        for (const char *in = text; *in; out++) {
                if (in[0] == '\\' && strspn(in + 1, "01234567") >= 3) {
                        *out = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
                        in += 4;
                } else {
                        *out = *in++;
                }
        }
        *out = '\0';
}

/* "ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [OPTIONAL …] - TYPE SOURCE SUPER_OPTIONS" */
static bool parse_cgroup2_line(char *line, const char **ret_root, char **ret_mount_point)
{
        char *type = strstr(line, " - ");
        char *rest = line, *fields[5];

        if (!type || strncmp(type + 3, "cgroup2 ", strlen("cgroup2 ")) != 0)
                return false;
        *type = '\0';
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                fields[i] = strsep(&rest, " ");
                if (!fields[i] || !rest)
                        return false;
        }
        unescape_octal(fields[4]);
        *ret_root = fields[3];
        *ret_mount_point = fields[4];
        return true;
}

int cgroup_find_root_in(FILE *mountinfo, char **ret_path)
{
        _cleanup_(freep) char *line = NULL, *found = NULL;
        size_t size = 0;

        while (getline(&line, &size, mountinfo) > 0) {
                const char *root;
                char *mount_point;
                bool whole;

                if (!parse_cgroup2_line(line, &root, &mount_point))
                        continue;
                whole = strcmp(root, "/") == 0;
                if (found && !whole)
                        continue;
                free(found);
                found = strdup(mount_point);
                if (!found)
                        return -ENOMEM;
                if (whole)
                        break;
        }
        if (!found)
                return -ENOENT;

        *ret_path = TAKE_PTR(found);
        return 0;
}

int cgroup_find_root(char **ret_path)
{
        _cleanup_(fclosep) FILE *mountinfo = fopen("/proc/self/mountinfo", "re");

        if (!mountinfo)
                return -errno;
        return cgroup_find_root_in(mountinfo, ret_path);
}

/* Where an open directory is below @root. */
static int path_of_fd(const char *root, int fd, char **ret_path)
{
        char link[64], target[PATH_MAX];
        size_t root_length = strlen(root);
        char *path;
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';

        while (root_length > 0 && root[root_length - 1] == '/')
                root_length--;
        if (strncmp(target, root, root_length) != 0 || (target[root_length] != '/' && target[root_length] != '\0'))
                return -ENOENT;

        path = strdup(target[root_length] ? target + root_length : "/");
        if (!path)
                return -ENOMEM;
        *ret_path = path;
        return 0;
}

static int open_by_id(int root_fd, uint64_t id, int *ret_fd)
{
        union {
                struct file_handle handle;
                char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
        } buffer = { .handle = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
        int fd;

        memcpy(buffer.bytes + offsetof(struct file_handle, f_handle), &id, sizeof(id));
        fd = open_by_handle_at(root_fd, &buffer.handle, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return errno == ESTALE ? -ENOENT : -errno;
        *ret_fd = fd;
        return 0;
}

/* Finds the directory whose inode number is @id, which is how kernfs numbers inodes on 64-bit machines. Takes @fd over. */
static int walk_for_id(int fd, uint64_t id, unsigned depth, unsigned *budget, int *ret_fd)
{
        struct stat status;
        DIR *directory;
        int r = -ENOENT;

        if (fstat(fd, &status) < 0) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        if (status.st_ino == id) {
                *ret_fd = fd;
                return 0;
        }
        directory = fdopendir(fd);
        if (!directory) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        for (struct dirent *entry; depth > 0 && (entry = readdir(directory));) {
                int child;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || *budget == 0)
                        continue;
                (*budget)--;
                child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child < 0)
                        continue; /* removed meanwhile */
                r = walk_for_id(child, id, depth - 1, budget, ret_fd);
                if (r != -ENOENT)
                        break;
        }
        closedir(directory);
        return r;
}

int cgroup_path_by_id(const char *root, uint64_t id, char **ret_path)
{
        _cleanup_(close_fdp) int root_fd = -1, fd = -1;
        unsigned budget = WALK_CGROUPS_MAX;
        int r;

        root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                return -errno;

        r = open_by_id(root_fd, id, &fd);
        if (r < 0 && r != -ENOENT)
                r = walk_for_id(TAKE_FD(root_fd), id, WALK_DEPTH_MAX, &budget, &fd);
        if (r < 0)
                return r;
        return path_of_fd(root, fd, ret_path);
}

static int make_parents(const char *path)
{
        _cleanup_(freep) char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return 0;
}

static int require_cgroup2(const char *path)
{
        _cleanup_(freep) char *copy = strdup(path);
        struct statfs status;

        if (!copy)
                return -ENOMEM;
        while (statfs(copy, &status) < 0) {
                char *slash = strrchr(copy, '/');

                if (errno != ENOENT)
                        return -errno;
                if (!slash || slash == copy)
                        return -EINVAL;
                *slash = '\0';
        }
        return status.f_type == CGROUP2_SUPER_MAGIC ? 0 : -EINVAL;
}

int cgroup_make(const char *path)
{
        int r;

        if (path[0] != '/')
                return -EINVAL;
        r = require_cgroup2(path);
        if (r < 0)
                return r;
        r = make_parents(path);
        if (r < 0)
                return r;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

bool cgroup_is_inside(const char *inner, const char *outer)
{
        size_t length = strlen(outer);

        while (length > 0 && outer[length - 1] == '/')
                length--;
        return strncmp(inner, outer, length) == 0 && (inner[length] == '/' || inner[length] == '\0');
}

int cgroup_id(const char *cgroup, uint64_t *ret_id)
{
        struct stat status;

        if (stat(cgroup, &status) < 0)
                return -errno;
        if (!S_ISDIR(status.st_mode))
                return -ENOTDIR;
        *ret_id = status.st_ino;
        return 0;
}
