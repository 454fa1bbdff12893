/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "activity/cpu.h"
#include "activity/idle.h"
#include "base/time.h"

#define S NSEC_PER_SEC
#define NOW (10000 * S)

static const struct idle_settings defaults = {
        .after_ns = 300 * S, .request_timeout_ns = 1800 * S, .min_awake_ns = 60 * S, .cpu_millicores = 250
};

/* Quiet for ten minutes in every respect. */
static const struct workload_snapshot quiet = {
        .read_ns = NOW, .last_ns = NOW - 600 * S, .cpu_millicores = 3, .cpu_window_ns = 60 * S
};

static struct idle_verdict judge(const struct idle_settings *idle, const struct workload_snapshot *snapshot, unsigned factor)
{
        struct policy policy = { .idle = *idle };
        struct idle_verdict verdict;

        idle_judge(&policy, snapshot, 0, NOW - 3600 * S, factor, NOW, &verdict);
        return verdict;
}

static void expect(const struct idle_settings *idle, const struct workload_snapshot *snapshot, enum verdict verdict,
                   const char *reason)
{
        struct idle_verdict judged = judge(idle, snapshot, 1);

        assert_string_equal(judged.reason, reason);
        assert_int_equal(judged.verdict, verdict);
        assert_true(judged.look_again_ns > NOW && judged.look_again_ns <= NOW + 10 * S);
        if (verdict != VERDICT_IDLE)
                assert_int_equal(judged.idle_ns, 0);
}

static void silence_for_long_enough_is_idle(void **state)
{
        expect(&defaults, &quiet, VERDICT_IDLE, "no activity for 10m");
        assert_int_equal(judge(&defaults, &quiet, 1).idle_ns, 600 * S);
        assert_int_equal(judge(&defaults, &quiet, 1).required_ns, 300 * S);
}

static void recent_payload_is_busy_until_idle_after_has_passed(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.last_ns = NOW - 297 * S;
        expect(&defaults, &snapshot, VERDICT_BUSY, "last activity was 4m57s ago; idle after 5m");
        assert_int_equal(judge(&defaults, &snapshot, 1).look_again_ns, NOW + 3 * S);
}

static void a_request_is_busy_until_it_times_out(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.open_requests = 1;
        snapshot.oldest_request_ns = snapshot.newest_request_ns = NOW - 1795 * S;
        snapshot.oldest_request =
                (struct workload_connection){ .remote = address_from_ipv4(htonl(0xc0000201)), .remote_port = 40000 };
        expect(&defaults, &snapshot, VERDICT_BUSY, "an unanswered request from 192.0.2.1:40000 since 29m55s");
        assert_int_equal(judge(&defaults, &snapshot, 1).look_again_ns, NOW + 5 * S);

        snapshot.oldest_request_ns = snapshot.newest_request_ns = NOW - 1800 * S;
        expect(&defaults, &snapshot, VERDICT_IDLE, "no activity for 10m");
}

static void of_several_requests_the_newest_decides_and_the_oldest_is_named(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.open_requests = 2;
        snapshot.oldest_request_ns = NOW - 3600 * S;
        snapshot.newest_request_ns = NOW - 20 * S;
        snapshot.oldest_request =
                (struct workload_connection){ .remote = address_from_ipv4(htonl(0xc0000201)), .remote_port = 40000 };
        expect(&defaults, &snapshot, VERDICT_BUSY, "2 unanswered requests, the oldest from 192.0.2.1:40000 since 1h");
}

static void open_connections_hold_only_where_the_policy_says_so(void **state)
{
        struct workload_snapshot snapshot = quiet;
        struct idle_settings idle = defaults;

        snapshot.connections = 3;
        expect(&idle, &snapshot, VERDICT_IDLE, "no activity for 10m");
        idle.connections = SILENCE_HOLD;
        expect(&idle, &snapshot, VERDICT_BUSY, "3 open connections (idle.connections is Hold)");
        snapshot.connections = 0;
        expect(&idle, &snapshot, VERDICT_IDLE, "no activity for 10m");
}

static void outbound_connections_hold_only_where_the_policy_says_so(void **state)
{
        struct workload_snapshot snapshot = quiet;
        struct idle_settings idle = defaults;

        snapshot.outbound = 1;
        expect(&idle, &snapshot, VERDICT_IDLE, "no activity for 10m");
        idle.outbound = SILENCE_HOLD;
        expect(&idle, &snapshot, VERDICT_BUSY, "1 open outbound connection (idle.outbound is Hold)");
}

static void cpu_use_above_the_limit_is_a_veto(void **state)
{
        struct workload_snapshot snapshot = quiet;
        struct idle_settings idle = defaults;

        snapshot.cpu_millicores = 250;
        expect(&idle, &snapshot, VERDICT_IDLE, "no activity for 10m");
        snapshot.cpu_millicores = 251;
        expect(&idle, &snapshot, VERDICT_BUSY, "it used 0.251 CPU cores over the last 1m, more than idle.cpu (0.250)");
        idle.cpu_millicores = 0;
        expect(&idle, &snapshot, VERDICT_IDLE, "no activity for 10m");
}

static void less_than_a_second_of_cpu_use_is_not_enough_to_know(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.cpu_window_ns = S - 1;
        expect(&defaults, &snapshot, VERDICT_BUSY, "its CPU use is not known for long enough");
        snapshot.cpu_window_ns = S;
        expect(&defaults, &snapshot, VERDICT_IDLE, "no activity for 10m");
}

static void what_cannot_be_read_is_unknown_never_idle(void **state)
{
        struct policy policy = { .idle = defaults };
        struct idle_verdict verdict;

        idle_judge(&policy, NULL, -ENODEV, NOW - 3600 * S, 1, NOW, &verdict);
        assert_int_equal(verdict.verdict, VERDICT_UNKNOWN);
        assert_int_equal(verdict.idle_ns, 0);
        assert_string_equal(verdict.reason, "its activity could not be read: No such device");
}

static void it_cannot_have_been_idle_before_it_was_awake(void **state)
{
        struct policy policy = { .idle = defaults };
        struct idle_verdict verdict;

        idle_judge(&policy, &quiet, 0, NOW - 60 * S, 1, NOW, &verdict);
        assert_int_equal(verdict.verdict, VERDICT_BUSY);
        assert_string_equal(verdict.reason, "it became awake 1m ago; idle after 5m");
}

static void flapping_multiplies_what_is_required(void **state)
{
        assert_int_equal(judge(&defaults, &quiet, 2).verdict, VERDICT_IDLE);
        assert_int_equal(judge(&defaults, &quiet, 4).verdict, VERDICT_BUSY);
        assert_int_equal(judge(&defaults, &quiet, 4).required_ns, 1200 * S);
}

static void a_stamp_younger_than_the_clock_is_just_now(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.last_ns = NOW + 1;
        expect(&defaults, &snapshot, VERDICT_BUSY, "last activity was 0s ago; idle after 5m");
}

static void the_flapping_factor_doubles_to_16_and_halves_to_1(void **state)
{
        unsigned factor = 1;

        for (int i = 0; i < 10; i++)
                factor = flapping_factor(factor, true);
        assert_int_equal(factor, FLAPPING_FACTOR_MAX);
        assert_int_equal(flapping_factor(factor, false), 8);
        assert_int_equal(flapping_factor(1, false), 1);
}

static void cpu_use_is_averaged_over_the_last_minute(void **state)
{
        struct cpu_history history = { 0 };
        uint32_t millicores = 0;
        uint64_t window = 1;

        cpu_history_add(&history, 0, 300 * S, NOW, &millicores, &window);
        assert_int_equal(window, 0);

        /* A whole core for 100 s, then nothing for 30 s: half of the last minute. */
        for (unsigned i = 1; i <= 130; i++)
                cpu_history_add(&history, (i <= 100 ? i : 100) * 1000000, 300 * S, NOW + i * S, &millicores, &window);
        assert_int_equal(window, 60 * S);
        assert_int_equal(millicores, 500);
}

static void the_cpu_window_shrinks_to_idle_after_but_not_below_a_second(void **state)
{
        struct cpu_history history = { 0 };
        uint32_t millicores;
        uint64_t window;

        for (unsigned i = 0; i <= 100; i++)
                cpu_history_add(&history, i * 1000, 2 * S, NOW + i * S / 10, &millicores, &window);
        assert_int_equal(window, 2 * S);
        for (unsigned i = 101; i <= 200; i++)
                cpu_history_add(&history, i * 1000, S / 2, NOW + i * S / 10, &millicores, &window);
        assert_int_equal(window, S);
        assert_int_equal(millicores, 10);
}

static void connections_that_nothing_is_known_of_may_wait_for_answers(void **state)
{
        struct workload_snapshot snapshot = quiet;

        snapshot.untracked_ns = NOW - 1795 * S;
        expect(&defaults, &snapshot, VERDICT_BUSY, "it has connections since 29m55s of whose requests nothing is known");
        assert_int_equal(judge(&defaults, &snapshot, 1).look_again_ns, NOW + 5 * S);

        snapshot.untracked_ns = NOW - 1800 * S;
        expect(&defaults, &snapshot, VERDICT_IDLE, "no activity for 10m");
}

static struct idle_verdict judge_all(const struct idle_part *parts, size_t n_parts)
{
        struct policy policy = { .idle = defaults };
        struct idle_verdict verdict;

        idle_judge_all(&policy, parts, n_parts, NOW - 3600 * S, 1, NOW, &verdict);
        return verdict;
}

static void several_pods_are_idle_since_the_last_of_them_is(void **state)
{
        struct workload_snapshot later = quiet;
        const struct idle_part parts[] = { { .name = "web-a", .snapshot = &quiet }, { .name = "web-b", .snapshot = &later } };
        struct idle_verdict verdict;

        later.last_ns = NOW - 400 * S;
        verdict = judge_all(parts, 2);
        assert_int_equal(verdict.verdict, VERDICT_IDLE);
        assert_int_equal(verdict.idle_ns, 400 * S);
        assert_string_equal(verdict.reason, "web-b: no activity for 6m40s");
}

static void one_busy_pod_keeps_all_awake_even_beside_one_that_cannot_be_read(void **state)
{
        struct workload_snapshot busy = quiet;
        const struct idle_part parts[] = { { .name = "web-a", .error = -EIO },
                                           { .name = "web-b", .snapshot = &busy },
                                           { .name = "web-c", .snapshot = &quiet } };
        struct idle_verdict verdict;

        busy.last_ns = NOW - 297 * S;
        verdict = judge_all(parts, 3);
        assert_int_equal(verdict.verdict, VERDICT_BUSY);
        assert_string_equal(verdict.reason, "web-b: last activity was 4m57s ago; idle after 5m");
        assert_int_equal(verdict.look_again_ns, NOW + 3 * S);
        assert_int_equal(verdict.idle_ns, 0);
}

static void one_pod_that_cannot_be_read_makes_idle_ones_unknown(void **state)
{
        const struct idle_part parts[] = { { .name = "web-a", .snapshot = &quiet },
                                           { .name = "web-b", .error = -EIO },
                                           { .name = "web-c", .snapshot = &quiet } };
        struct idle_verdict verdict = judge_all(parts, 3);

        assert_int_equal(verdict.verdict, VERDICT_UNKNOWN);
        assert_string_equal(verdict.reason, "web-b: its activity could not be read: Input/output error");
}

static void a_pod_is_not_idle_for_longer_than_it_is_watched(void **state)
{
        const struct idle_part parts[] = { { .snapshot = &quiet, .watched_since_ns = NOW - 299 * S }, { .snapshot = &quiet } };

        assert_int_equal(judge_all(parts, 2).verdict, VERDICT_BUSY);
}

static void without_a_pod_nothing_is_known(void **state)
{
        struct idle_verdict verdict = judge_all(NULL, 0);

        assert_int_equal(verdict.verdict, VERDICT_UNKNOWN);
        assert_string_equal(verdict.reason, "nothing of it is watched");
}

static void a_pod_with_a_long_name_does_not_spill(void **state)
{
        char name[400];
        const struct idle_part part = { .name = name, .snapshot = &quiet };
        struct idle_verdict verdict;

        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        verdict = judge_all(&part, 1);
        assert_true(strlen(verdict.reason) < sizeof(verdict.reason));
        assert_non_null(strstr(verdict.reason, "no activity for 10m"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(silence_for_long_enough_is_idle),
                cmocka_unit_test(recent_payload_is_busy_until_idle_after_has_passed),
                cmocka_unit_test(a_request_is_busy_until_it_times_out),
                cmocka_unit_test(of_several_requests_the_newest_decides_and_the_oldest_is_named),
                cmocka_unit_test(open_connections_hold_only_where_the_policy_says_so),
                cmocka_unit_test(outbound_connections_hold_only_where_the_policy_says_so),
                cmocka_unit_test(cpu_use_above_the_limit_is_a_veto),
                cmocka_unit_test(less_than_a_second_of_cpu_use_is_not_enough_to_know),
                cmocka_unit_test(what_cannot_be_read_is_unknown_never_idle),
                cmocka_unit_test(it_cannot_have_been_idle_before_it_was_awake),
                cmocka_unit_test(flapping_multiplies_what_is_required),
                cmocka_unit_test(a_stamp_younger_than_the_clock_is_just_now),
                cmocka_unit_test(the_flapping_factor_doubles_to_16_and_halves_to_1),
                cmocka_unit_test(cpu_use_is_averaged_over_the_last_minute),
                cmocka_unit_test(the_cpu_window_shrinks_to_idle_after_but_not_below_a_second),
                cmocka_unit_test(connections_that_nothing_is_known_of_may_wait_for_answers),
                cmocka_unit_test(several_pods_are_idle_since_the_last_of_them_is),
                cmocka_unit_test(one_busy_pod_keeps_all_awake_even_beside_one_that_cannot_be_read),
                cmocka_unit_test(one_pod_that_cannot_be_read_makes_idle_ones_unknown),
                cmocka_unit_test(a_pod_is_not_idle_for_longer_than_it_is_watched),
                cmocka_unit_test(without_a_pod_nothing_is_known),
                cmocka_unit_test(a_pod_with_a_long_name_does_not_spill),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
