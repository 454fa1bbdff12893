/* SPDX-License-Identifier: Apache-2.0 */
/* A process as the target of a policy: started in a cgroup2 child of its own, stopped by its stop signal and, after stopTimeout,
 * SIGKILL to the whole cgroup.
 *
 * It runs as long as anything is in its cgroup, so that a command that puts itself into the background counts. The stop signal goes
 * to the main process, and to all that is left once that is gone or unknown.
 *
 * The daemon's exit leaves the process as it is; process_new() adopts what runs in its cgroup (its main process is the session leader
 * there; one that another daemon started has no exit status to report). Exits in quick succession are answered with a growing delay
 * before the next start (100 ms, doubled up to 1 m; 10 s of running or new settings clear it). Callbacks come from the event loop,
 * never from within a call, and must not free the process.
 *
 * Output goes to the journal, or where there is none to the daemon's standard error; or to a log file, which is opened for appending
 * at each start and kept open by the process, so that rotation has to copy and truncate it (logrotate: copytruncate).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "policy/policy.h"

struct process;

enum process_state {
        PROCESS_STOPPED,
        PROCESS_DELAYED, /* to be started once the delay after a crash has passed */
        PROCESS_RUNNING,
        PROCESS_STOPPING,
};

struct process_exit {
        bool asked_for; /* it ended because of process_stop() */
        int error;      /* -errno when it could not be started, else 0 */
        int status;     /* as from waitid: exit code or signal; -1 where unknown */
        bool signaled;
        char message
                [256]; /* for people: "exited with status 1", "killed by SIGSEGV", "cannot run /bin/nope: No such file or directory" */
};

struct process_callbacks {
        /* It ran, since @at_ns on the monotonic clock: it may have done much before this is told. */
        void (*started)(struct process *process, pid_t pid, uint64_t at_ns, void *userdata);
        void (*exited)(struct process *process, const struct process_exit *exit, void *userdata); /* the cgroup is empty */
};

struct process_config {
        sd_event *event;
        const char *name;     /* the policy's */
        const char *cgroup;   /* directory of the target's own cgroup, made when it starts, with those above it */
        const char *log_file; /* output is appended to it, made 0640; NULL: to the journal under the identifier "lull-NAME" */
        rlim_t open_files;    /* the target's soft limit of open files, where the daemon has raised its own; 0: as the daemon's */
        const struct process_settings *settings; /* copied */
};

/* Returns 0, -EINVAL for a @cgroup that is not on a cgroup2 mount, or -errno. */
/* Whether something runs in the cgroup @cgroup, which process_new() would adopt. */
bool process_runs_in(const char *cgroup);

int process_new(const struct process_config *config, const struct process_callbacks *callbacks, void *userdata,
                struct process **ret_process);
/* Leaves the process and its cgroup alone; a child of this daemon is still reaped. Accepts NULL, returns NULL. */
struct process *process_free(struct process *process);
DEFINE_CLEANUP(struct process, process_free)
/* Used from the next start on; the stop signal and timeout at once. */
int process_update(struct process *process, const struct process_settings *settings);

/* Starts it, now or once it has stopped or its delay has passed; does nothing when it runs. Failures arrive as exited(), and started()
 * comes once the command itself runs. */
void process_start(struct process *process);
/* Stops it; a start asked for meanwhile waits for the end. Does nothing when it is stopped; a delayed start is given up at once, without
 * exited(). */
void process_stop(struct process *process);

/* These two accept NULL: a process that was never made is stopped. */
enum process_state process_state(const struct process *process);
const char *process_state_to_string(enum process_state state);               /* "stopped", "delayed", "running", "stopping" */
pid_t process_pid(const struct process *process);                            /* of the main process, or 0 */
const struct process_exit *process_last_exit(const struct process *process); /* NULL: none since the daemon started */
/* How many quick exits in a row, and when the next start may happen (monotonic, 0: at once). */
unsigned process_crashes(const struct process *process);
uint64_t process_start_after_ns(const struct process *process);
