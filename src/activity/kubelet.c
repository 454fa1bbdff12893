/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/kubelet.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

enum {
        KUBELETS_MAX = 16, /* several nodes may be on one machine */
        WALK_DEPTH_MAX = 8,
        WALK_CGROUPS_MAX = 4096,
};

struct search {
        intmax_t kubelets[KUBELETS_MAX];
        size_t n_kubelets;
        unsigned budget;
        char path[PATH_MAX]; /* where it is; the root at first */
};

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

static bool is_kubelet(int proc_fd, const char *pid)
{
        char path[NAME_MAX + sizeof("/comm")], name[16] = "";
        _cleanup_(close_fdp) int fd = -1;
        struct stat status;
        ssize_t n;

        snprintf(path, sizeof(path), "%s/comm", pid);
        fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false; /* gone meanwhile */
        n = read(fd, name, sizeof(name));
        return n == (ssize_t)strlen("kubelet\n") && memcmp(name, "kubelet\n", (size_t)n) == 0 && fstat(fd, &status) == 0 &&
               status.st_uid == 0;
}

static int find_kubelets(const char *proc, struct search *search)
{
        _cleanup_(closedirp) DIR *directory = opendir(proc);

        if (!directory)
                return -errno;
        for (struct dirent *entry; search->n_kubelets < KUBELETS_MAX && (entry = readdir(directory));)
                if (entry->d_name[strspn(entry->d_name, "0123456789")] == '\0' && is_kubelet(dirfd(directory), entry->d_name))
                        search->kubelets[search->n_kubelets++] = strtoimax(entry->d_name, NULL, 10);
        return search->n_kubelets ? 0 : -ENOENT;
}

static bool has_kubelet(const struct search *search)
{
        _cleanup_(fclosep) FILE *file = NULL;
        char path[PATH_MAX];
        intmax_t pid;

        if (snprintf(path, sizeof(path), "%s/cgroup.procs", search->path) >= (int)sizeof(path))
                return false;
        file = fopen(path, "re");
        while (file && fscanf(file, "%jd", &pid) == 1)
                for (size_t i = 0; i < search->n_kubelets; i++)
                        if (search->kubelets[i] == pid)
                                return true;
        return false;
}

static bool is_for_pods(const char *name)
{
        return strstr(name, "kubepods");
}

/* Goes on in each cgroup below search->path, pods' ones left out. With @pods, looks only for a cgroup of pods. */
static int walk(struct search *search, unsigned depth, bool pods)
{
        _cleanup_(closedirp) DIR *directory = opendir(search->path);
        size_t length = strlen(search->path);

        for (struct dirent *entry; directory && depth > 0 && (entry = readdir(directory));) {
                int n;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                if (is_for_pods(entry->d_name)) {
                        if (pods)
                                return 0;
                        continue;
                }
                if (search->budget == 0)
                        return -ENOENT;
                search->budget--;
                n = snprintf(search->path + length, sizeof(search->path) - length, "/%s", entry->d_name);
                if ((size_t)n < sizeof(search->path) - length &&
                    ((!pods && has_kubelet(search)) || walk(search, depth - 1, pods) == 0))
                        return 0;
                search->path[length] = '\0';
        }
        return -ENOENT;
}

int kubelet_cgroup_find(const char *proc, const char *root, char **ret_cgroup)
{
        struct search search = { .budget = WALK_CGROUPS_MAX };
        _cleanup_(freep) char *cgroup = NULL;
        int r;

        r = find_kubelets(proc, &search);
        if (r < 0)
                return r;
        if (snprintf(search.path, sizeof(search.path), "%s", root) >= (int)sizeof(search.path))
                return -ENAMETOOLONG;
        if (has_kubelet(&search))
                return -EBUSY;
        r = walk(&search, WALK_DEPTH_MAX, false);
        if (r < 0)
                return r;
        cgroup = strdup(search.path);
        if (!cgroup)
                return -ENOMEM;
        search.budget = WALK_CGROUPS_MAX;
        if (walk(&search, WALK_DEPTH_MAX, true) == 0)
                return -EBUSY;

        *ret_cgroup = TAKE_PTR(cgroup);
        return 0;
}
