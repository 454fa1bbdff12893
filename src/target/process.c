/* SPDX-License-Identifier: Apache-2.0 */
#include "target/process.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/time.h"
#include "target/cgroup_control.h"
#include "target/output.h"
#include "target/process_settings.h"
#include "target/spawn.h"

enum {
        DELAY_FIRST_MS = 100,
        DELAY_MAX_MS = 60 * 1000,
        DELAY_DOUBLINGS_MAX = 10, /* enough to be past the most */
        STEADY_SECONDS = 10,      /* a process that ran for as long did not crash at its start */
        KILL_AGAIN_SECONDS = 1,
};

struct process {
        char *name, *cgroup, *log_file;
        struct process_settings settings;
        rlim_t open_files;
        struct process_callbacks callbacks;
        void *userdata;
        sd_event *event;

        enum process_state state;
        bool stop_asked;   /* in the present run */
        bool start_wanted; /* as soon as it has stopped */
        bool kill_failed;  /* has been said */
        uint64_t started_ns;
        struct process_exit exit; /* of the present run, as far as it is known */

        int cgroup_fd;
        bool cgroup_was_killed;         /* see run_command() */
        sd_event_source *cgroup_source; /* inotify on cgroup.events */
        pid_t main_pid;
        int main_fd; /* pidfd, -1 when the main process is gone or unknown */
        sd_event_source *main_source;
        int report_fd; /* of spawn(), until the command runs */
        sd_event_source *report_source;
        sd_event_source *timer;  /* DELAYED: start; STOPPING: kill */
        sd_event_source *settle; /* what was found within a call, to be told from the event loop */

        unsigned crashes;
        uint64_t start_after_ns;
        struct process_exit last_exit;
        bool has_last_exit;
};

static void forget_main(struct process *process)
{
        process->main_source = sd_event_source_disable_unref(process->main_source);
        process->main_fd = close_fd(process->main_fd);
        process->main_pid = 0;
}

static void forget_report(struct process *process)
{
        process->report_source = sd_event_source_disable_unref(process->report_source);
        process->report_fd = close_fd(process->report_fd);
}

static void arm_timer(struct process *process, uint64_t at_ns)
{
        sd_event_source_set_time(process->timer, at_ns / NSEC_PER_USEC);
        sd_event_source_set_enabled(process->timer, SD_EVENT_ONESHOT);
}

static void reset_exit(struct process *process)
{
        process->exit = (struct process_exit){ .status = -1 };
}

static void fail_start(struct process *process, int error, const char *message)
{
        process->exit.error = error;
        snprintf(process->exit.message, sizeof(process->exit.message), "%s", message);
}

static uint64_t crash_delay_ns(unsigned crashes)
{
        if (crashes > DELAY_DOUBLINGS_MAX)
                return DELAY_MAX_MS * NSEC_PER_MSEC;
        return MIN((uint64_t)DELAY_FIRST_MS << (crashes - 1), (uint64_t)DELAY_MAX_MS) * NSEC_PER_MSEC;
}

/* The run is over: nothing is left in the cgroup and the main process is reaped. */
static void finish(struct process *process)
{
        uint64_t now_ns = now_monotonic_ns();

        forget_report(process);
        if (process->exit.message[0] == '\0')
                snprintf(process->exit.message, sizeof(process->exit.message),
                         "ended; its status is unknown, since another daemon had started it");
        process->exit.asked_for = process->stop_asked;
        process->last_exit = process->exit;
        process->has_last_exit = true;

        if (now_ns - process->started_ns >= STEADY_SECONDS * NSEC_PER_SEC)
                process->crashes = 0;
        else if (!process->stop_asked)
                process->crashes++;
        process->start_after_ns = process->crashes > 0 && !process->stop_asked ? now_ns + crash_delay_ns(process->crashes) : 0;

        process->state = process->start_wanted ? PROCESS_DELAYED : PROCESS_STOPPED;
        sd_event_source_set_enabled(process->timer, SD_EVENT_OFF);
        if (process->start_wanted)
                arm_timer(process, now_ns);
        process->start_wanted = false;
        process->callbacks.exited(process, &process->last_exit, process->userdata);
}

static void read_report(struct process *process)
{
        struct spawn_failure failure;
        int r;

        if (process->report_fd < 0)
                return;
        r = spawn_read_report(process->report_fd, &failure);
        if (r == -EAGAIN)
                return;

        forget_report(process);
        if (r > 0) {
                char message[sizeof(process->exit.message)];

                fail_start(process, failure.error, spawn_failure_format(&failure, &process->settings, message, sizeof(message)));
        } else if (r == 0) {
                process->callbacks.started(process, process->main_pid, process->started_ns, process->userdata);
        }
}

static void describe_exit(struct process_exit *exit, const siginfo_t *info)
{
        exit->status = info->si_status;
        exit->signaled = info->si_code != CLD_EXITED;
        if (!exit->signaled)
                snprintf(exit->message, sizeof(exit->message), "exited with status %d", exit->status);
        else if (sigabbrev_np(exit->status))
                snprintf(exit->message, sizeof(exit->message), "killed by SIG%s", sigabbrev_np(exit->status));
        else
                snprintf(exit->message, sizeof(exit->message), "killed by signal %d", exit->status);
}

/* Notes the main process's end. One that is not our child has no status for us. */
static void reap_main(struct process *process)
{
        struct pollfd poll_fd = { .fd = process->main_fd, .events = POLLIN };
        siginfo_t info = { 0 };

        if (process->main_fd < 0 || poll(&poll_fd, 1, 0) <= 0)
                return;
        if (waitid(P_PIDFD, (id_t)process->main_fd, &info, WEXITED | WNOHANG) == 0) {
                if (info.si_pid == 0)
                        return; /* not yet for its parent to see */
                if (process->exit.error == 0)
                        describe_exit(&process->exit, &info);
                if (process->exit.signaled && process->exit.status == SIGKILL)
                        process->cgroup_was_killed = true;
        }
        forget_main(process);
        if (process->state == PROCESS_STOPPING)
                cgroup_signal(process->cgroup_fd, process->settings.stop_signal);
}

static bool cgroup_is_empty(const struct process *process)
{
        int r = process->cgroup_fd < 0 ? 0 : cgroup_populated(process->cgroup_fd);

        return r == 0 || r == -ENODEV;
}

/* Looks at all there is to see, in the order in which it must have happened. */
static void settle(struct process *process)
{
        if (process->state != PROCESS_RUNNING && process->state != PROCESS_STOPPING)
                return;
        read_report(process);
        reap_main(process);
        if (process->main_fd < 0 && cgroup_is_empty(process))
                finish(process);
}

static int on_settle(sd_event_source *source _unused_, void *userdata)
{
        settle(userdata);
        return 0;
}

static int on_fd(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        settle(userdata);
        return 0;
}

static int on_cgroup_event(sd_event_source *source _unused_, const struct inotify_event *event _unused_, void *userdata)
{
        settle(userdata);
        return 0;
}

static int watch_main(struct process *process, pid_t pid, int *pidfd)
{
        int r = sd_event_add_io(process->event, &process->main_source, *pidfd, EPOLLIN, on_fd, process);

        if (r < 0)
                return r;
        process->main_pid = pid;
        process->main_fd = TAKE_FD(*pidfd);
        return 0;
}

static void close_cgroup(struct process *process)
{
        process->cgroup_source = sd_event_source_disable_unref(process->cgroup_source);
        process->cgroup_fd = close_fd(process->cgroup_fd);
}

/* Opens the cgroup, which somebody may have removed since it was opened last, and follows its events. */
static int open_cgroup(struct process *process)
{
        _cleanup_(freep) char *events = NULL;
        int fd, r;

        if (process->cgroup_source && cgroup_populated(process->cgroup_fd) >= 0)
                return 0;
        close_cgroup(process);

        fd = cgroup_open(process->cgroup);
        if (fd < 0)
                return fd;
        process->cgroup_fd = fd;
        if (asprintf(&events, "%s/cgroup.events", process->cgroup) < 0) {
                events = NULL;
                return -ENOMEM;
        }
        r = sd_event_add_inotify(process->event, &process->cgroup_source, events, IN_MODIFY, on_cgroup_event, process);
        return MIN(r, 0);
}

/* Once somebody has written to cgroup.kill, the kernel kills whatever clone3() places into that cgroup: cgroup_css_set_fork() notes the
 * kill_seq of the parent's cgroup, and cgroup_post_fork() compares it with the child's (kernel/cgroup/cgroup.c, seen on 6.18). So after
 * any SIGKILL the child joins by itself, which is slower. */
static int run_command(struct process *process)
{
        _cleanup_(close_fdp) int output_fd = -1, pidfd = -1;
        char message[sizeof(process->exit.message)];
        struct spawn_failure failure;
        struct spawned spawned;
        int r;

        r = open_cgroup(process);
        if (r < 0) {
                snprintf(message, sizeof(message), "cannot make cgroup %s: %s", process->cgroup, strerror(-r));
                fail_start(process, r, message);
                return r;
        }
        r = output_open(process->name, process->log_file, &output_fd);
        if (r < 0) {
                snprintf(message, sizeof(message), "cannot open log file %s: %s", process->log_file, strerror(-r));
                fail_start(process, r, message);
                return r;
        }
        r = spawn(&(struct spawn_request){ .settings = &process->settings,
                                           .cgroup_fd = process->cgroup_fd,
                                           .output_fd = output_fd,
                                           .open_files = process->open_files,
                                           .without_clone3 = process->cgroup_was_killed },
                  &spawned, &failure);
        if (r < 0) {
                fail_start(process, r, spawn_failure_format(&failure, &process->settings, message, sizeof(message)));
                return r;
        }
        process->report_fd = spawned.report_fd;
        pidfd = spawned.pidfd;
        r = watch_main(process, spawned.pid, &pidfd);
        if (r >= 0)
                r = sd_event_add_io(process->event, &process->report_source, process->report_fd, EPOLLIN, on_fd, process);
        return r;
}

static void launch(struct process *process)
{
        process->state = PROCESS_RUNNING;
        process->stop_asked = false;
        process->kill_failed = false;
        process->started_ns = now_monotonic_ns();
        reset_exit(process);
        if (run_command(process) < 0)
                sd_event_source_set_enabled(process->settle, SD_EVENT_ONESHOT);
}

static void kill_all(struct process *process)
{
        int r = cgroup_kill(process->cgroup_fd);

        process->cgroup_was_killed = true;
        if (r < 0 && r != -ENODEV && !process->kill_failed) {
                process->kill_failed = true;
                log_error("policy \"%s\": cannot kill what runs in %s: %s", process->name, process->cgroup, strerror(-r));
        }
        arm_timer(process, now_monotonic_ns() + KILL_AGAIN_SECONDS * NSEC_PER_SEC);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct process *process = userdata;

        if (process->state == PROCESS_DELAYED)
                launch(process);
        else if (process->state == PROCESS_STOPPING)
                kill_all(process);
        return 0;
}

void process_start(struct process *process)
{
        switch (process->state) {
        case PROCESS_STOPPED:
                if (process->start_after_ns > now_monotonic_ns()) {
                        process->state = PROCESS_DELAYED;
                        arm_timer(process, process->start_after_ns);
                } else {
                        launch(process);
                }
                break;
        case PROCESS_STOPPING:
                process->start_wanted = true;
                break;
        case PROCESS_DELAYED:
        case PROCESS_RUNNING:
                break;
        }
}

void process_stop(struct process *process)
{
        process->start_wanted = false;
        if (process->state == PROCESS_DELAYED) {
                sd_event_source_set_enabled(process->timer, SD_EVENT_OFF);
                process->state = PROCESS_STOPPED;
        }
        if (process->state != PROCESS_RUNNING)
                return;

        process->state = PROCESS_STOPPING;
        process->stop_asked = true;
        if (process->main_fd >= 0)
                syscall(SYS_pidfd_send_signal, process->main_fd, process->settings.stop_signal, NULL, 0);
        else
                cgroup_signal(process->cgroup_fd, process->settings.stop_signal);
        arm_timer(process, now_monotonic_ns() + process->settings.stop_timeout_ns);
}

/* Takes on what an earlier daemon left running. Where there is nothing, nothing is made or kept open either: thousands of policies may
 * never be asked for. */
static int adopt(struct process *process)
{
        _cleanup_(close_fdp) int pidfd = -1;
        pid_t pid;
        int r;

        if (access(process->cgroup, F_OK) < 0)
                return errno == ENOENT ? 0 : -errno;
        r = open_cgroup(process);
        if (r < 0)
                return r;
        r = cgroup_populated(process->cgroup_fd);
        if (r <= 0) {
                close_cgroup(process);
                return r;
        }
        process->state = PROCESS_RUNNING;
        process->started_ns = now_monotonic_ns();
        reset_exit(process);

        if (cgroup_find_main(process->cgroup_fd, &pid) < 0)
                return 0;
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        return pidfd < 0 ? 0 : watch_main(process, pid, &pidfd);
}

bool process_runs_in(const char *cgroup)
{
        _cleanup_(close_fdp) int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 && cgroup_populated(fd) > 0;
}

static int add_sources(struct process *process)
{
        int r;

        /* An accuracy of 1 us: the default of 250 ms would round every delay. */
        r = sd_event_add_time(process->event, &process->timer, CLOCK_MONOTONIC, 0, 1, on_timer, process);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(process->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_defer(process->event, &process->settle, on_settle, process);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(process->settle, SD_EVENT_OFF);
}

int process_new(const struct process_config *config, const struct process_callbacks *callbacks, void *userdata,
                struct process **ret_process)
{
        _cleanup_(process_freep) struct process *process = calloc(1, sizeof(*process));
        int r;

        if (!process)
                return -ENOMEM;
        process->cgroup_fd = process->main_fd = process->report_fd = -1;
        process->callbacks = *callbacks;
        process->userdata = userdata;
        process->open_files = config->open_files;
        process->event = sd_event_ref(config->event);
        process->name = strdup(config->name);
        process->cgroup = strdup(config->cgroup);
        process->log_file = config->log_file ? strdup(config->log_file) : NULL;
        if (!process->name || !process->cgroup || (config->log_file && !process->log_file) ||
            process_settings_copy(config->settings, &process->settings) < 0)
                return -ENOMEM;

        r = add_sources(process);
        if (r < 0)
                return r;
        r = adopt(process);
        if (r < 0)
                return r;

        *ret_process = TAKE_PTR(process);
        return 0;
}

static int on_left_child_exit(sd_event_source *source, int fd, uint32_t events _unused_, void *userdata _unused_)
{
        siginfo_t info;

        waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
        sd_event_source_disable_unref(source);
        return 0;
}

/* A child that outlives its policy is reaped by a source that belongs to the event loop. */
static void leave_main(struct process *process)
{
        sd_event_source *source;

        if (process->main_fd < 0 ||
            sd_event_add_io(process->event, &source, process->main_fd, EPOLLIN, on_left_child_exit, NULL) < 0)
                return;
        if (sd_event_source_set_io_fd_own(source, true) < 0 || sd_event_source_set_floating(source, true) < 0) {
                sd_event_source_unref(source);
                return;
        }
        sd_event_source_unref(source);
        process->main_fd = -1;
}

struct process *process_free(struct process *process)
{
        if (!process)
                return NULL;
        process->main_source = sd_event_source_disable_unref(process->main_source);
        leave_main(process);
        forget_main(process);
        forget_report(process);
        sd_event_source_disable_unref(process->cgroup_source);
        sd_event_source_disable_unref(process->timer);
        sd_event_source_disable_unref(process->settle);
        close_fd(process->cgroup_fd);
        sd_event_unref(process->event);
        process_settings_done(&process->settings);
        free(process->log_file);
        free(process->cgroup);
        free(process->name);
        free(process);
        return NULL;
}

int process_update(struct process *process, const struct process_settings *settings)
{
        struct process_settings copy;
        int r = process_settings_copy(settings, &copy);

        if (r < 0)
                return r;
        process_settings_done(&process->settings);
        process->settings = copy;
        process->crashes = 0;
        process->start_after_ns = 0;
        if (process->state == PROCESS_DELAYED)
                arm_timer(process, now_monotonic_ns());
        return 0;
}

enum process_state process_state(const struct process *process)
{
        return process ? process->state : PROCESS_STOPPED;
}

const char *process_state_to_string(enum process_state state)
{
        static const char *const names[] = {
                [PROCESS_STOPPED] = "stopped",
                [PROCESS_DELAYED] = "delayed",
                [PROCESS_RUNNING] = "running",
                [PROCESS_STOPPING] = "stopping",
        };
        static_assert(ELEMENTSOF(names) == PROCESS_STOPPING + 1, "a name for each");

        return names[state];
}

pid_t process_pid(const struct process *process)
{
        return process ? process->main_pid : 0;
}

const struct process_exit *process_last_exit(const struct process *process)
{
        return process->has_last_exit ? &process->last_exit : NULL;
}

unsigned process_crashes(const struct process *process)
{
        bool steady =
                process->state == PROCESS_RUNNING && now_monotonic_ns() - process->started_ns >= STEADY_SECONDS * NSEC_PER_SEC;

        return steady ? 0 : process->crashes;
}

uint64_t process_start_after_ns(const struct process *process)
{
        return process->start_after_ns > now_monotonic_ns() ? process->start_after_ns : 0;
}
