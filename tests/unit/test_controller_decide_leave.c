/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that may no longer do anything leave nothing asleep: younger ones of a target, and those whose spec is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/decide_world.h"

static void rivalled_make(struct world *world, enum phase phase)
{
        world_make(world, phase);
        world->input.rival = "older";
        world->object.status.replicas_before = 5;
}

static void a_younger_policy_wakes_what_it_has_put_to_sleep_and_only_then_does_nothing(void **state)
{
        struct world world;

        rivalled_make(&world, PHASE_ASLEEP);
        world.object.metadata.deleting = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        assert_false(world.decision.remove_finalizer);

        rivalled_make(&world, PHASE_WAKING);
        world.object.metadata.deleting = true;
        assert_int_equal(look(&world)->scale, SCALE_UP);
        assert_int_equal(world.decision.replicas, 5);
        assert_int_equal(world.decision.machine.phase, PHASE_WAKING);
        assert_false(world.decision.remove_finalizer);

        world.target.replicas = 5;
        world.input.has_been_up = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_int_equal(world.decision.scale, SCALE_NOT);

        rivalled_make(&world, PHASE_AWAKE);
        world.object.metadata.deleting = true;
        assert_true(look(&world)->remove_finalizer);
}

static void a_younger_policy_ends_a_sleep_that_has_begun(void **state)
{
        struct world world;

        rivalled_make(&world, PHASE_SLEEPING);
        world.evidence.quiet = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_int_equal(world.decision.scale, SCALE_NOT);

        world.target.in_doubt = true; /* its change to zero may come yet */
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        rivalled_make(&world, PHASE_SLEEPING);
        world.target.replicas = 0;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
}

static void a_younger_policy_scales_up_once_and_holds_nobody_for_ever(void **state)
{
        struct world world;

        rivalled_make(&world, PHASE_WAKING);
        world.input.has_been_up = true; /* the older one has put it to sleep since */
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_int_equal(world.decision.scale, SCALE_NOT);

        rivalled_make(&world, PHASE_WAKING);
        world.machine.hold_deadline_ns = begin_ns;
        assert_true(look(&world)->wake_failed);
        assert_false(phase_holds(&world.decision.machine));
}

static void a_younger_policy_waits_until_its_target_is_known(void **state)
{
        struct world world;

        rivalled_make(&world, PHASE_ASLEEP);
        world.target.known = false;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        world.target.final = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        rivalled_make(&world, PHASE_ASLEEP);
        world.target.exists = false;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
}

static struct decision unreadable(struct world *world, enum phase phase, const struct target_state *target)
{
        struct decision decision;

        world_make(world, phase);
        world->object.policy = NULL;
        world->object.metadata.deleting = true;
        world->object.status.replicas_before = 5;
        decide_unreadable(&world->object, target, &decision);
        return decision;
}

static void what_a_wrong_policy_has_put_to_sleep_is_scaled_up_before_it_goes(void **state)
{
        static const enum phase phases[] = { PHASE_SLEEPING, PHASE_ASLEEP, PHASE_WAKING };
        struct target_state target = { .known = true, .exists = true };

        for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                struct decision decision;
                struct world world;

                target.replicas = 0;
                decision = unreadable(&world, phases[i], &target);
                assert_int_equal(decision.scale, SCALE_UP);
                assert_int_equal(decision.replicas, 5);
                assert_false(decision.remove_finalizer);
                target.replicas = 5;
                decision = unreadable(&world, phases[i], &target);
                assert_int_equal(decision.scale, SCALE_NOT);
                assert_true(decision.remove_finalizer);
                target.in_doubt = true;
                decision = unreadable(&world, phases[i], &target);
                assert_int_equal(decision.scale, SCALE_UP);
                assert_false(decision.remove_finalizer);
                target.in_doubt = false;
        }
}

static void a_wrong_policy_goes_once_there_is_nothing_to_be_woken(void **state)
{
        struct target_state target = { .known = false, .exists = true };
        struct world world;

        assert_false(unreadable(&world, PHASE_ASLEEP, &target).remove_finalizer); /* it may be there */
        target.final = true;
        assert_true(unreadable(&world, PHASE_ASLEEP, &target).remove_finalizer);
        target = (struct target_state){ .known = true };
        assert_true(unreadable(&world, PHASE_ASLEEP, &target).remove_finalizer);
        assert_true(unreadable(&world, PHASE_ASLEEP, NULL).remove_finalizer);
        target.exists = true; /* at zero by other hands */
        assert_true(unreadable(&world, PHASE_AWAKE, &target).remove_finalizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_younger_policy_wakes_what_it_has_put_to_sleep_and_only_then_does_nothing),
                cmocka_unit_test(a_younger_policy_ends_a_sleep_that_has_begun),
                cmocka_unit_test(a_younger_policy_scales_up_once_and_holds_nobody_for_ever),
                cmocka_unit_test(a_younger_policy_waits_until_its_target_is_known),
                cmocka_unit_test(what_a_wrong_policy_has_put_to_sleep_is_scaled_up_before_it_goes),
                cmocka_unit_test(a_wrong_policy_goes_once_there_is_nothing_to_be_woken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
