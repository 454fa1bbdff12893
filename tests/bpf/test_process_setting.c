/* SPDX-License-Identifier: Apache-2.0 */
/* What a command runs as and in, what it writes to, and what is said where that cannot be. */
#include "process_bench.h"

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
        run_to_its_end(bench, COMMAND("sh", "-c", "echo $(id -un) $(id -gn) $(id -G | wc -w) $(pwd) $(umask)"));
        assert_true(file_has(bench->log, "nobody nogroup 1 /usr 0022\n"));
}

static void output_is_appended_to_the_log_file(void **state)
{
        struct bench *bench = *state;
        struct stat status;

        run_to_its_end(bench, COMMAND("sh", "-c", "echo out; echo err >&2; exit 0"));
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

        run_until_ready(bench, COMMAND("sh", "-c", "trap 'echo again; exit 0' TERM; echo ready; while :; do sleep 0.01; done"));
        assert_int_equal(truncate(bench->log, 0), 0);
        stop(bench);
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
        run_to_its_end(bench, COMMAND("env"));
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_BENCH(a_missing_command_is_named),
                WITH_BENCH(a_command_that_is_not_executable_is_named),
                WITH_BENCH(a_missing_directory_is_named),
                WITH_BENCH(an_unknown_user_is_named),
                WITH_BENCH(a_log_file_that_cannot_be_opened_is_named),
                WITH_BENCH(a_failure_is_told_from_the_event_loop_not_from_the_call),
                WITH_BENCH(it_runs_as_its_user_in_its_directory),
                WITH_BENCH(output_is_appended_to_the_log_file),
                WITH_BENCH(a_log_that_is_copied_and_truncated_goes_on_from_its_beginning),
                WITH_BENCH(the_environment_is_the_policys_and_three_variables),
                WITH_BENCH(the_command_is_looked_for_in_its_own_path),
                WITH_BENCH(no_descriptor_of_the_daemon_leaks_into_it),
                WITH_BENCH(it_has_its_own_signals_and_session),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
