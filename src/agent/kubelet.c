/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubelet.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

enum { CGROUP_TEXT_MAX = 4096 };

static void closedirp(DIR **directory)
{
        if (*directory)
                closedir(*directory);
}

/* The first line of /proc/PID/FILE that begins with @prefix, without that. */
static bool read_line(const char *proc, const char *pid, const char *name, const char *prefix, char *line, int size)
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *path = NULL;

        if (asprintf(&path, "%s/%s/%s", proc, pid, name) < 0) {
                path = NULL;
                return false;
        }
        file = fopen(path, "re");
        while (file && fgets(line, size, file)) {
                size_t length = strlen(prefix);

                line[strcspn(line, "\n")] = '\0';
                if (strncmp(line, prefix, length) == 0) {
                        memmove(line, line + length, strlen(line + length) + 1);
                        return true;
                }
        }
        return false;
}

/* Whether @cgroup's list of processes has @pid in it. */
static bool has_process(const char *cgroup, long pid)
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *path = NULL;
        long member;

        if (asprintf(&path, "%s/cgroup.procs", cgroup) < 0) {
                path = NULL;
                return false;
        }
        file = fopen(path, "re");
        while (file && fscanf(file, "%ld", &member) == 1)
                if (member == pid)
                        return true;
        return false;
}

/* What a process in a cgroup namespace of its own is shown begins with as many ".." as it is deep: /../../system.slice/kubelet.service. No
 * kubelet runs below kubepods, so that the last of them leads to the root. */
static int cgroup_of(const char *proc, const char *root, const char *pid, char **ret_cgroup)
{
        _cleanup_(freep) char *cgroup = NULL;
        char line[CGROUP_TEXT_MAX];
        const char *path = line;

        if (!read_line(proc, pid, "cgroup", "0::", line, sizeof(line)))
                return -ENOENT;
        while (strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0'))
                path += 3;
        if (asprintf(&cgroup, "%s%s", root, strcmp(path, "/") == 0 ? "" : path) < 0) {
                cgroup = NULL;
                return -ENOMEM;
        }
        if (!has_process(cgroup, atol(pid)))
                return -ENOENT;
        *ret_cgroup = TAKE_PTR(cgroup);
        return 0;
}

static bool is_kubelet(const char *proc, const char *pid)
{
        char name[32];

        return pid[0] >= '1' && pid[0] <= '9' && read_line(proc, pid, "comm", "", name, sizeof(name)) &&
               strcmp(name, "kubelet") == 0;
}

int kubelet_find_cgroup(const char *proc, const char *root, char **ret_cgroup)
{
        _cleanup_(closedirp) DIR *directory = opendir(proc);
        struct dirent *entry;
        int r = -ENOENT;

        if (!directory)
                return -errno;
        while (r == -ENOENT && (entry = readdir(directory)))
                if (is_kubelet(proc, entry->d_name))
                        r = cgroup_of(proc, root, entry->d_name, ret_cgroup);
        return r;
}
