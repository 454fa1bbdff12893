/* SPDX-License-Identifier: Apache-2.0 */
#include "target/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/macros.h"

enum { USER_GROUPS_MAX = 65536 }; /* NGROUPS_MAX of Linux */

struct credentials {
        uid_t uid;
        gid_t gid;
        gid_t *groups;
        int n_groups;
};

/* What the child needs, made before the fork: between fork and exec nothing may allocate or look names up. */
struct plan {
        const struct spawn_request *request;
        struct credentials credentials;
        char **environment;
        int null_fd, cgroup_procs_fd, report_fd;
};

static const char *const inherited[] = { "PATH", "LANG", "TZ" };

static bool sets_variable(char *const *environment, const char *name)
{
        size_t length = strlen(name);

        for (; *environment; environment++)
                if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
                        return true;
        return false;
}

static void free_environment(char **environment)
{
        for (size_t i = 0; environment && environment[i]; i++)
                free(environment[i]);
        free(environment);
}

/* The inherited variables that the policy does not set, then the policy's. */
static int make_environment(char *const *own, char ***ret_environment)
{
        size_t n = 0, n_own = 0;
        char **environment;

        while (own[n_own])
                n_own++;
        environment = calloc(ELEMENTSOF(inherited) + n_own + 1, sizeof(*environment));
        if (!environment)
                return -ENOMEM;

        for (size_t i = 0; i < ELEMENTSOF(inherited); i++) {
                const char *value = getenv(inherited[i]);

                if (!value || sets_variable(own, inherited[i]))
                        continue;
                if (asprintf(&environment[n], "%s=%s", inherited[i], value) < 0) {
                        environment[n] = NULL;
                        free_environment(environment);
                        return -ENOMEM;
                }
                n++;
        }
        for (size_t i = 0; i < n_own; i++, n++) {
                environment[n] = strdup(own[i]);
                if (!environment[n]) {
                        free_environment(environment);
                        return -ENOMEM;
                }
        }
        *ret_environment = environment;
        return 0;
}

/* @user is a name, or the number of a user that has a name. */
static int look_user_up(const char *user, struct credentials *ret_credentials)
{
        _cleanup_(freep) gid_t *groups = NULL;
        struct passwd *entry;
        int n_groups = 0;

        errno = 0;
        entry = getpwnam(user);
        if (!entry && user[0] && strspn(user, "0123456789") == strlen(user))
                entry = getpwuid((uid_t)strtoul(user, NULL, 10));
        if (!entry)
                return errno && errno != ENOENT ? -errno : -ESRCH;

        getgrouplist(entry->pw_name, entry->pw_gid, NULL, &n_groups);
        if (n_groups < 0 || n_groups > USER_GROUPS_MAX)
                return -EOVERFLOW;
        groups = calloc((size_t)n_groups + 1, sizeof(*groups));
        if (!groups)
                return -ENOMEM;
        if (getgrouplist(entry->pw_name, entry->pw_gid, groups, &n_groups) < 0)
                return -EAGAIN; /* it was given another group in between */

        *ret_credentials = (struct credentials){
                .uid = entry->pw_uid, .gid = entry->pw_gid, .groups = TAKE_PTR(groups), .n_groups = n_groups
        };
        return 0;
}

static void plan_done(struct plan *plan)
{
        free(plan->credentials.groups);
        free_environment(plan->environment);
        close_fd(plan->null_fd);
        close_fd(plan->cgroup_procs_fd);
        close_fd(plan->report_fd);
}

static int plan_make(const struct spawn_request *request, struct plan *plan, enum spawn_step *ret_step)
{
        int r;

        *ret_step = SPAWN_USER;
        if (request->settings->user) {
                r = look_user_up(request->settings->user, &plan->credentials);
                if (r < 0)
                        return r;
        }

        *ret_step = SPAWN_CGROUP;
        plan->cgroup_procs_fd = openat(request->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (plan->cgroup_procs_fd < 0)
                return -errno;

        *ret_step = SPAWN_FORK;
        plan->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (plan->null_fd < 0)
                return -errno;
        return make_environment(request->settings->environment, &plan->environment);
}

static int become_user(const struct credentials *credentials)
{
        if (setgroups((size_t)credentials->n_groups, credentials->groups) < 0)
                return -errno;
        if (setresgid(credentials->gid, credentials->gid, credentials->gid) < 0)
                return -errno;
        if (setresuid(credentials->uid, credentials->uid, credentials->uid) < 0)
                return -errno;
        return 0;
}

static void reset_signals(void)
{
        sigset_t none;

        for (int number = 1; number < _NSIG; number++)
                signal(number, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

static void limit_open_files(rlim_t soft)
{
        struct rlimit limit;

        if (soft == 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = soft;
        setrlimit(RLIMIT_NOFILE, &limit);
}

/* Runs in the child and returns only on failure. */
static int prepare_and_exec(const struct plan *plan, bool in_cgroup, enum spawn_step *ret_step)
{
        const struct process_settings *settings = plan->request->settings;
        int r;

        *ret_step = SPAWN_CGROUP;
        if (!in_cgroup && write(plan->cgroup_procs_fd, "0", 1) < 0)
                return -errno;

        setsid();
        reset_signals();
        umask(022);
        limit_open_files(plan->request->open_files);

        *ret_step = SPAWN_OUTPUT;
        if (dup2(plan->null_fd, STDIN_FILENO) < 0 || dup2(plan->request->output_fd, STDOUT_FILENO) < 0 ||
            dup2(plan->request->output_fd, STDERR_FILENO) < 0)
                return -errno;
        /* All descriptors of the daemon are close-on-exec; this is for those of a library that are not. */
        close_range(STDERR_FILENO + 1, UINT32_MAX, CLOSE_RANGE_CLOEXEC);

        *ret_step = SPAWN_USER;
        r = settings->user ? become_user(&plan->credentials) : 0;
        if (r < 0)
                return r;

        *ret_step = SPAWN_DIRECTORY;
        if (chdir(settings->working_directory ?: "/") < 0)
                return -errno;

        *ret_step = SPAWN_EXEC;
        environ = plan->environment; /* the command is looked for in its own PATH */
        execvp(settings->command[0], settings->command);
        return -errno;
}

_Noreturn static void run_child(const struct plan *plan, bool in_cgroup)
{
        struct spawn_failure failure;
        ssize_t n;

        failure.error = prepare_and_exec(plan, in_cgroup, &failure.step);
        do
                n = write(plan->report_fd, &failure, sizeof(failure));
        while (n < 0 && errno == EINTR);
        _exit(127);
}

/* clone(2): CLONE_INTO_CGROUP places the child before it runs, without the migration's lock (Linux 5.7). Whatever is refused here, by
 * the kernel or a seccomp filter, is tried the other way, which then tells what is wrong. */
static pid_t clone_into_cgroup(const struct plan *plan, int *ret_pidfd)
{
        int pidfd = -1;
        struct clone_args arguments = {
                .flags = CLONE_PIDFD | CLONE_INTO_CGROUP,
                .pidfd = (uintptr_t)&pidfd,
                .exit_signal = SIGCHLD,
                .cgroup = (uint64_t)plan->request->cgroup_fd,
        };
        long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (pid == 0)
                run_child(plan, true);
        if (pid > 0)
                *ret_pidfd = pidfd;
        return (pid_t)pid;
}

static int fork_child(const struct plan *plan, pid_t *ret_pid, int *ret_pidfd)
{
        pid_t pid = -1;
        int pidfd = -1;

        if (!plan->request->without_clone3)
                pid = clone_into_cgroup(plan, &pidfd);
        if (pid < 0) {
                pid = fork();
                if (pid < 0)
                        return -errno;
                if (pid == 0)
                        run_child(plan, false);
                pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
                if (pidfd < 0) {
                        int r = -errno;

                        kill(pid, SIGKILL);
                        waitpid(pid, NULL, 0);
                        return r;
                }
        }
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        return 0;
}

int spawn(const struct spawn_request *request, struct spawned *ret_spawned, struct spawn_failure *ret_failure)
{
        _cleanup_(plan_done) struct plan plan = { .request = request, .null_fd = -1, .cgroup_procs_fd = -1, .report_fd = -1 };
        _cleanup_(close_fdp) int report_fd = -1;
        sigset_t all, previous;
        enum spawn_step step;
        int r, report[2], pidfd = -1;
        pid_t pid = -1;

        r = plan_make(request, &plan, &step);
        if (r < 0)
                goto fail;

        step = SPAWN_FORK;
        if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) {
                r = -errno;
                goto fail;
        }
        report_fd = report[0];
        plan.report_fd = report[1];

        /* Blocked until the child has its own dispositions, so that none of the daemon's handlers can run in it. */
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &previous);
        r = fork_child(&plan, &pid, &pidfd);
        sigprocmask(SIG_SETMASK, &previous, NULL);
        if (r < 0)
                goto fail;

        *ret_spawned = (struct spawned){ .pid = pid, .pidfd = pidfd, .report_fd = TAKE_FD(report_fd) };
        return 0;

fail:
        *ret_failure = (struct spawn_failure){ .step = step, .error = r };
        return r;
}

int spawn_read_report(int report_fd, struct spawn_failure *ret_failure)
{
        struct spawn_failure failure;
        ssize_t n;

        do
                n = read(report_fd, &failure, sizeof(failure));
        while (n < 0 && errno == EINTR);

        if (n == 0)
                return 0;
        if (n < 0)
                return -errno;
        *ret_failure = failure;
        return 1;
}

char *spawn_failure_format(const struct spawn_failure *failure, const struct process_settings *settings, char *buffer, size_t size)
{
        const char *reason = strerror(-failure->error);

        switch (failure->step) {
        case SPAWN_FORK:
                snprintf(buffer, size, "cannot fork: %s", reason);
                break;
        case SPAWN_CGROUP:
                snprintf(buffer, size, "cannot enter its cgroup: %s", reason);
                break;
        case SPAWN_OUTPUT:
                snprintf(buffer, size, "cannot redirect its output: %s", reason);
                break;
        case SPAWN_USER:
                snprintf(buffer, size, "cannot become user %s: %s", settings->user,
                         failure->error == -ESRCH ? "no such user" : reason);
                break;
        case SPAWN_DIRECTORY:
                snprintf(buffer, size, "cannot enter directory %s: %s", settings->working_directory ?: "/", reason);
                break;
        case SPAWN_EXEC:
                snprintf(buffer, size, "cannot run %s: %s", settings->command[0], reason);
                break;
        }
        return buffer;
}
