/* SPDX-License-Identifier: Apache-2.0 */
/* What decide() makes of what agents say about GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/decide_world.h"

/* Awake, and nothing but onIdle: Report keeps it so. */
static void world_reports(struct world *world)
{
        world_make(world, PHASE_AWAKE);
        world->policy.idle.gpu = (struct gpu_settings){ .after_ns = 1800 * second, .on_idle = GPU_ON_IDLE_REPORT };
        world->evidence.idle = false;
        world->evidence.only_gpu_report = true;
        world->evidence.gpus = 3;
}

static void what_only_report_keeps_awake_is_told_once(void **state)
{
        const struct decision *decision;
        struct world world;

        world_reports(&world);
        decision = look(&world);
        assert_int_equal(decision->machine.phase, PHASE_AWAKE);
        assert_true(says(decision, "GpuIdle", "needed it for 30m; with idle.gpu.onIdle: Sleep it would sleep"));
        assert_int_equal(decision->news, 1);

        world.conditions[0] = (struct status_condition){ .type = (char *)"GpuIdle", .reason = (char *)"Report", .holds = true };
        world.object.status.n_conditions = 1;
        decision = look(&world);
        assert_non_null(conditions_find(&decision->conditions, "GpuIdle"));
        assert_int_equal(decision->news, 0);
}

static void it_is_not_told_of_what_would_stay_awake_anyway(void **state)
{
        struct world world;

        world_reports(&world);
        world.evidence.only_gpu_report = false;
        assert_null(conditions_find(&look(&world)->conditions, "GpuIdle"));

        world_reports(&world);
        world.input.autoscaler = "web";
        assert_null(conditions_find(&look(&world)->conditions, "GpuIdle"));

        world_reports(&world);
        world.input.current = false;
        assert_null(conditions_find(&look(&world)->conditions, "GpuIdle"));

        world_reports(&world);
        world.policy.idle.gpu.on_idle = GPU_ON_IDLE_SLEEP; /* agents have not heard of it yet */
        assert_null(conditions_find(&look(&world)->conditions, "GpuIdle"));
}

static void a_sleep_remembers_the_gpus_that_it_frees(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        world.evidence.gpus = 3;
        assert_int_equal(look(&world)->machine.phase, PHASE_SLEEPING);
        assert_int_equal(world.decision.gpus_before, 3);

        world_make(&world, PHASE_SLEEPING); /* they are being closed */
        world.object.status.gpus_before = 3;
        assert_int_equal(look(&world)->gpus_before, 3);
}

static void what_others_scale_to_zero_is_not_ours_to_count(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        world.object.status.gpus_before = 3;
        world.evidence.gpus = 2;
        world.target.replicas = 0;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        assert_int_equal(world.decision.gpus_before, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_only_report_keeps_awake_is_told_once),
                cmocka_unit_test(it_is_not_told_of_what_would_stay_awake_anyway),
                cmocka_unit_test(a_sleep_remembers_the_gpus_that_it_frees),
                cmocka_unit_test(what_others_scale_to_zero_is_not_ours_to_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
