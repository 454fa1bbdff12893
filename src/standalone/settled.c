/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/settled.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

enum { THREADS_MAX = 64 };

/* The third field of proc_pid_stat(5); the second, in parentheses, may hold anything. 0 for a thread that is gone. */
static char thread_state(int tid)
{
        _cleanup_(fclosep) FILE *file = NULL;
        char path[32], line[256];
        const char *name_end;

        snprintf(path, sizeof(path), "/proc/%d/stat", tid);
        file = fopen(path, "re");
        if (!file || !fgets(line, sizeof(line), file))
                return 0;
        name_end = strrchr(line, ')');
        return name_end && name_end[1] == ' ' ? name_end[2] : 0;
}

bool cgroup_has_settled(const char *cgroup)
{
        _cleanup_(fclosep) FILE *file = NULL;
        _cleanup_(freep) char *path = NULL;
        unsigned threads = 0;
        int tid;

        if (asprintf(&path, "%s/cgroup.threads", cgroup) < 0) {
                path = NULL;
                return false;
        }
        file = fopen(path, "re");
        if (!file)
                return false;

        while (fscanf(file, "%d", &tid) == 1) {
                char state = thread_state(tid);

                if (state == 'R' || state == 'D' || ++threads > THREADS_MAX)
                        return false;
        }
        return true;
}
