/* SPDX-License-Identifier: Apache-2.0 */
/* Starting one command: a new session in its own cgroup from its first instruction on, with nothing of the daemon's but what is
 * asked for: default signal dispositions and mask, umask 022, standard input from /dev/null, no other open file, and the daemon's
 * PATH, LANG and TZ with the policy's environment over them.
 *
 * The parent does not wait for the exec: the report tells, with an end of file once the command runs, or with the step that failed.
 * The caller's file descriptors 0 to 2 must be open.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <sys/resource.h>

#include "policy/policy.h"

struct spawn_request {
        const struct process_settings *settings;
        int cgroup_fd;       /* directory */
        int output_fd;       /* standard output and error */
        rlim_t open_files;   /* its soft limit of open files; 0: as it is */
        bool without_clone3; /* join the cgroup by writing to it, as on kernels before 5.7 */
};

enum spawn_step {
        SPAWN_FORK,
        SPAWN_CGROUP,
        SPAWN_OUTPUT,
        SPAWN_USER,
        SPAWN_DIRECTORY,
        SPAWN_EXEC,
};

struct spawn_failure {
        enum spawn_step step;
        int error; /* -errno */
};

struct spawned {
        pid_t pid;
        int pidfd;
        int report_fd; /* non-blocking */
};

/* Returns 0 and the caller owns both descriptors and has to reap the child, or -errno with the step in @ret_failure. */
int spawn(const struct spawn_request *request, struct spawned *ret_spawned, struct spawn_failure *ret_failure);

/* Returns 0 once the command runs (or its process is gone without a word), 1 and the failure, or -EAGAIN. */
int spawn_read_report(int report_fd, struct spawn_failure *ret_failure);

/* "cannot run /bin/nope: No such file or directory" */
char *spawn_failure_format(const struct spawn_failure *failure, const struct process_settings *settings, char *buffer, size_t size);
