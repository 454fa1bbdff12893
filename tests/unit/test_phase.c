/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/time.h"
#include "policy/phase.h"

enum {
        HOLD = PHASE_ACTION_HOLD,
        START = PHASE_ACTION_START,
        STOP = PHASE_ACTION_STOP,
        RELEASE = PHASE_ACTION_RELEASE,
        REFUSE = PHASE_ACTION_REFUSE,
        VERIFY = PHASE_ACTION_VERIFY,
};

static const uint64_t second = NSEC_PER_SEC;
static const uint64_t begin_ns = 1000 * NSEC_PER_SEC;

static const struct phase_settings settings = {
        .min_awake_ns = 60 * NSEC_PER_SEC,
        .hold_timeout_ns = 30 * NSEC_PER_SEC,
        .quiet_ns = 100 * NSEC_PER_MSEC,
};

/* The states that a table row can begin in, all at begin_ns. */
enum state {
        AWAKE,
        SLEEPING,
        ASLEEP,
        ASLEEP_BACKOFF, /* one failure, holds again after 1 s */
        WAKING,         /* by an operator: no packet waits */
        WAKING_PENDING, /* a packet waits since begin_ns */
        WAKING_BACKOFF, /* as ASLEEP_BACKOFF */
        STATE_MAX,
};

static const char *const state_names[STATE_MAX] = {
        "awake", "sleeping", "asleep", "asleep in a back-off", "waking", "waking with a packet", "waking in a back-off",
};

static struct phase_machine machine_in(enum state state)
{
        static const enum phase phases[STATE_MAX] = {
                PHASE_AWAKE, PHASE_SLEEPING, PHASE_ASLEEP, PHASE_ASLEEP, PHASE_WAKING, PHASE_WAKING, PHASE_WAKING,
        };
        struct phase_machine machine = { .phase = phases[state], .since_ns = begin_ns };

        if (state == SLEEPING)
                machine.quiet_deadline_ns = begin_ns + settings.quiet_ns;
        if (state == WAKING_PENDING)
                machine.hold_deadline_ns = begin_ns + settings.hold_timeout_ns;
        if (state == ASLEEP_BACKOFF || state == WAKING_BACKOFF) {
                machine.failures = 1;
                machine.hold_again_ns = begin_ns + second;
        }
        return machine;
}

struct expectation {
        enum phase to;
        uint32_t actions;
        bool note;
        uint64_t deadline_ns; /* afterwards, from begin_ns on; 0: none */
};

#define A PHASE_AWAKE
#define S PHASE_SLEEPING
#define Z PHASE_ASLEEP
#define W PHASE_WAKING
#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static void check(enum state state, enum phase_event event, uint64_t after_ns, const struct expectation *expected)
{
        struct phase_machine machine = machine_in(state);
        enum phase from = machine.phase;
        struct phase_transition transition;
        uint64_t deadline;

        phase_step(&machine, &settings, event, begin_ns + after_ns, &transition);
        deadline = phase_deadline(&machine);
        deadline = deadline ? deadline - begin_ns : 0;

        if (transition.from != from || transition.to != expected->to || machine.phase != expected->to ||
            transition.actions != expected->actions || !!transition.note != expected->note || deadline != expected->deadline_ns)
                fail_msg("%s + %s after %llu ms: %s, actions %#x, note %s, deadline %llu ms; expected %s, %#x, %s, %llu ms",
                         state_names[state], phase_event_to_string(event), (unsigned long long)(after_ns / MS),
                         phase_to_string(machine.phase), transition.actions, transition.note ?: "none",
                         (unsigned long long)(deadline / MS), phase_to_string(expected->to), expected->actions,
                         expected->note ? "some" : "none", (unsigned long long)(expected->deadline_ns / MS));
        if (machine.since_ns != (transition.to == from ? begin_ns : begin_ns + after_ns))
                fail_msg("%s + %s: the phase's beginning is wrong", state_names[state], phase_event_to_string(event));
}

static void every_event_in_every_phase_before_any_deadline(void **unused)
{
        /* 10 ms after the state began: no deadline has passed, minAwake has not either. */
        static const struct expectation table[STATE_MAX][PHASE_EVENT_MAX] = {
                [AWAKE] = {
                        [PHASE_EVENT_IDLE] = { A, 0, true, 0 },
                        [PHASE_EVENT_ACTIVE] = { A, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { A, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { A, 0, false, 0 },
                        [PHASE_EVENT_STARTED] = { A, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_WAKE] = { A, 0, true, 0 },
                        [PHASE_EVENT_SLEEP] = { S, HOLD, false, 110 * MS },
                        [PHASE_EVENT_TIME] = { A, 0, false, 0 },
                },
                [SLEEPING] = {
                        [PHASE_EVENT_IDLE] = { S, 0, false, 100 * MS },
                        [PHASE_EVENT_ACTIVE] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_QUIET] = { S, 0, true, 100 * MS },
                        [PHASE_EVENT_DEMAND] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_STARTED] = { S, 0, false, 100 * MS },
                        [PHASE_EVENT_READY] = { S, 0, false, 100 * MS },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_SLEEP] = { S, 0, true, 100 * MS },
                        [PHASE_EVENT_TIME] = { S, 0, false, 100 * MS },
                },
                [ASLEEP] = {
                        [PHASE_EVENT_IDLE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { Z, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, START, false, 30 * SEC + 10 * MS },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, START, false, 0 },
                        [PHASE_EVENT_SLEEP] = { Z, 0, true, 0 },
                        [PHASE_EVENT_TIME] = { Z, 0, false, 0 },
                },
                [ASLEEP_BACKOFF] = {
                        [PHASE_EVENT_IDLE] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_ACTIVE] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_QUIET] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_DEMAND] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_WAKE] = { W, START, false, 1 * SEC },
                        [PHASE_EVENT_SLEEP] = { Z, 0, true, 1 * SEC },
                        [PHASE_EVENT_TIME] = { Z, 0, false, 1 * SEC },
                },
                [WAKING] = {
                        [PHASE_EVENT_IDLE] = { W, 0, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { W, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { W, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, 0, false, 30 * SEC + 10 * MS },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, 0, true, 0 },
                        [PHASE_EVENT_SLEEP] = { W, 0, true, 0 },
                        [PHASE_EVENT_TIME] = { W, 0, false, 0 },
                },
                [WAKING_PENDING] = {
                        [PHASE_EVENT_IDLE] = { W, 0, false, 30 * SEC },
                        [PHASE_EVENT_ACTIVE] = { W, 0, false, 30 * SEC },
                        [PHASE_EVENT_QUIET] = { W, 0, false, 30 * SEC },
                        [PHASE_EVENT_DEMAND] = { W, 0, false, 30 * SEC },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 30 * SEC },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { W, START, false, 30 * SEC },
                        [PHASE_EVENT_WAKE] = { W, 0, true, 30 * SEC },
                        [PHASE_EVENT_SLEEP] = { W, 0, true, 30 * SEC },
                        [PHASE_EVENT_TIME] = { W, 0, false, 30 * SEC },
                },
                [WAKING_BACKOFF] = {
                        [PHASE_EVENT_IDLE] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_ACTIVE] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_QUIET] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_DEMAND] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 1 * SEC },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 1 * SEC },
                        [PHASE_EVENT_WAKE] = { W, 0, true, 1 * SEC },
                        [PHASE_EVENT_SLEEP] = { W, 0, true, 1 * SEC },
                        [PHASE_EVENT_TIME] = { W, 0, false, 1 * SEC },
                },
        };

        for (int state = 0; state < STATE_MAX; state++)
                for (int event = 0; event < PHASE_EVENT_MAX; event++)
                        check((enum state)state, (enum phase_event)event, 10 * MS, &table[state][event]);
}

static void every_event_in_every_phase_after_its_deadline(void **unused)
{
        /* 60 s after the state began: its deadline passed unnoticed, and minAwake is over. */
        static const struct expectation table[STATE_MAX][PHASE_EVENT_MAX] = {
                [AWAKE] = {
                        [PHASE_EVENT_IDLE] = { S, HOLD, false, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_ACTIVE] = { A, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { A, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { A, 0, false, 0 },
                        [PHASE_EVENT_STARTED] = { A, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_WAKE] = { A, 0, true, 0 },
                        [PHASE_EVENT_SLEEP] = { S, HOLD, false, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_TIME] = { A, 0, false, 0 },
                },
                [SLEEPING] = {
                        [PHASE_EVENT_IDLE] = { S, VERIFY, false, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_ACTIVE] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_QUIET] = { Z, STOP, false, 0 },
                        [PHASE_EVENT_DEMAND] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_STARTED] = { S, VERIFY, false, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_READY] = { S, VERIFY, false, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_SLEEP] = { S, VERIFY, true, 60 * SEC + 100 * MS },
                        [PHASE_EVENT_TIME] = { S, VERIFY, false, 60 * SEC + 100 * MS },
                },
                [ASLEEP] = {
                        [PHASE_EVENT_IDLE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { Z, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, START, false, 90 * SEC },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, START, false, 0 },
                        [PHASE_EVENT_SLEEP] = { Z, 0, true, 0 },
                        [PHASE_EVENT_TIME] = { Z, 0, false, 0 },
                },
                [ASLEEP_BACKOFF] = {
                        [PHASE_EVENT_IDLE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_QUIET] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, HOLD | START, false, 90 * SEC },
                        [PHASE_EVENT_STARTED] = { W, HOLD, false, 0 },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, HOLD | START, false, 0 },
                        [PHASE_EVENT_SLEEP] = { Z, HOLD, true, 0 },
                        [PHASE_EVENT_TIME] = { Z, HOLD, false, 0 },
                },
                [WAKING] = {
                        [PHASE_EVENT_IDLE] = { W, 0, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { W, 0, false, 0 },
                        [PHASE_EVENT_QUIET] = { W, 0, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, 0, false, 90 * SEC },
                        [PHASE_EVENT_STARTED] = { W, 0, false, 0 },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, 0, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, 0, true, 0 },
                        [PHASE_EVENT_SLEEP] = { W, 0, true, 0 },
                        [PHASE_EVENT_TIME] = { W, 0, false, 0 },
                },
                [WAKING_PENDING] = {
                        [PHASE_EVENT_IDLE] = { W, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_ACTIVE] = { W, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_QUIET] = { W, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_DEMAND] = { W, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_STARTED] = { W, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_READY] = { A, RELEASE, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, REFUSE, false, 61 * SEC },
                        [PHASE_EVENT_WAKE] = { W, REFUSE, true, 61 * SEC },
                        [PHASE_EVENT_SLEEP] = { W, REFUSE, true, 61 * SEC },
                        [PHASE_EVENT_TIME] = { W, REFUSE, false, 61 * SEC },
                },
                [WAKING_BACKOFF] = {
                        [PHASE_EVENT_IDLE] = { W, HOLD, false, 0 },
                        [PHASE_EVENT_ACTIVE] = { W, HOLD, false, 0 },
                        [PHASE_EVENT_QUIET] = { W, HOLD, false, 0 },
                        [PHASE_EVENT_DEMAND] = { W, HOLD, false, 90 * SEC },
                        [PHASE_EVENT_STARTED] = { W, HOLD, false, 0 },
                        [PHASE_EVENT_READY] = { A, 0, false, 0 },
                        [PHASE_EVENT_GONE] = { Z, HOLD, false, 0 },
                        [PHASE_EVENT_WAKE] = { W, HOLD, true, 0 },
                        [PHASE_EVENT_SLEEP] = { W, HOLD, true, 0 },
                        [PHASE_EVENT_TIME] = { W, HOLD, false, 0 },
                },
        };

        for (int state = 0; state < STATE_MAX; state++)
                for (int event = 0; event < PHASE_EVENT_MAX; event++)
                        check((enum state)state, (enum phase_event)event, 60 * SEC, &table[state][event]);
}

static void a_phase_begins_with_what_it_needs(void **unused)
{
        static const uint32_t actions[PHASE_MAX] = { 0, HOLD, HOLD, HOLD };
        struct phase_transition transition;
        struct phase_machine machine;

        for (int phase = 0; phase < PHASE_MAX; phase++) {
                phase_begin(&machine, &settings, (enum phase)phase, begin_ns, &transition);
                assert_int_equal(machine.phase, phase);
                assert_int_equal(machine.since_ns, begin_ns);
                assert_int_equal(transition.from, phase);
                assert_int_equal(transition.to, phase);
                assert_int_equal(transition.actions, actions[phase]);
                assert_int_equal(phase_deadline(&machine), phase == S ? begin_ns + settings.quiet_ns : 0);
                assert_int_equal(phase_holds(&machine), phase != A);
        }
}

static void the_backoff_doubles_with_every_failure_up_to_a_minute(void **unused)
{
        static const unsigned seconds[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };
        struct phase_machine machine = machine_in(WAKING);
        struct phase_transition transition;
        uint64_t now = begin_ns;

        for (size_t i = 0; i < ELEMENTSOF(seconds); i++) {
                phase_step(&machine, &settings, PHASE_EVENT_DEMAND, now, &transition);
                assert_int_equal(phase_deadline(&machine), now + settings.hold_timeout_ns);

                now = phase_deadline(&machine);
                phase_step(&machine, &settings, PHASE_EVENT_TIME, now, &transition);
                assert_int_equal(transition.actions, REFUSE);
                assert_false(phase_holds(&machine));
                assert_int_equal(machine.failures, i + 1);
                assert_int_equal(phase_deadline(&machine), now + seconds[i] * SEC);

                now = phase_deadline(&machine);
                phase_step(&machine, &settings, PHASE_EVENT_TIME, now, &transition);
                assert_int_equal(transition.actions, HOLD);
                assert_true(phase_holds(&machine));
        }

        phase_step(&machine, &settings, PHASE_EVENT_READY, now, &transition);
        assert_int_equal(machine.failures, 0);
}

static void a_backoff_is_not_cut_short_by_crashing_or_by_an_operator(void **unused)
{
        struct phase_machine machine = machine_in(WAKING_BACKOFF);
        struct phase_transition transition;

        phase_step(&machine, &settings, PHASE_EVENT_GONE, begin_ns + 1 * MS, &transition);
        phase_step(&machine, &settings, PHASE_EVENT_WAKE, begin_ns + 2 * MS, &transition);
        phase_step(&machine, &settings, PHASE_EVENT_GONE, begin_ns + 3 * MS, &transition);
        assert_int_equal(machine.phase, PHASE_ASLEEP);
        assert_false(phase_holds(&machine));

        phase_step(&machine, &settings, PHASE_EVENT_TIME, begin_ns + 1 * SEC, &transition);
        assert_int_equal(transition.actions, HOLD);
        phase_step(&machine, &settings, PHASE_EVENT_DEMAND, begin_ns + 2 * SEC, &transition);
        assert_int_equal(transition.actions, START);
        assert_int_equal(machine.failures, 1);
}

static void a_dry_run_never_leaves_awake_by_itself_and_says_so(void **unused)
{
        struct phase_settings dry = settings;
        struct phase_machine machine = machine_in(AWAKE);
        struct phase_transition transition;

        dry.dry_run = true;
        phase_step(&machine, &dry, PHASE_EVENT_IDLE, begin_ns + 60 * SEC, &transition);
        assert_int_equal(machine.phase, PHASE_AWAKE);
        assert_int_equal(transition.actions, 0);
        assert_non_null(strstr(transition.note, "dry run"));

        phase_step(&machine, &dry, PHASE_EVENT_SLEEP, begin_ns + 60 * SEC, &transition);
        assert_int_equal(machine.phase, PHASE_AWAKE);
        assert_int_equal(transition.actions, 0);
        assert_non_null(strstr(transition.note, "dry run"));
}

static void a_dry_run_turned_on_while_sleeping_stops_nothing(void **unused)
{
        struct phase_settings dry = settings;
        struct phase_machine machine = machine_in(SLEEPING);
        struct phase_transition transition;

        dry.dry_run = true;
        phase_step(&machine, &dry, PHASE_EVENT_QUIET, begin_ns + 1 * SEC, &transition);
        assert_int_equal(machine.phase, PHASE_AWAKE);
        assert_int_equal(transition.actions, RELEASE);
}

static void demand_while_going_to_sleep_starts_min_awake_anew(void **unused)
{
        struct phase_machine machine = machine_in(SLEEPING);
        struct phase_transition transition;

        phase_step(&machine, &settings, PHASE_EVENT_DEMAND, begin_ns + 50 * MS, &transition);
        phase_step(&machine, &settings, PHASE_EVENT_IDLE, begin_ns + 60 * SEC, &transition);
        assert_int_equal(machine.phase, PHASE_AWAKE);
        phase_step(&machine, &settings, PHASE_EVENT_IDLE, begin_ns + 60 * SEC + 50 * MS, &transition);
        assert_int_equal(machine.phase, PHASE_SLEEPING);
}

static uint64_t random_next(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

/* @holding is what a caller that performs the actions would be doing. */
static void check_invariants(const struct phase_machine *machine, enum phase_event event, const struct phase_transition *transition,
                             uint64_t now, bool *holding)
{
        assert_false((transition->actions & HOLD) && (transition->actions & REFUSE));
        assert_false((transition->actions & START) && (transition->actions & STOP));
        if (transition->actions & STOP) {
                assert_int_equal(transition->from, PHASE_SLEEPING);
                assert_int_equal(event, PHASE_EVENT_QUIET);
        }
        if (transition->actions & (RELEASE | REFUSE)) {
                assert_true(*holding);
                *holding = false;
        }
        if (transition->actions & HOLD)
                *holding = true;

        assert_int_equal(*holding, phase_holds(machine));
        if (machine->phase == PHASE_AWAKE)
                assert_int_equal(phase_deadline(machine), 0);
        else
                assert_true(phase_holds(machine) || machine->failures > 0);
        assert_true(machine->since_ns <= now);
        if (event == PHASE_EVENT_TIME)
                assert_true(phase_deadline(machine) == 0 || phase_deadline(machine) > now);
}

static void no_walk_breaks_an_invariant(void **unused)
{
        struct phase_transition transition;
        struct phase_machine machine;
        uint64_t seed = 88172645463325252u, now = begin_ns;
        bool holding = false;

        phase_begin(&machine, &settings, PHASE_AWAKE, now, &transition);
        for (unsigned i = 0; i < 300000; i++) {
                enum phase_event event = (enum phase_event)(random_next(&seed) % PHASE_EVENT_MAX);
                uint64_t deadline = phase_deadline(&machine), before = deadline;

                /* A small step, a large one, or right up to the deadline. */
                switch (random_next(&seed) % 4) {
                case 0:
                        now += random_next(&seed) % (100 * MS);
                        break;
                case 1:
                        now += random_next(&seed) % (100 * SEC);
                        break;
                case 2:
                        now = MAX(now, deadline);
                        break;
                default:
                        break;
                }

                phase_step(&machine, &settings, event, now, &transition);
                check_invariants(&machine, event, &transition, now, &holding);

                /* A deadline goes by being reached or by leaving its phase, never by being moved. */
                if (before > now && transition.from == transition.to)
                        assert_int_equal(phase_deadline(&machine), before);
        }
}

static void names_are_read_back(void **unused)
{
        enum phase phase = PHASE_MAX;

        for (int i = 0; i < PHASE_MAX; i++) {
                assert_int_equal(phase_from_string(phase_to_string((enum phase)i), &phase), 0);
                assert_int_equal(phase, i);
        }
        assert_int_equal(phase_from_string("asleep", &phase), -EINVAL);
        assert_int_equal(phase, PHASE_WAKING);
        assert_string_equal(phase_to_string(PHASE_MAX), "unknown");
        assert_string_equal(phase_event_to_string(PHASE_EVENT_DEMAND), "demand");
        assert_string_equal(phase_event_to_string(PHASE_EVENT_MAX), "unknown");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_event_in_every_phase_before_any_deadline),
                cmocka_unit_test(every_event_in_every_phase_after_its_deadline),
                cmocka_unit_test(a_phase_begins_with_what_it_needs),
                cmocka_unit_test(the_backoff_doubles_with_every_failure_up_to_a_minute),
                cmocka_unit_test(a_backoff_is_not_cut_short_by_crashing_or_by_an_operator),
                cmocka_unit_test(a_dry_run_never_leaves_awake_by_itself_and_says_so),
                cmocka_unit_test(a_dry_run_turned_on_while_sleeping_stops_nothing),
                cmocka_unit_test(demand_while_going_to_sleep_starts_min_awake_anew),
                cmocka_unit_test(no_walk_breaks_an_invariant),
                cmocka_unit_test(names_are_read_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
