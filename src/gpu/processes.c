/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/macros.h"
#include "gpu/driver_library.h"

/* ---- which processes */

struct walk {
        struct process_list list;
        size_t allocated, cgroups;
};

static int add_pid(struct walk *walk, pid_t pid)
{
        if (pid == 0) {
                walk->list.foreign = true;
                return 0;
        }
        if (walk->list.n == PROCESSES_MAX)
                return -E2BIG;
        if (walk->list.n == walk->allocated) {
                size_t allocated = MAX(walk->allocated * 2, (size_t)64);
                pid_t *pids = reallocarray(walk->list.pids, allocated, sizeof(*pids));

                if (!pids)
                        return -ENOMEM;
                walk->list.pids = pids;
                walk->allocated = allocated;
        }
        walk->list.pids[walk->list.n++] = pid;
        return 0;
}

static int read_pids(struct walk *walk, int directory)
{
        int fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC), pid, r = 0;
        _cleanup_(fclosep) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

        if (!file) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        while (r >= 0 && fscanf(file, "%d", &pid) == 1)
                r = add_pid(walk, pid);
        if (r < 0)
                return r;
        return ferror(file) ? -errno : 0;
}

/* Takes @fd over. A cgroup that goes meanwhile has no processes. */
static int walk_cgroup(struct walk *walk, int fd, unsigned depth)
{
        DIR *directory;
        int r;

        if (walk->cgroups++ == PROCESS_CGROUPS_MAX || depth > PROCESS_DEPTH_MAX) {
                close_fd(fd);
                return -E2BIG;
        }
        r = read_pids(walk, fd);
        if (r == -ENODEV || r == -ENOENT || r == -EOPNOTSUPP) /* removed; or threaded, and its processes are those of one above */
                r = 0;
        directory = fdopendir(fd);
        if (!directory) {
                close_fd(fd);
                return -ENOMEM;
        }
        for (struct dirent *entry; r >= 0 && (entry = readdir(directory));) {
                int child;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                child = openat(dirfd(directory), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child >= 0)
                        r = walk_cgroup(walk, child, depth + 1);
                else if (errno != ENOENT)
                        r = -errno;
        }
        closedir(directory);
        return r;
}

static int by_pid(const void *a, const void *b)
{
        pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

        return (left > right) - (left < right);
}

int process_list_read(const char *cgroup, struct process_list *ret_list)
{
        struct walk walk = {};
        size_t n = 0;
        int fd, r;

        fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = walk_cgroup(&walk, fd, 0);
        if (r < 0) {
                process_list_done(&walk.list);
                return r;
        }

        if (walk.list.n)
                qsort(walk.list.pids, walk.list.n, sizeof(*walk.list.pids), by_pid);
        for (size_t i = 0; i < walk.list.n; i++) /* one that moved meanwhile is there twice */
                if (n == 0 || walk.list.pids[n - 1] != walk.list.pids[i])
                        walk.list.pids[n++] = walk.list.pids[i];
        walk.list.n = n;
        *ret_list = walk.list;
        return 0;
}

void process_list_done(struct process_list *list)
{
        free(list->pids);
        *list = (struct process_list){};
}

/* ---- has it changed */

int process_stamp_read(pid_t pid, struct process_stamp *ret_stamp)
{
        char path[32], text[1024], state;
        unsigned long long began, size;
        const char *end_of_name;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        n = read(fd, text, sizeof(text) - 1);
        close_fd(fd);
        if (n <= 0)
                return -ESRCH;
        text[n] = '\0';

        /* The name may have anything in it, parentheses too. state is field 3, starttime 22, vsize 23. */
        end_of_name = strrchr(text, ')');
        if (!end_of_name ||
            sscanf(end_of_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu %llu", &state,
                   &began, &size) != 3)
                return -EBADMSG;
        if (state == 'Z' || state == 'X')
                return -ESRCH;
        *ret_stamp = (struct process_stamp){ began, size };
        return 0;
}

/* ---- what has it mapped */

/* The kernel writes a newline in a path as \012, and nothing else so. */
static bool take_path(const char *path, struct mapping *mapping)
{
        static const char deleted[] = " (deleted)";
        size_t length = strlen(path), suffix = strlen(deleted);

        mapping->deleted = length > suffix && strcmp(path + length - suffix, deleted) == 0;
        if (mapping->deleted)
                length -= suffix;
        if (length >= sizeof(mapping->path))
                return false;
        memcpy(mapping->path, path, length);
        mapping->path[length] = '\0';
        return true;
}

bool mapping_parse(char *line, struct mapping *ret_mapping)
{
        unsigned long long begin, end, inode;
        unsigned major_number, minor_number;
        struct mapping mapping;
        char permissions[5];
        int path = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%llx-%llx %4s %*x %x:%x %llu %n", &begin, &end, permissions, &major_number, &minor_number, &inode,
                   &path) != 6 ||
            path == 0 || line[path] != '/' || permissions[2] != 'x')
                return false;
        if (!take_path(line + path, &mapping) || driver_library_vendor(mapping.path) < 0)
                return false;
        mapping.device = makedev(major_number, minor_number);
        mapping.inode = inode;
        mapping.begin = begin;
        mapping.end = end;
        *ret_mapping = mapping;
        return true;
}

static bool is_known(const struct mapping *mappings, size_t n, const struct mapping *mapping)
{
        for (size_t i = 0; i < n; i++)
                if (mappings[i].device == mapping->device && mappings[i].inode == mapping->inode)
                        return true;
        return false;
}

int process_mappings(pid_t pid, struct mapping ret_mappings[static PROCESS_LIBRARIES_MAX])
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *line = NULL;
        size_t size = 0, n = 0, read = 0;
        char path[32];
        ssize_t length;

        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT ? -ESRCH : -errno;
        errno = 0;
        while ((length = getline(&line, &size, file)) > 0) {
                struct mapping mapping;

                read += (size_t)length;
                if (read > PROCESS_MAPS_MAX)
                        return -E2BIG;
                if (!mapping_parse(line, &mapping) || is_known(ret_mappings, n, &mapping))
                        continue;
                if (n == PROCESS_LIBRARIES_MAX)
                        return -E2BIG;
                ret_mappings[n++] = mapping;
        }
        return ferror(file) ? -errno : (int)n;
}

/* "ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [OPTIONAL ...] - TYPE SOURCE SUPER_OPTIONS" */
static bool is_fuse_line(const char *line, const struct mapping *mapping)
{
        const char *type = strstr(line, " - ");
        unsigned major_number, minor_number;

        return type && strncmp(type + 3, "fuse", 4) == 0 && sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) == 2 &&
               makedev(major_number, minor_number) == mapping->device;
}

/* A file system that a process of the workload serves may let whoever opens its files wait for ever. */
static bool is_on_fuse(pid_t pid, const struct mapping *mapping)
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *line = NULL;
        size_t size = 0;
        char path[32];

        if (major(mapping->device) != 0) /* on a disk */
                return false;
        snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
        file = fopen(path, "re");
        while (file && getline(&line, &size, file) > 0)
                if (is_fuse_line(line, mapping))
                        return true;
        return false;
}

int mapping_open(pid_t pid, const struct mapping *mapping)
{
        _cleanup_(close_fdp) int fd = -1;
        struct stat file;
        char path[80];

        if (is_on_fuse(pid, mapping))
                return -EREMOTE;
        snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)mapping->begin,
                 (unsigned long long)mapping->end);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        if (fstat(fd, &file) < 0)
                return -errno;
        if (!S_ISREG(file.st_mode))
                return -ENOEXEC;
        return TAKE_FD(fd);
}
