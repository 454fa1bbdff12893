/* SPDX-License-Identifier: Apache-2.0 */
/* A command from its start to its end: stopped, killed, delayed, and taken over from the daemon before. */
#include "process_bench.h"

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
        run_until_ready(bench, COMMAND("python3", "-c",
                                       "import signal, sys\n"
                                       "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
                                       "print('ready', flush=True)\n"
                                       "signal.sigwait([signal.SIGINT])\n"
                                       "sys.exit(7)"));
        stop(bench);
        assert_string_equal(bench->exit.message, "exited with status 7");
}

static void one_that_ignores_its_stop_signal_is_killed_after_the_timeout(void **state)
{
        struct bench *bench = *state;
        uint64_t asked;

        bench->settings.stop_timeout_ns = 300 * NSEC_PER_MSEC;
        run_until_ready(bench, COMMAND("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"));
        asked = now_monotonic_ns();
        stop(bench);
        assert_true(now_monotonic_ns() - asked >= 300 * NSEC_PER_MSEC);
        assert_string_equal(bench->exit.message, "killed by SIGKILL");
        assert_true(bench->exit.asked_for);
        assert_int_equal(count_processes(bench), 0);
}

static void its_children_are_killed_with_it(void **state)
{
        struct bench *bench = *state;

        bench->settings.stop_timeout_ns = 200 * NSEC_PER_MSEC;
        run_until_ready(
                bench, COMMAND("sh", "-c", "setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & sleep 1000"));
        assert_true(count_processes(bench) >= 3);
        stop(bench);
        assert_int_equal(count_processes(bench), 0);
}

static void what_is_left_after_the_main_process_gets_the_stop_signal_too(void **state)
{
        struct bench *bench = *state;

        bench->settings.stop_timeout_ns = 60 * NSEC_PER_SEC; /* far more than the test waits */
        run_until_ready(bench, COMMAND("sh", "-c", "sleep 1000 & sleep 1001 & trap 'exit 0' TERM; echo ready; wait"));
        stop(bench);
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

        stop(bench);
        assert_string_equal(bench->exit.message, "exited with status 0");
        assert_true(bench->exit.asked_for);
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

        run_to_its_end(bench, COMMAND("false"));
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

        run_to_its_end(bench, COMMAND("false"));
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

        run_until_ready(bench, COMMAND("sh", "-c", "trap 'sleep 0.3; exit 0' TERM; echo ready; while :; do sleep 0.01; done"));
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

        stop(bench);
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
        stop(bench);
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
                WITH_BENCH(crashes_in_a_row_delay_the_next_start_longer_and_longer),
                WITH_BENCH(a_delayed_start_is_given_up_by_a_stop),
                WITH_BENCH(new_settings_clear_the_delay),
                WITH_BENCH(a_start_during_the_stop_waits_for_its_end),
                WITH_BENCH(what_runs_is_left_alone_and_adopted),
                WITH_BENCH(one_that_another_daemon_started_has_no_exit_status),
                WITH_BENCH(what_is_left_without_a_session_leader_is_adopted_without_a_main_process),
                WITH_BENCH(a_child_that_outlives_its_policy_is_still_reaped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
