/* SPDX-License-Identifier: Apache-2.0 */
/* Real commands in a cgroup of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cgroup.h"
#include "base/time.h"
#include "target/cgroup_control.h"
#include "target/process.h"
#include "target/spawn.h"

struct bench {
        char *root; /* cgroup2 mount point */
        char parent[256], cgroup[300], directory[64], log[80];
        sd_event *event;
        struct process *process;
        struct process_settings settings;

        unsigned n_started, n_exited;
        pid_t started_pid;
        uint64_t started_ns;
        struct process_exit exit;
};

static void on_started(struct process *process, pid_t pid, uint64_t at_ns, void *userdata)
{
        struct bench *bench = userdata;

        bench->n_started++;
        bench->started_pid = pid;
        bench->started_ns = at_ns;
}

static void on_exited(struct process *process, const struct process_exit *exit, void *userdata)
{
        struct bench *bench = userdata;

        bench->n_exited++;
        bench->exit = *exit;
}

static const struct process_callbacks callbacks = { .started = on_started, .exited = on_exited };

/* Runs the event loop until @condition holds, for at most 20 s. */
#define await(bench, condition)                                                                                                    \
        do {                                                                                                                       \
                uint64_t _end = now_monotonic_ns() + 20 * NSEC_PER_SEC;                                                            \
                while (!(condition)) {                                                                                             \
                        if (now_monotonic_ns() > _end)                                                                             \
                                fail_msg("not within 20 s: %s", #condition);                                                       \
                        assert_true(sd_event_run((bench)->event, 20 * 1000) >= 0);                                                 \
                }                                                                                                                  \
        } while (0)

static char *no_environment[] = { NULL };

#define COMMAND(...) ((char *[]){ __VA_ARGS__, NULL })

static void make_process(struct bench *bench, char **command)
{
        struct process_config config = {
                .event = bench->event, .name = "test", .cgroup = bench->cgroup, .log_file = bench->log, .settings = &bench->settings
        };

        bench->settings.command = command;
        assert_int_equal(process_new(&config, &callbacks, bench, &bench->process), 0);
}

static void run(struct bench *bench, char **command)
{
        make_process(bench, command);
        process_start(bench->process);
        await(bench, bench->n_started + bench->n_exited > 0);
}

static char *read_file(const char *path)
{
        _cleanup_(fclosep) FILE *file = fopen(path, "re");
        char *text = calloc(1, 65536);

        assert_non_null(file);
        assert_non_null(text);
        fread(text, 1, 65535, file);
        return text;
}

static bool file_has(const char *path, const char *text)
{
        _cleanup_(freep) char *content = access(path, F_OK) == 0 ? read_file(path) : NULL;

        return content && strstr(content, text);
}

/* The readiness of these scripts shows in the log, which no event tells of. */
static void await_log(struct bench *bench, const char *text)
{
        uint64_t end = now_monotonic_ns() + 20 * NSEC_PER_SEC;

        while (!file_has(bench->log, text)) {
                assert_true(now_monotonic_ns() < end);
                assert_true(sd_event_run(bench->event, 1000) >= 0);
        }
}

static unsigned count_lines(const char *path)
{
        _cleanup_(freep) char *content = read_file(path);
        unsigned lines = 0;

        for (const char *c = content; *c; c++)
                lines += *c == '\n';
        return lines;
}

static unsigned count_processes(struct bench *bench)
{
        char path[400];

        snprintf(path, sizeof(path), "%s/cgroup.procs", bench->cgroup);
        return count_lines(path);
}

static int setup(void **state)
{
        struct bench *bench = calloc(1, sizeof(*bench));

        assert_non_null(bench);
        assert_int_equal(cgroup_find_root(&bench->root), 0);
        snprintf(bench->parent, sizeof(bench->parent), "%s/lull-test-process-%d", bench->root, getpid());
        snprintf(bench->cgroup, sizeof(bench->cgroup), "%s/target", bench->parent);
        strcpy(bench->directory, "/tmp/lull-test-process-XXXXXX");
        assert_non_null(mkdtemp(bench->directory));
        snprintf(bench->log, sizeof(bench->log), "%s/log", bench->directory);
        assert_int_equal(sd_event_new(&bench->event), 0);
        bench->settings = (struct process_settings){ .environment = no_environment,
                                                     .stop_signal = SIGTERM,
                                                     .stop_timeout_ns = 10 * NSEC_PER_SEC };
        *state = bench;
        return 0;
}

static void remove_cgroup(const char *path)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t end = now_monotonic_ns() + 10 * NSEC_PER_SEC;

        if (fd < 0)
                return;
        cgroup_kill(fd);
        while (cgroup_populated(fd) == 1 && now_monotonic_ns() < end)
                waitpid(-1, NULL, WNOHANG);
        close(fd);
        assert_int_equal(rmdir(path), 0);
}

static int teardown(void **state)
{
        struct bench *bench = *state;
        char command[128];

        process_free(bench->process);
        remove_cgroup(bench->cgroup);
        remove_cgroup(bench->parent);
        sd_event_unref(bench->event);
        snprintf(command, sizeof(command), "rm -r %s", bench->directory);
        assert_int_equal(system(command), 0);
        free(bench->root);
        free(bench);
        return 0;
}

static void a_command_runs_in_its_own_cgroup_until_it_is_stopped(void **state)
{
        struct bench *bench = *state;
        char path[64], expected[320];
        uint64_t before = now_monotonic_ns();

        run(bench, COMMAND("sleep", "1000"));
        assert_int_equal(bench->n_started, 1);
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        assert_int_equal(process_pid(bench->process), bench->started_pid);
        assert_in_range(bench->started_ns, before, now_monotonic_ns());
        snprintf(path, sizeof(path), "/proc/%d/cgroup", bench->started_pid);
        snprintf(expected, sizeof(expected), "0::%s\n", bench->cgroup + strlen(bench->root));
        assert_true(file_has(path, expected));

        process_stop(bench->process);
        assert_int_equal(process_state(bench->process), PROCESS_STOPPING);
        await(bench, bench->n_exited == 1);
        assert_true(bench->exit.asked_for);
        assert_true(bench->exit.signaled);
        assert_int_equal(bench->exit.status, SIGTERM);
        assert_string_equal(bench->exit.message, "killed by SIGTERM");
        assert_int_equal(process_state(bench->process), PROCESS_STOPPED);
        assert_int_equal(process_pid(bench->process), 0);
        assert_int_equal(process_crashes(bench->process), 0);
        assert_int_equal(count_processes(bench), 0);
}

static void the_exit_status_is_reported(void **state)
{
        struct bench *bench = *state;

        make_process(bench, COMMAND("sh", "-c", "exit 3"));
        assert_null(process_last_exit(bench->process));
        process_start(bench->process);
        await(bench, bench->n_exited == 1);
        assert_int_equal(bench->n_started, 1);
        assert_false(bench->exit.asked_for);
        assert_false(bench->exit.signaled);
        assert_int_equal(bench->exit.error, 0);
        assert_int_equal(bench->exit.status, 3);
        assert_string_equal(bench->exit.message, "exited with status 3");
        assert_string_equal(process_last_exit(bench->process)->message, "exited with status 3");
}

static void the_stop_signal_of_the_policy_is_the_one_sent(void **state)
{
        struct bench *bench = *state;

        bench->settings.stop_signal = SIGINT;
        run(bench, COMMAND("python3", "-c",
                           "import signal, sys\n"
                           "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
                           "print('ready', flush=True)\n"
                           "signal.sigwait([signal.SIGINT])\n"
                           "sys.exit(7)"));
        await_log(bench, "ready\n");
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_string_equal(bench->exit.message, "exited with status 7");
}

static void one_that_ignores_its_stop_signal_is_killed_after_the_timeout(void **state)
{
        struct bench *bench = *state;
        uint64_t asked;

        bench->settings.stop_timeout_ns = 300 * NSEC_PER_MSEC;
        run(bench, COMMAND("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"));
        await_log(bench, "ready\n");
        asked = now_monotonic_ns();
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_true(now_monotonic_ns() - asked >= 300 * NSEC_PER_MSEC);
        assert_string_equal(bench->exit.message, "killed by SIGKILL");
        assert_true(bench->exit.asked_for);
        assert_int_equal(count_processes(bench), 0);
}

static void its_children_are_killed_with_it(void **state)
{
        struct bench *bench = *state;

        bench->settings.stop_timeout_ns = 200 * NSEC_PER_MSEC;
        run(bench, COMMAND("sh", "-c", "setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & sleep 1000"));
        await_log(bench, "ready\n");
        assert_true(count_processes(bench) >= 3);
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_int_equal(count_processes(bench), 0);
}

static void what_is_left_after_the_main_process_gets_the_stop_signal_too(void **state)
{
        struct bench *bench = *state;

        bench->settings.stop_timeout_ns = 60 * NSEC_PER_SEC; /* far more than the test waits */
        run(bench, COMMAND("sh", "-c", "sleep 1000 & sleep 1001 & trap 'exit 0' TERM; echo ready; wait"));
        await_log(bench, "ready\n");
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_string_equal(bench->exit.message, "exited with status 0");
        assert_int_equal(count_processes(bench), 0);
}

static void a_command_that_goes_to_the_background_counts_as_running(void **state)
{
        struct bench *bench = *state;

        run(bench, COMMAND("sh", "-c", "setsid sleep 1000 & echo gone"));
        await(bench, process_pid(bench->process) == 0);
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        assert_int_equal(bench->n_exited, 0);

        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_string_equal(bench->exit.message, "exited with status 0");
        assert_true(bench->exit.asked_for);
}

static void expect_failure(struct bench *bench, char **command, int error, const char *message)
{
        run(bench, command);
        assert_int_equal(bench->n_started, 0);
        assert_int_equal(bench->exit.error, error);
        assert_string_equal(bench->exit.message, message);
        assert_int_equal(process_state(bench->process), PROCESS_STOPPED);
}

static void a_missing_command_is_named(void **state)
{
        expect_failure(*state, COMMAND("/bin/nope"), -ENOENT, "cannot run /bin/nope: No such file or directory");
}

static void a_command_that_is_not_executable_is_named(void **state)
{
        expect_failure(*state, COMMAND("/etc/passwd"), -EACCES, "cannot run /etc/passwd: Permission denied");
}

static void a_missing_directory_is_named(void **state)
{
        struct bench *bench = *state;

        bench->settings.working_directory = (char *)"/nope";
        expect_failure(bench, COMMAND("true"), -ENOENT, "cannot enter directory /nope: No such file or directory");
}

static void an_unknown_user_is_named(void **state)
{
        struct bench *bench = *state;

        bench->settings.user = (char *)"lull-nobody-knows";
        expect_failure(bench, COMMAND("true"), -ESRCH, "cannot become user lull-nobody-knows: no such user");
}

static void a_log_file_that_cannot_be_opened_is_named(void **state)
{
        struct bench *bench = *state;

        strcpy(bench->log, "/nope/log");
        expect_failure(bench, COMMAND("true"), -ENOENT, "cannot open log file /nope/log: No such file or directory");
}

static void a_failure_is_told_from_the_event_loop_not_from_the_call(void **state)
{
        struct bench *bench = *state;

        bench->settings.user = (char *)"lull-nobody-knows";
        make_process(bench, COMMAND("true"));
        process_start(bench->process);
        assert_int_equal(bench->n_exited, 0);
        await(bench, bench->n_exited == 1);
}

static void it_runs_as_its_user_in_its_directory(void **state)
{
        struct bench *bench = *state;

        bench->settings.user = (char *)"nobody";
        bench->settings.working_directory = (char *)"/usr";
        run(bench, COMMAND("sh", "-c", "echo $(id -un) $(id -gn) $(id -G | wc -w) $(pwd) $(umask)"));
        await(bench, bench->n_exited == 1);
        assert_true(file_has(bench->log, "nobody nogroup 1 /usr 0022\n"));
}

static void crashes_in_a_row_delay_the_next_start_longer_and_longer(void **state)
{
        static const uint64_t delays_ms[] = { 100, 200, 400 };
        struct bench *bench = *state;

        make_process(bench, COMMAND("false"));
        process_start(bench->process);
        for (unsigned i = 0; i < ELEMENTSOF(delays_ms); i++) {
                uint64_t ended;

                await(bench, bench->n_exited == i + 1);
                ended = now_monotonic_ns();
                assert_int_equal(process_crashes(bench->process), i + 1);
                assert_in_range(process_start_after_ns(bench->process), ended + (delays_ms[i] - 50) * NSEC_PER_MSEC,
                                ended + delays_ms[i] * NSEC_PER_MSEC);

                process_start(bench->process);
                assert_int_equal(process_state(bench->process), PROCESS_DELAYED);
                await(bench, bench->n_started == i + 2);
                assert_true(now_monotonic_ns() - ended >= (delays_ms[i] - 50) * NSEC_PER_MSEC);
        }
}

static void a_delayed_start_is_given_up_by_a_stop(void **state)
{
        struct bench *bench = *state;

        run(bench, COMMAND("false"));
        await(bench, bench->n_exited == 1);
        process_start(bench->process);
        assert_int_equal(process_state(bench->process), PROCESS_DELAYED);
        process_stop(bench->process);
        assert_int_equal(process_state(bench->process), PROCESS_STOPPED);

        assert_true(sd_event_run(bench->event, 200 * 1000) >= 0);
        assert_int_equal(bench->n_started, 1);
}

static void new_settings_clear_the_delay(void **state)
{
        struct bench *bench = *state;

        run(bench, COMMAND("false"));
        await(bench, bench->n_exited == 1);
        bench->settings.command = COMMAND("sleep", "1000");
        assert_int_equal(process_update(bench->process, &bench->settings), 0);
        assert_int_equal(process_crashes(bench->process), 0);
        process_start(bench->process);
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        await(bench, bench->n_started == 2);
}

static void a_start_during_the_stop_waits_for_its_end(void **state)
{
        struct bench *bench = *state;
        pid_t first;

        run(bench, COMMAND("sh", "-c", "trap 'sleep 0.3; exit 0' TERM; echo ready; while :; do sleep 0.01; done"));
        await_log(bench, "ready\n");
        first = bench->started_pid;
        process_stop(bench->process);
        process_start(bench->process);
        assert_int_equal(process_state(bench->process), PROCESS_STOPPING);

        await(bench, bench->n_started == 2);
        assert_int_equal(bench->n_exited, 1);
        assert_true(bench->exit.asked_for);
        assert_int_not_equal(bench->started_pid, first);
        assert_int_equal(process_crashes(bench->process), 0);
}

static void what_runs_is_left_alone_and_adopted(void **state)
{
        struct bench *bench = *state;
        pid_t pid;

        run(bench, COMMAND("sh", "-c", "sleep 1000 & sleep 1001"));
        pid = bench->started_pid;
        bench->process = process_free(bench->process);
        assert_int_equal(kill(pid, 0), 0);

        make_process(bench, COMMAND("sh", "-c", "sleep 1000 & sleep 1001"));
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        assert_int_equal(process_pid(bench->process), pid);
        process_start(bench->process);
        assert_int_equal(bench->n_started, 1);

        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_int_equal(count_processes(bench), 0);
}

/* Starts the command and ends, as the daemon before did. An event loop does not survive a fork, so this one has its own. */
_Noreturn static void run_other_daemon(struct bench *bench)
{
        struct process_config config = {
                .name = "test", .cgroup = bench->cgroup, .log_file = bench->log, .settings = &bench->settings
        };

        bench->settings.command = COMMAND("sleep", "1000");
        if (sd_event_new(&config.event) < 0 || process_new(&config, &callbacks, bench, &bench->process) < 0)
                _exit(1);
        process_start(bench->process);
        while (bench->n_started == 0)
                if (sd_event_run(config.event, UINT64_MAX) < 0)
                        _exit(1);
        _exit(0);
}

static void one_that_another_daemon_started_has_no_exit_status(void **state)
{
        struct bench *bench = *state;
        pid_t daemon = fork();
        int status;

        if (daemon == 0)
                run_other_daemon(bench);
        assert_int_equal(waitpid(daemon, &status, 0), daemon);
        assert_int_equal(status, 0);

        make_process(bench, COMMAND("sleep", "1000"));
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        assert_true(process_pid(bench->process) > 0);
        assert_int_equal(kill(process_pid(bench->process), SIGTERM), 0);
        await(bench, bench->n_exited == 1);
        assert_int_equal(bench->exit.status, -1);
        assert_false(bench->exit.asked_for);
        assert_string_equal(bench->exit.message, "ended; its status is unknown, since another daemon had started it");
}

static void what_is_left_without_a_session_leader_is_adopted_without_a_main_process(void **state)
{
        struct bench *bench = *state;

        run(bench, COMMAND("sh", "-c", "sleep 1000 & exit 0"));
        await(bench, process_pid(bench->process) == 0);
        bench->process = process_free(bench->process);

        make_process(bench, COMMAND("true"));
        assert_int_equal(process_state(bench->process), PROCESS_RUNNING);
        assert_int_equal(process_pid(bench->process), 0);
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
}

static void a_child_that_outlives_its_policy_is_still_reaped(void **state)
{
        struct bench *bench = *state;
        pid_t pid;

        run(bench, COMMAND("sleep", "1000"));
        pid = bench->started_pid;
        bench->process = process_free(bench->process);
        assert_int_equal(kill(pid, SIGKILL), 0);
        await(bench, kill(pid, 0) < 0 && errno == ESRCH);
}

static void output_is_appended_to_the_log_file(void **state)
{
        struct bench *bench = *state;
        struct stat status;

        run(bench, COMMAND("sh", "-c", "echo out; echo err >&2; exit 0"));
        await(bench, bench->n_exited == 1);
        process_start(bench->process);
        await(bench, bench->n_exited == 2);
        assert_true(file_has(bench->log, "out\nerr\nout\nerr\n"));
        assert_int_equal(stat(bench->log, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0640);
}

static void a_log_that_is_copied_and_truncated_goes_on_from_its_beginning(void **state)
{
        struct bench *bench = *state;
        struct stat status;

        run(bench, COMMAND("sh", "-c", "trap 'echo again; exit 0' TERM; echo ready; while :; do sleep 0.01; done"));
        await_log(bench, "ready\n");
        assert_int_equal(truncate(bench->log, 0), 0);
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
        assert_int_equal(stat(bench->log, &status), 0);
        assert_int_equal(status.st_size, strlen("again\n"));
}

static void the_environment_is_the_policys_and_three_variables(void **state)
{
        struct bench *bench = *state;
        char *environment[] = { (char *)"A=1", (char *)"LANG=xx", NULL };
        _cleanup_(freep) char *log = NULL;
        char expected[4200];

        setenv("LANG", "C.UTF-8", 1);
        setenv("SECRET", "kept", 1);
        unsetenv("TZ");
        bench->settings.environment = environment;
        run(bench, COMMAND("env"));
        await(bench, bench->n_exited == 1);
        log = read_file(bench->log);
        snprintf(expected, sizeof(expected), "PATH=%s\nA=1\nLANG=xx\n", getenv("PATH"));
        assert_string_equal(log, expected);
}

static void the_command_is_looked_for_in_its_own_path(void **state)
{
        struct bench *bench = *state;
        char *environment[] = { (char *)"PATH=/nope", NULL };

        bench->settings.environment = environment;
        expect_failure(bench, COMMAND("sleep", "1"), -ENOENT, "cannot run sleep: No such file or directory");
}

/* Runs @command with a leaking descriptor, a blocked and an ignored signal, and returns what it printed. */
static char *ask_leaky(struct bench *bench, char **command)
{
        int leak = open("/dev/null", O_RDONLY);
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        run(bench, command);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        signal(SIGPIPE, SIG_DFL);
        close(leak);
        await(bench, bench->n_exited == 1);
        return read_file(bench->log);
}

static void no_descriptor_of_the_daemon_leaks_into_it(void **state)
{
        _cleanup_(freep) char *log = ask_leaky(*state, COMMAND("ls", "/proc/self/fd"));

        assert_string_equal(log, "0\n1\n2\n3\n"); /* 3 is the directory that ls reads */
}

/* The C library ignores its own two signals, 32 and 33, in what posix_spawn() starts, and lets nobody change that: they are left as the
 * test got them. */
static void it_has_its_own_signals_and_session(void **state)
{
        struct bench *bench = *state;
        _cleanup_(freep) char *log = ask_leaky(bench, COMMAND("sed", "-n", "-e", "s/^Sig[BI].*:.//p", "-e",
                                                              "s/^[0-9]* (sed) . [0-9]* [0-9]* \\([0-9]*\\) .*/\\1/p",
                                                              "/proc/self/status", "/proc/self/stat"));
        unsigned long blocked, ignored;
        int session;

        assert_int_equal(sscanf(log, "%lx %lx %d", &blocked, &ignored, &session), 3);
        assert_int_equal(blocked, 0);
        assert_int_equal(ignored & ~0x180000000UL, 0);
        assert_int_equal(session, bench->started_pid);
}

static void a_removed_cgroup_is_made_again(void **state)
{
        struct bench *bench = *state;

        make_process(bench, COMMAND("sleep", "1000"));
        assert_int_equal(access(bench->cgroup, F_OK), -1); /* not before it is needed */
        for (unsigned run = 1; run <= 2; run++) {
                process_start(bench->process);
                await(bench, bench->n_started == run);
                assert_int_equal(count_processes(bench), 1);
                process_stop(bench->process);
                await(bench, bench->n_exited == run);
                assert_int_equal(rmdir(bench->cgroup), 0);
        }
}

static void spawn_one(struct bench *bench, bool without_clone3, const char *script)
{
        _cleanup_(close_fdp) int cgroup_fd = cgroup_open(bench->cgroup), output_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct spawn_failure failure;
        struct spawned spawned;

        assert_true(cgroup_fd >= 0);
        bench->settings.command = COMMAND("sh", "-c", (char *)script);
        assert_int_equal(spawn(&(struct spawn_request){ .settings = &bench->settings,
                                                        .cgroup_fd = cgroup_fd,
                                                        .output_fd = output_fd,
                                                        .without_clone3 = without_clone3 },
                               &spawned, &failure),
                         0);
        while (spawn_read_report(spawned.report_fd, &failure) == -EAGAIN)
                ;
        assert_true(count_processes(bench) >= 1);
        assert_int_equal(getsid(spawned.pid), spawned.pid);
        bench->started_pid = spawned.pid;
        close(spawned.pidfd);
        close(spawned.report_fd);
}

static void the_cgroup_is_joined_with_and_without_clone3(void **state)
{
        struct bench *bench = *state;

        spawn_one(bench, false, "exec sleep 1000");
        assert_int_equal(count_processes(bench), 1);
        spawn_one(bench, true, "exec sleep 1000");
        assert_int_equal(count_processes(bench), 2);
}

static void without_cgroup_kill_each_process_is_killed_at_any_level(void **state)
{
        struct bench *bench = *state;
        char below[320];
        int fd;

        spawn_one(bench, false, "while :; do sleep 1000 & sleep 0.001; done");
        snprintf(below, sizeof(below), "%s/below", bench->cgroup);
        assert_int_equal(cgroup_make(below), 0);
        strcat(bench->cgroup, "/below");
        spawn_one(bench, false, "sleep 1000 & sleep 1000");
        *strrchr(bench->cgroup, '/') = '\0';

        fd = cgroup_open(bench->cgroup);
        for (unsigned i = 0; i < 1000 && cgroup_populated(fd) == 1; i++) {
                assert_int_equal(cgroup_kill_each(fd), 0);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
        }
        assert_int_equal(cgroup_populated(fd), 0);
        close(fd);
        assert_int_equal(rmdir(below), 0);
}

static void a_cgroup_id_leads_to_its_path(void **state)
{
        struct bench *bench = *state;
        _cleanup_(freep) char *path = NULL, *root = NULL;
        struct stat status, root_status;
        char *gone = NULL;

        assert_int_equal(cgroup_make(bench->cgroup), 0);
        assert_int_equal(stat(bench->cgroup, &status), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, status.st_ino, &path), 0);
        assert_string_equal(path, bench->cgroup + strlen(bench->root));

        assert_int_equal(stat(bench->root, &root_status), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, root_status.st_ino, &root), 0);
        assert_string_equal(root, "/");

        assert_int_equal(rmdir(bench->cgroup), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, status.st_ino, &gone), -ENOENT);
}

/* Without CAP_DAC_READ_SEARCH there are no handles. */
static void a_cgroup_id_leads_to_its_path_without_handles(void **state)
{
        struct bench *bench = *state;
        struct stat status;
        int result = -1;
        pid_t child;

        assert_int_equal(cgroup_make(bench->cgroup), 0);
        assert_int_equal(stat(bench->cgroup, &status), 0);
        child = fork();
        if (child == 0) {
                _cleanup_(freep) char *path = NULL;

                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(2);
                if (cgroup_path_by_id(bench->root, status.st_ino, &path) < 0)
                        _exit(3);
                if (strcmp(path, bench->cgroup + strlen(bench->root)) != 0)
                        _exit(4);
                if (cgroup_path_by_id(bench->root, UINT64_MAX, &path) != -ENOENT)
                        _exit(5);
                free(path);
                path = NULL;
                _exit(0);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
}

#define WITH_BENCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_BENCH(a_command_runs_in_its_own_cgroup_until_it_is_stopped),
                WITH_BENCH(the_exit_status_is_reported),
                WITH_BENCH(the_stop_signal_of_the_policy_is_the_one_sent),
                WITH_BENCH(one_that_ignores_its_stop_signal_is_killed_after_the_timeout),
                WITH_BENCH(its_children_are_killed_with_it),
                WITH_BENCH(what_is_left_after_the_main_process_gets_the_stop_signal_too),
                WITH_BENCH(a_command_that_goes_to_the_background_counts_as_running),
                WITH_BENCH(a_missing_command_is_named),
                WITH_BENCH(a_command_that_is_not_executable_is_named),
                WITH_BENCH(a_missing_directory_is_named),
                WITH_BENCH(an_unknown_user_is_named),
                WITH_BENCH(a_log_file_that_cannot_be_opened_is_named),
                WITH_BENCH(a_failure_is_told_from_the_event_loop_not_from_the_call),
                WITH_BENCH(it_runs_as_its_user_in_its_directory),
                WITH_BENCH(crashes_in_a_row_delay_the_next_start_longer_and_longer),
                WITH_BENCH(a_delayed_start_is_given_up_by_a_stop),
                WITH_BENCH(new_settings_clear_the_delay),
                WITH_BENCH(a_start_during_the_stop_waits_for_its_end),
                WITH_BENCH(what_runs_is_left_alone_and_adopted),
                WITH_BENCH(one_that_another_daemon_started_has_no_exit_status),
                WITH_BENCH(what_is_left_without_a_session_leader_is_adopted_without_a_main_process),
                WITH_BENCH(a_child_that_outlives_its_policy_is_still_reaped),
                WITH_BENCH(output_is_appended_to_the_log_file),
                WITH_BENCH(a_log_that_is_copied_and_truncated_goes_on_from_its_beginning),
                WITH_BENCH(the_environment_is_the_policys_and_three_variables),
                WITH_BENCH(the_command_is_looked_for_in_its_own_path),
                WITH_BENCH(no_descriptor_of_the_daemon_leaks_into_it),
                WITH_BENCH(it_has_its_own_signals_and_session),
                WITH_BENCH(a_removed_cgroup_is_made_again),
                WITH_BENCH(the_cgroup_is_joined_with_and_without_clone3),
                WITH_BENCH(without_cgroup_kill_each_process_is_killed_at_any_level),
                WITH_BENCH(a_cgroup_id_leads_to_its_path),
                WITH_BENCH(a_cgroup_id_leads_to_its_path_without_handles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
