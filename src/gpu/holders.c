/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

enum { CGROUP_DEPTH_MAX = 16 };

struct pids {
        pid_t *list;
        size_t n, size;
};

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

static int pids_add(struct pids *pids, pid_t pid)
{
        if (pids->n == GPU_HOLDERS_PROCESSES_MAX)
                return -E2BIG;
        if (pids->n == pids->size) {
                size_t size = MAX(pids->size * 2, (size_t)64);
                pid_t *list = reallocarray(pids->list, size, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                pids->list = list;
                pids->size = size;
        }
        pids->list[pids->n++] = pid;
        return 0;
}

static int compare_pids(const void *a, const void *b)
{
        pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;

        return (left > right) - (left < right);
}

static int pids_finish(struct pids *pids, int r, pid_t **ret_pids)
{
        if (r < 0) {
                free(pids->list);
                return r;
        }
        if (pids->n > 0)
                qsort(pids->list, pids->n, sizeof(*pids->list), compare_pids);
        *ret_pids = pids->list;
        return (int)pids->n;
}

int gpu_holders_of_process(const char *proc, const struct gpu_majors *majors, pid_t pid, gpu_holder_found found, void *userdata)
{
        _cleanup_(closedirp) DIR *directory = NULL;
        char path[PATH_MAX];
        struct dirent *entry;

        snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
        directory = opendir(path);
        if (!directory)
                return errno == ENOENT ? -ESRCH : -errno;

        while ((entry = readdir(directory))) {
                struct gpu_node node;
                struct stat status;

                if (entry->d_name[0] == '.' || fstatat(dirfd(directory), entry->d_name, &status, 0) < 0 || !S_ISCHR(status.st_mode))
                        continue;
                node = gpu_node_of(majors, status.st_rdev);
                if (node.kind != GPU_NODE_NONE)
                        found(pid, atoi(entry->d_name), &node, userdata);
        }
        return 0;
}

static int read_procs(int cgroup_fd, struct pids *pids)
{
        _cleanup_(fclosep) FILE *file = NULL;
        int fd, r = 0;
        long pid;

        fd = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        file = fdopen(fd, "r");
        if (!file) {
                close_fd(fd);
                return -ENOMEM;
        }
        errno = 0;
        while (r == 0 && fscanf(file, "%ld", &pid) == 1)
                r = pids_add(pids, (pid_t)pid);
        return r == 0 && ferror(file) && errno != ENODEV ? -EIO : r;
}

/* A cgroup that is removed meanwhile has no processes. */
static int walk_cgroup(int parent_fd, const char *name, bool below, int depth, struct pids *pids)
{
        _cleanup_(closedirp) DIR *directory = NULL;
        struct dirent *entry;
        int fd, r;

        if (depth == CGROUP_DEPTH_MAX)
                return -ELOOP;
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return depth > 0 && errno == ENOENT ? 0 : -errno;
        directory = fdopendir(fd);
        if (!directory) {
                close_fd(fd);
                return -ENOMEM;
        }
        r = read_procs(dirfd(directory), pids);
        while (below && r >= 0 && (entry = readdir(directory)))
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                        r = walk_cgroup(dirfd(directory), entry->d_name, true, depth + 1, pids);
        return r;
}

int gpu_cgroup_processes(const char *cgroup, bool below, pid_t **ret_pids)
{
        struct pids pids = { 0 };
        int r = walk_cgroup(AT_FDCWD, cgroup, below, 0, &pids);

        return pids_finish(&pids, r, ret_pids);
}

int gpu_all_processes(const char *proc, pid_t **ret_pids)
{
        _cleanup_(closedirp) DIR *directory = opendir(proc);
        struct pids pids = { 0 };
        struct dirent *entry;
        int r = 0;

        if (!directory)
                return -errno;
        while (r >= 0 && (entry = readdir(directory))) {
                char *end;
                long pid = strtol(entry->d_name, &end, 10);

                if (pid > 0 && *end == '\0')
                        r = pids_add(&pids, (pid_t)pid);
        }
        return pids_finish(&pids, r, ret_pids);
}

int gpu_process_cgroup(const char *proc, pid_t pid, char **ret_path)
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *line = NULL;
        char path[PATH_MAX];
        size_t size = 0;

        snprintf(path, sizeof(path), "%s/%d/cgroup", proc, pid);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT ? -ESRCH : -errno;
        while (getline(&line, &size, file) > 0)
                if (strncmp(line, "0::", 3) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        *ret_path = strdup(line + 3);
                        return *ret_path ? 0 : -ENOMEM;
                }
        return -ESRCH;
}
