/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of scale that may have been made, and are not seen yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/decide_world.h"

static void demand(struct world *world)
{
        asked(world);
}
static void activity(struct world *world)
{
        world->evidence.idle = false;
}
static void a_stale_view(struct world *world)
{
        world->input.current = false;
}
static void deletion(struct world *world)
{
        world->object.metadata.deleting = true;
}
static void an_operator(struct world *world)
{
        world->object.wake_requested = (char *)"now";
}
static void the_end_of_its_time(struct world *world)
{
        world->machine.since_ns = begin_ns - DECIDE_SLEEPING_MAX_NS;
}

static void a_target_that_may_be_at_zero_is_woken_and_never_called_awake(void **state)
{
        static void (*const ends[])(
                struct world *) = { demand, activity, a_stale_view, deletion, an_operator, the_end_of_its_time };

        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                struct world world;

                world_make(&world, PHASE_SLEEPING);
                world.target.in_doubt = true;
                ends[i](&world);
                assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
                assert_true(phase_holds(&world.decision.machine));
                assert_false(world.decision.remove_finalizer);
        }
}

static void a_sleep_in_doubt_is_asked_for_again_while_all_is_quiet(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        world.target.in_doubt = true;
        world.evidence.quiet = true;
        assert_int_equal(look(&world)->scale, SCALE_DOWN);
}

static void a_wake_in_doubt_scales_up_and_believes_no_endpoint(void **state)
{
        struct world world;

        world_make(&world, PHASE_WAKING);
        world.target.replicas = 2;
        world.target.in_doubt = true;
        world.resolution.n_ready = 2;
        world.input.has_been_up = true;
        assert_int_equal(look(&world)->scale, SCALE_UP);
        assert_int_equal(world.decision.machine.phase, PHASE_WAKING);
        world.target.in_doubt = false;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
}

static void a_finalizer_stays_while_the_target_may_be_at_zero(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        world.object.metadata.deleting = true;
        world.target.in_doubt = true;
        assert_false(look(&world)->remove_finalizer);
        world.target.in_doubt = false;
        assert_true(look(&world)->remove_finalizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_target_that_may_be_at_zero_is_woken_and_never_called_awake),
                cmocka_unit_test(a_sleep_in_doubt_is_asked_for_again_while_all_is_quiet),
                cmocka_unit_test(a_wake_in_doubt_scales_up_and_believes_no_endpoint),
                cmocka_unit_test(a_finalizer_stays_while_the_target_may_be_at_zero),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
