/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of one cgroup2 directory and of those below it: are there any, which one is the main process, signal or kill all. */
#pragma once

#include <sys/types.h>

/* Makes the cgroup if it is missing. Returns its directory, which the caller closes, or -errno. */
int cgroup_open(const char *path);

int cgroup_populated(int cgroup_fd); /* 1, 0, or -errno (-ENODEV: the cgroup was removed) */

/* The first process that leads a session, which is how spawn() starts one. Returns 0 or -ESRCH. */
int cgroup_find_main(int cgroup_fd, pid_t *ret_pid);

/* Sends @signal to every process, at most 16 levels down. Returns how many got it, or -errno. */
int cgroup_signal(int cgroup_fd, int signal);

/* Kills all at once where cgroup.kill exists (Linux 5.14); else SIGKILL to each until a pass finds none, 16 passes at most, so that a
 * caller tries again while the cgroup stays populated. Returns 0 or -errno. */
int cgroup_kill(int cgroup_fd);
int cgroup_kill_each(int cgroup_fd); /* the latter way */
