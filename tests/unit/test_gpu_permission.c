/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/permission.h"

static const uint64_t now_ns = 1000 * NSEC_PER_SEC;

static struct gpu_standing standing(enum gpu_state state, unsigned devices, unsigned open)
{
        struct gpu_standing it = { .devices = devices, .open = open, .verdict = { .state = state, .reason = "because" } };

        if (state == GPU_IDLE)
                it.verdict.idle_ns = 600 * NSEC_PER_SEC;
        return it;
}

static struct idle_verdict judged(struct gpu_standing it, enum gpu_on_idle on_idle)
{
        struct idle_verdict verdict = { .verdict = VERDICT_IDLE,
                                        .idle_ns = 300 * NSEC_PER_SEC,
                                        .look_again_ns = now_ns + 10 * NSEC_PER_SEC,
                                        .reason = "no activity for 5m" };

        gpu_judge_sleep(&it, on_idle, now_ns, &verdict);
        return verdict;
}

static void only_what_is_idle_or_unused_or_has_no_gpu_may_sleep(void **state)
{
        for (int it = 0; it < GPU_STATE_MAX; it++)
                for (int on_idle = GPU_ON_IDLE_REPORT; on_idle <= GPU_ON_IDLE_SLEEP; on_idle++)
                        for (unsigned open = 0; open <= 1; open++) {
                                struct gpu_standing has = standing(it, 1, open), has_not = standing(it, 0, 0);
                                bool may = (it == GPU_IDLE || it == GPU_UNUSED) && (on_idle == GPU_ON_IDLE_SLEEP || !open);

                                assert_int_equal(gpu_permits_sleep(&has, on_idle), may);
                                assert_int_equal(judged(has, on_idle).verdict == VERDICT_IDLE, may);
                                assert_true(gpu_permits_sleep(&has_not, on_idle));
                                assert_int_equal(judged(has_not, on_idle).verdict, VERDICT_IDLE);
                        }
}

static void what_would_sleep_but_for_report_is_told_apart(void **state)
{
        struct gpu_standing idle = standing(GPU_IDLE, 1, 1), closed = standing(GPU_IDLE, 1, 0), quiet = standing(GPU_QUIET, 1, 1);

        assert_true(gpu_would_permit_sleep(&idle, GPU_ON_IDLE_REPORT));
        assert_false(gpu_would_permit_sleep(&idle, GPU_ON_IDLE_SLEEP));
        assert_false(gpu_would_permit_sleep(&closed, GPU_ON_IDLE_REPORT));
        assert_false(gpu_would_permit_sleep(&quiet, GPU_ON_IDLE_REPORT));
}

static void what_keeps_it_awake_is_told_and_looked_at_again_soon(void **state)
{
        static const struct {
                enum gpu_state state;
                enum gpu_on_idle on_idle;
                enum verdict verdict;
                const char *reason;
        } table[] = {
                { GPU_ACTIVE, GPU_ON_IDLE_SLEEP, VERDICT_BUSY, "its GPU is active: because" },
                { GPU_UNKNOWN, GPU_ON_IDLE_SLEEP, VERDICT_UNKNOWN, "its GPU is unknown: because" },
                { GPU_UNKNOWN, GPU_ON_IDLE_REPORT, VERDICT_BUSY, "idle.gpu.onIdle is Report, and its GPU is unknown: because" },
                { GPU_STUCK, GPU_ON_IDLE_SLEEP, VERDICT_BUSY, "its GPU is stuck: because" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct idle_verdict verdict = judged(standing(table[i].state, 1, 1), table[i].on_idle);

                assert_int_equal(verdict.verdict, table[i].verdict);
                assert_string_equal(verdict.reason, table[i].reason);
                assert_int_equal(verdict.idle_ns, 0);
                assert_int_equal(verdict.look_again_ns, now_ns + 5 * NSEC_PER_SEC);
        }
        assert_string_equal(judged(standing(GPU_IDLE, 1, 1), GPU_ON_IDLE_SLEEP).reason,
                            "no activity for 5m, and its GPU is idle for 10m");
}

static void several_workloads_are_idle_only_together(void **state)
{
        struct gpu_standing idle = standing(GPU_IDLE, 2, 1), none = standing(GPU_ACTIVE, 0, 0), active = standing(GPU_ACTIVE, 1, 1),
                            all;
        struct gpu_standing_part parts[] = { { "a", &idle }, { "b", &none }, { "c", &active } };

        assert_int_equal(gpu_standing_all(parts, 2, &all), 0);
        assert_int_equal(all.devices, 2);
        assert_int_equal(all.open, 1);
        assert_int_equal(all.verdict.state, GPU_IDLE);
        assert_int_equal(gpu_standing_all(parts, 3, &all), 0);
        assert_int_equal(all.devices, 3);
        assert_int_equal(all.verdict.state, GPU_ACTIVE);
        assert_string_equal(all.verdict.reason, "c: because");
        assert_int_equal(gpu_standing_all(&parts[1], 1, &all), 0);
        assert_int_equal(all.devices, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_what_is_idle_or_unused_or_has_no_gpu_may_sleep),
                cmocka_unit_test(what_would_sleep_but_for_report_is_told_apart),
                cmocka_unit_test(what_keeps_it_awake_is_told_and_looked_at_again_soon),
                cmocka_unit_test(several_workloads_are_idle_only_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
