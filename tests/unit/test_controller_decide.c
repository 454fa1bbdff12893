/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/decide_world.h"

static void holds(struct world *world, const char *type, const char *message)
{
        world->conditions[world->object.status.n_conditions++] = (struct status_condition){
                .type = (char *)type, .reason = (char *)"Because", .message = (char *)message, .holds = true
        };
}

static void idle_everywhere_begins_a_sleep_with_a_new_epoch(void **state)
{
        struct world world;
        const struct decision *decision;

        world_make(&world, PHASE_AWAKE);
        world.target.replicas = 5;
        decision = look(&world);
        assert_int_equal(decision->machine.phase, PHASE_SLEEPING);
        assert_true(decision->changed && decision->write && decision->fresh_sleep);
        assert_int_equal(decision->reason, SLEEP_IDLE);
        assert_int_equal(decision->replicas_before, 5);
        assert_int_equal(decision->scale, SCALE_NOT);
}

static void unready(struct world *world)
{
        world->resolution.can_sleep = false;
}
static void unresolved(struct world *world)
{
        world->input.resolution = NULL;
}
static void busy(struct world *world)
{
        world->evidence.idle = false;
}
static void silent(struct world *world)
{
        world->evidence.missing[world->evidence.n_missing++] = "n2";
}
static void stale(struct world *world)
{
        world->input.current = false;
}
static void stale_target(struct world *world)
{
        world->target.stale = true;
}
static void unknown_target(struct world *world)
{
        world->target.known = false;
}
static void no_target(struct world *world)
{
        world->target.exists = false;
}
static void no_kind(struct world *world)
{
        world->target.problem = "has no scale subresource";
}
static void rival(struct world *world)
{
        world->input.rival = "older";
}
static void autoscaled(struct world *world)
{
        world->input.autoscaler = "hpa";
}
static void autoscaler_owns(struct world *world)
{
        world->policy.cluster.scaled_by = SCALED_BY_AUTOSCALER;
}
static void just_awake(struct world *world)
{
        world->machine.since_ns = begin_ns - 59 * second;
}
static void just_blocked(struct world *world)
{
        world->input.blocked_until_ns = begin_ns + second;
}
static void follows(struct world *world)
{
        world->input.leader = false;
}
static void dry_run(struct world *world)
{
        world->policy.dry_run = true;
}
static void no_round(struct world *world)
{
        world->input.round = false;
}
static void no_finalizer(struct world *world)
{
        world->object.has_finalizer = false;
}

/* What forbids a sleep, and the condition that says so. */
static const struct {
        const char *name;
        void (*arrange)(struct world *world);
        const char *type, *words;
        bool aborts; /* also one that has begun */
} obstacles[] = {
        { "a Service that cannot be held", unready, NULL, NULL, true },
        { "Services that have not been read", unresolved, NULL, NULL, true },
        { "a node at work", busy, NULL, NULL, true },
        { "a silent agent", silent, "AgentsMissing", "n2", true },
        { "an old view", stale, NULL, NULL, true },
        { "an old view of the target", stale_target, NULL, NULL, true },
        { "a target not seen yet", unknown_target, NULL, NULL, true },
        { "a missing target", no_target, NULL, NULL, true },
        { "a target that cannot be scaled", no_kind, NULL, NULL, true },
        { "an older policy of the same target", rival, "Conflict", "older", true },
        { "an autoscaler", autoscaled, "Autoscaled", "hpa", true },
        { "spec.scaledBy", autoscaler_owns, "Unsupported", "HorizontalPodAutoscaler", true },
        { "minAwake", just_awake, NULL, NULL, false },
        { "a sleep that was blocked", just_blocked, NULL, NULL, false },
        { "another leader", follows, NULL, NULL, false },
        { "a dry run", dry_run, "DryRun", "would be put to sleep", false },
        { "the next round", no_round, NULL, NULL, false },
        { "a finalizer to be written first", no_finalizer, NULL, NULL, false },
};

static void whatever_forbids_it_keeps_it_awake_and_says_so(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(obstacles); i++) {
                const struct decision *decision;
                struct world world;

                world_make(&world, PHASE_AWAKE);
                obstacles[i].arrange(&world);
                decision = look(&world);
                if (decision->machine.phase != PHASE_AWAKE || decision->changed || decision->scale != SCALE_NOT)
                        fail_msg("it sleeps in spite of %s", obstacles[i].name);
                if (obstacles[i].type && !says(decision, obstacles[i].type, obstacles[i].words))
                        fail_msg("no condition tells of %s", obstacles[i].name);
        }
}

static void whatever_forbids_it_ends_a_sleep_that_has_begun(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(obstacles); i++) {
                const struct decision *decision;
                struct world world;

                world_make(&world, PHASE_SLEEPING);
                world.evidence.quiet = true;
                obstacles[i].arrange(&world);
                decision = look(&world);
                if (obstacles[i].aborts && (decision->machine.phase != PHASE_AWAKE || decision->scale != SCALE_NOT))
                        fail_msg("it goes on sleeping in spite of %s", obstacles[i].name);
        }
}

static void minimum_and_rounds_are_waited_for(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        just_awake(&world);
        assert_int_equal(look(&world)->again_ns, begin_ns + second);
        world_make(&world, PHASE_AWAKE);
        no_round(&world);
        assert_true(look(&world)->wants_round);
        world_make(&world, PHASE_AWAKE);
        no_finalizer(&world);
        assert_true(look(&world)->add_finalizer);
}

static void the_scale_goes_to_zero_only_when_all_are_quiet_and_hold(void **state)
{
        for (int votes = 0; votes < 4; votes++) {
                const struct decision *decision;
                struct world world;

                world_make(&world, PHASE_SLEEPING);
                world.evidence.quiet = votes & 1;
                world.evidence.programmed = votes & 2;
                decision = look(&world);
                assert_int_equal(decision->scale, votes == 3 ? SCALE_DOWN : SCALE_NOT);
                assert_int_equal(decision->machine.phase, PHASE_SLEEPING);
                assert_false(decision->changed);
        }
}

static void it_is_asleep_once_the_target_has_no_replicas_and_no_pod_looks_alive(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        world.target.replicas = 0;
        world.input.zero_since_ns = begin_ns - second / 2;
        assert_int_equal(look(&world)->machine.phase, PHASE_SLEEPING);
        assert_int_equal(world.decision.again_ns, begin_ns + second / 2);
        world.input.zero_since_ns = begin_ns - DECIDE_LEFTOVER_NS;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        world.input.zero_since_ns = begin_ns;
        world.resolution.n_ready = 0;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        assert_false(world.decision.fresh_sleep);
}

static void a_node_that_does_not_answer_blocks_the_sleep_and_is_named(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        world.machine.since_ns = begin_ns - DECIDE_SLEEPING_MAX_NS;
        world.evidence.quiet = true;
        world.evidence.programmed = false;
        world.evidence.unprogrammed_node = "n7";
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_true(world.decision.blocked);
        assert_true(says(&world.decision, "SleepBlocked", "n7"));

        world.evidence.programmed = true;
        world.evidence.quiet = false;
        world.evidence.unquiet_node = "n8";
        look(&world);
        assert_true(says(&world.decision, "SleepBlocked", "n8"));
        world.evidence.busy_node = "n8";
        world.evidence.busy_reason = "open connections (idle.connections is Hold)";
        look(&world);
        assert_true(says(&world.decision, "SleepBlocked", "n8 saw it at work: open connections"));
        world.evidence.busy_node = "n9";
        look(&world);
        assert_false(says(&world.decision, "SleepBlocked", "open connections"));
}

static void demand_ends_a_sleep_that_has_begun(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        world.evidence.quiet = true;
        asked(&world);
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_int_equal(world.decision.scale, SCALE_NOT);
        assert_true(world.decision.woken);
        assert_int_equal(world.decision.cause, WAKE_PACKET);
}

static void a_scale_by_hand_ends_a_sleep_that_has_begun(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        world.evidence.quiet = true;
        world.target.replicas = 3;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_int_equal(world.decision.scale, SCALE_NOT);
}

static void demand_wakes_whoever_leads(void **state)
{
        for (int leader = 0; leader < 2; leader++) {
                struct world world;

                world_make(&world, PHASE_ASLEEP);
                world.input.leader = leader;
                asked(&world);
                assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
                assert_true(world.decision.write && world.decision.woken);
                assert_int_equal(world.decision.scale, SCALE_NOT); /* the phase is written first */
        }
}

static void nothing_is_held_in_a_back_off_so_demand_is_old(void **state)
{
        struct world world;

        world_make(&world, PHASE_ASLEEP);
        world.machine.hold_again_ns = begin_ns + second;
        asked(&world);
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
}

static void a_follower_leaves_a_sleep_to_the_leader_for_a_moment(void **state)
{
        struct world world;

        world_make(&world, PHASE_SLEEPING);
        follows(&world);
        asked(&world);
        assert_int_equal(look(&world)->machine.phase, PHASE_SLEEPING);
        assert_int_equal(world.decision.again_ns, begin_ns + DECIDE_LEADERLESS_NS);
        assert_false(world.decision.write);
        world.input.now_ns += DECIDE_LEADERLESS_NS;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING); /* the leader's change may come yet */
        assert_true(world.decision.write);

        world.target.replicas = 0; /* the leader died between its two steps */
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
}

static void waking_scales_to_the_replicas_before_or_as_configured(void **state)
{
        struct world world;

        world_make(&world, PHASE_WAKING);
        assert_int_equal(look(&world)->scale, SCALE_UP);
        assert_int_equal(world.decision.replicas, 2);
        world.object.status.replicas_before = 0;
        assert_int_equal(look(&world)->replicas, 1);
        world.policy.cluster.replicas = 4;
        assert_int_equal(look(&world)->replicas, 4);
}

static void a_waking_target_at_zero_is_repaired_by_anybody(void **state)
{
        struct world world;

        world_make(&world, PHASE_WAKING);
        follows(&world);
        world.input.zero_since_ns = begin_ns;
        assert_int_equal(look(&world)->scale, SCALE_NOT);
        assert_int_equal(world.decision.again_ns, begin_ns + DECIDE_LEADERLESS_NS);
        world.input.now_ns += DECIDE_LEADERLESS_NS;
        assert_int_equal(look(&world)->scale, SCALE_UP);
        world.input.now_ns = begin_ns;
        world.input.woke = true;
        assert_int_equal(look(&world)->scale, SCALE_UP);
        world.input.woke = false; /* it was asleep for long: the wake is new */
        world.input.zero_since_ns = begin_ns - 100 * second;
        world.machine.since_ns = begin_ns - second / 2;
        assert_int_equal(look(&world)->scale, SCALE_NOT);
        world.input.woke = true;
        world.input.has_been_up = true; /* a dead leader's change has come late, and packets wait */
        assert_int_equal(look(&world)->scale, SCALE_UP);
        world.machine.hold_deadline_ns = 0;
        assert_int_equal(look(&world)->scale, SCALE_NOT);
}

static void it_is_awake_once_an_endpoint_is_ready(void **state)
{
        struct world world;

        world_make(&world, PHASE_WAKING);
        world.target.replicas = 2;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        world.resolution.n_ready = 1;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        world.target.replicas = 0; /* left over from before the sleep */
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
}

static void a_wake_that_is_not_ready_in_time_has_failed_and_holds_again_later(void **state)
{
        struct world world;

        world_make(&world, PHASE_WAKING);
        world.target.replicas = 2;
        world.input.has_been_up = true;
        world.input.now_ns = begin_ns + 29 * second;
        assert_true(look(&world)->wake_failed);
        assert_true(world.decision.changed);
        assert_int_equal(world.decision.machine.phase, PHASE_WAKING);
        assert_false(phase_holds(&world.decision.machine));
        assert_true(says(&world.decision, "WakeFailed", "not ready within 30s"));

        world.machine = world.decision.machine;
        holds(&world, "WakeFailed", "not ready within 30s: …");
        world.input.now_ns += second;
        world.input.diagnosis_reason = "Unschedulable";
        world.input.diagnosis = "0/2 nodes are available";
        look(&world);
        assert_true(world.decision.changed && phase_holds(&world.decision.machine));
        assert_true(says(&world.decision, "WakeFailed", "0/2 nodes"));

        world.machine = world.decision.machine;
        asked(&world);
        look(&world);
        assert_int_equal(world.decision.machine.hold_deadline_ns, world.input.now_ns + 30 * second);
        world.resolution.n_ready = 1;
        look(&world);
        assert_int_equal(world.decision.machine.phase, PHASE_AWAKE);
        assert_null(conditions_find(&world.decision.conditions, "WakeFailed"));
}

static void what_others_scale_is_the_truth(void **state)
{
        struct world world;

        world_make(&world, PHASE_ASLEEP);
        world.target.replicas = 1;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        assert_int_equal(world.decision.cause, WAKE_SCALED);
        assert_int_equal(world.decision.scale, SCALE_NOT);
        world.resolution.n_ready = 1;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);

        world_make(&world, PHASE_AWAKE);
        world.target.replicas = 0;
        world.input.replicas_seen = 7;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        assert_int_equal(world.decision.reason, SLEEP_SCALED);
        assert_int_equal(world.decision.replicas_before, 7);
        assert_true(world.decision.fresh_sleep); /* or an old demand could wake it */

        world_make(&world, PHASE_WAKING);
        world.input.has_been_up = true;
        world.object.status.last_wake.cause = (char *)"Manual";
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
        assert_true(world.decision.fresh_sleep);                /* likewise */
        world.object.status.last_wake.cause = (char *)"Packet"; /* somebody waits */
        assert_int_equal(look(&world)->scale, SCALE_UP);
}

static void nothing_is_asleep_before_it_has_its_finalizer(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        world.target.replicas = 0;
        world.object.has_finalizer = false;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_true(world.decision.add_finalizer);

        world.object.has_finalizer = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_ASLEEP);
}

static void an_operator_is_obeyed_and_the_annotation_taken_away(void **state)
{
        struct world world;

        world_make(&world, PHASE_ASLEEP);
        world.object.wake_requested = (char *)"now";
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        assert_int_equal(world.decision.cause, WAKE_MANUAL);
        assert_false(world.decision.clear_wake);
        world_make(&world, PHASE_WAKING);
        world.object.wake_requested = (char *)"now";
        assert_true(look(&world)->clear_wake);

        world_make(&world, PHASE_AWAKE);
        world.object.sleep_requested = (char *)"now";
        just_awake(&world);
        busy(&world);
        no_round(&world);
        assert_int_equal(look(&world)->machine.phase, PHASE_SLEEPING);
        assert_int_equal(world.decision.reason, SLEEP_MANUAL);
        silent(&world);
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_true(world.decision.clear_sleep && world.decision.refused);

        world_make(&world, PHASE_SLEEPING);
        world.object.status.last_sleep_reason = (char *)"Manual";
        busy(&world);
        world.evidence.quiet = true;
        assert_int_equal(look(&world)->scale, SCALE_DOWN);
}

static void one_who_asks_for_both_does_not_have_it_go_round_in_circles(void **state)
{
        for (enum phase phase = 0; phase < PHASE_MAX; phase++) {
                struct world world;

                world_make(&world, phase);
                world.object.wake_requested = world.object.sleep_requested = (char *)"now";
                look(&world);
                if (phase == PHASE_ASLEEP)
                        assert_int_equal(world.decision.machine.phase, PHASE_WAKING);
                else
                        assert_true(!world.decision.changed && (world.decision.clear_wake || world.decision.clear_sleep));
        }
}

static void a_deleted_policy_leaves_nothing_asleep(void **state)
{
        struct world world;

        world_make(&world, PHASE_ASLEEP);
        world.object.metadata.deleting = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_WAKING);
        assert_int_equal(world.decision.cause, WAKE_DELETED);
        assert_false(world.decision.remove_finalizer);

        world_make(&world, PHASE_WAKING);
        world.object.metadata.deleting = true;
        assert_false(look(&world)->remove_finalizer);
        world.target.replicas = 2;
        world.input.has_been_up = true;
        assert_false(look(&world)->remove_finalizer);
        world.input.now_ns = begin_ns + 29 * second; /* it will not be ready: clients are not to wait for that */
        assert_true(look(&world)->remove_finalizer);

        world_make(&world, PHASE_SLEEPING);
        world.object.metadata.deleting = true;
        world.evidence.quiet = true;
        assert_int_equal(look(&world)->machine.phase, PHASE_AWAKE);
        assert_false(world.decision.remove_finalizer);

        world_make(&world, PHASE_AWAKE);
        world.object.metadata.deleting = true;
        assert_true(look(&world)->remove_finalizer);
        assert_int_equal(world.decision.machine.phase, PHASE_AWAKE);
        world.object.has_finalizer = false;
        assert_false(look(&world)->remove_finalizer || world.decision.add_finalizer);

        world_make(&world, PHASE_ASLEEP);
        world.object.metadata.deleting = true;
        no_target(&world);
        assert_true(look(&world)->remove_finalizer);

        world_make(&world, PHASE_ASLEEP);
        world.object.metadata.deleting = true;
        unknown_target(&world);
        world.target.problem = "the API server answered: too many requests";
        assert_false(look(&world)->remove_finalizer);
        world.target.final = true;
        assert_true(look(&world)->remove_finalizer);
}

static void the_same_client_right_after_each_sleep_doubles_the_idle_time(void **state)
{
        static const struct {
                const char *before;
                unsigned slept_seconds_ago;
                uint32_t factor, wanted;
        } cases[] = {
                { "10.0.0.1:5", 29, 1, 2 }, { "10.0.0.1:5", 29, 16, 16 }, { "10.0.0.1:5", 31, 4, 1 },
                { "10.0.0.2:5", 29, 4, 1 }, { NULL, 29, 4, 1 },           { "10.0.0.11:5", 29, 4, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct world world;

                world_make(&world, PHASE_ASLEEP);
                world.object.status.last_wake.source = (char *)cases[i].before;
                world.object.status.last_sleep_realtime_ns = realtime_ns - cases[i].slept_seconds_ago * second;
                world.object.status.idle_factor = cases[i].factor;
                asked(&world);
                assert_int_equal(look(&world)->idle_factor, cases[i].wanted);
                if (cases[i].wanted > 1)
                        assert_true(says(&world.decision, "Flapping", "10.0.0.1 "));
                else
                        assert_null(conditions_find(&world.decision.conditions, "Flapping"));
        }
}

static void only_what_did_not_hold_before_is_news(void **state)
{
        struct world world;

        world_make(&world, PHASE_AWAKE);
        autoscaled(&world);
        silent(&world);
        holds(&world, "AgentsMissing", "before");
        look(&world);
        assert_int_equal(world.decision.conditions.n, 2);
        assert_string_equal(world.decision.conditions.entries[0].type, "Autoscaled");
        assert_int_equal(world.decision.news, 1);
}

static void a_machine_follows_the_status(void **state)
{
        struct phase_machine machine;
        struct world world;

        world_make(&world, PHASE_WAKING);
        world.object.status.since_realtime_ns = realtime_ns - 5 * second;
        decide_seed(&world.object, begin_ns, realtime_ns, &machine);
        assert_int_equal(machine.since_ns, begin_ns - 5 * second);
        assert_int_equal(machine.hold_deadline_ns, begin_ns + 25 * second);
        assert_true(phase_holds(&machine));

        world.object.status.holding = false;
        holds(&world, "WakeFailed", "");
        decide_seed(&world.object, begin_ns, realtime_ns, &machine);
        assert_false(phase_holds(&machine));
        assert_int_equal(machine.hold_deadline_ns, 0);

        world.object.status.since_realtime_ns = realtime_ns + 100 * second; /* another clock's future */
        decide_seed(&world.object, begin_ns, realtime_ns, &machine);
        assert_int_equal(machine.since_ns, begin_ns);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(idle_everywhere_begins_a_sleep_with_a_new_epoch),
                cmocka_unit_test(whatever_forbids_it_keeps_it_awake_and_says_so),
                cmocka_unit_test(whatever_forbids_it_ends_a_sleep_that_has_begun),
                cmocka_unit_test(minimum_and_rounds_are_waited_for),
                cmocka_unit_test(the_scale_goes_to_zero_only_when_all_are_quiet_and_hold),
                cmocka_unit_test(it_is_asleep_once_the_target_has_no_replicas_and_no_pod_looks_alive),
                cmocka_unit_test(a_node_that_does_not_answer_blocks_the_sleep_and_is_named),
                cmocka_unit_test(demand_ends_a_sleep_that_has_begun),
                cmocka_unit_test(a_scale_by_hand_ends_a_sleep_that_has_begun),
                cmocka_unit_test(demand_wakes_whoever_leads),
                cmocka_unit_test(nothing_is_held_in_a_back_off_so_demand_is_old),
                cmocka_unit_test(a_follower_leaves_a_sleep_to_the_leader_for_a_moment),
                cmocka_unit_test(waking_scales_to_the_replicas_before_or_as_configured),
                cmocka_unit_test(a_waking_target_at_zero_is_repaired_by_anybody),
                cmocka_unit_test(it_is_awake_once_an_endpoint_is_ready),
                cmocka_unit_test(a_wake_that_is_not_ready_in_time_has_failed_and_holds_again_later),
                cmocka_unit_test(what_others_scale_is_the_truth),
                cmocka_unit_test(nothing_is_asleep_before_it_has_its_finalizer),
                cmocka_unit_test(an_operator_is_obeyed_and_the_annotation_taken_away),
                cmocka_unit_test(one_who_asks_for_both_does_not_have_it_go_round_in_circles),
                cmocka_unit_test(a_deleted_policy_leaves_nothing_asleep),
                cmocka_unit_test(the_same_client_right_after_each_sleep_doubles_the_idle_time),
                cmocka_unit_test(only_what_did_not_hold_before_is_news),
                cmocka_unit_test(a_machine_follows_the_status),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
