/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/phase.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"

static const uint64_t backoff_first_ns = 1 * NSEC_PER_SEC;
static const uint64_t backoff_max_ns = 60 * NSEC_PER_SEC;

struct step {
        struct phase_machine *machine;
        const struct phase_settings *settings;
        uint64_t now_ns;
        struct phase_transition *transition;
};

static void enter(struct step *step, enum phase phase, uint32_t actions)
{
        struct phase_machine *machine = step->machine;

        machine->phase = phase;
        machine->since_ns = step->now_ns;
        machine->hold_deadline_ns = 0;
        machine->quiet_deadline_ns = phase == PHASE_SLEEPING ? step->now_ns + step->settings->quiet_ns : 0;
        step->transition->to = phase;
        step->transition->actions |= actions;
}

static void enter_awake(struct step *step)
{
        uint32_t actions = phase_holds(step->machine) ? PHASE_ACTION_RELEASE : 0;

        enter(step, PHASE_AWAKE, actions);
        step->machine->hold_again_ns = 0;
        step->machine->failures = 0;
}

static void enter_sleeping(struct step *step)
{
        if (step->settings->dry_run)
                step->transition->note = "dry run: otherwise it would go to sleep now";
        else
                enter(step, PHASE_SLEEPING, PHASE_ACTION_HOLD);
}

static void awake_step(struct step *step, enum phase_event event)
{
        switch (event) {
        case PHASE_EVENT_IDLE:
                if (step->now_ns - step->machine->since_ns < step->settings->min_awake_ns)
                        step->transition->note = "awake for less than minAwake";
                else
                        enter_sleeping(step);
                break;
        case PHASE_EVENT_SLEEP:
                enter_sleeping(step);
                break;
        case PHASE_EVENT_GONE:
                enter(step, PHASE_ASLEEP, PHASE_ACTION_HOLD);
                break;
        case PHASE_EVENT_WAKE:
                step->transition->note = "it is awake already";
                break;
        default:
                break;
        }
}

static void quiet(struct step *step)
{
        if (step->settings->dry_run) { /* set since it began to sleep */
                enter_awake(step);
                step->transition->note = "dry run: otherwise it would be stopped now";
        } else if (step->now_ns - step->machine->since_ns < step->settings->quiet_ns) {
                step->transition->note = "not quiet for long enough yet";
        } else {
                enter(step, PHASE_ASLEEP, PHASE_ACTION_STOP);
        }
}

static void sleeping_step(struct step *step, enum phase_event event)
{
        struct phase_machine *machine = step->machine;

        switch (event) {
        case PHASE_EVENT_ACTIVE:
        case PHASE_EVENT_DEMAND:
        case PHASE_EVENT_WAKE:
                enter_awake(step);
                break;
        case PHASE_EVENT_QUIET:
                quiet(step);
                break;
        case PHASE_EVENT_GONE:
                enter(step, PHASE_ASLEEP, 0);
                break;
        case PHASE_EVENT_SLEEP:
                step->transition->note = "it is going to sleep already";
                break;
        case PHASE_EVENT_TIME:
                /* Due again should the answer get lost. */
                if (step->now_ns >= machine->quiet_deadline_ns) {
                        machine->quiet_deadline_ns = step->now_ns + step->settings->quiet_ns;
                        step->transition->actions |= PHASE_ACTION_VERIFY;
                }
                break;
        default:
                break;
        }
}

static void hold_again(struct step *step)
{
        struct phase_machine *machine = step->machine;

        if (machine->hold_again_ns == 0 || step->now_ns < machine->hold_again_ns)
                return;
        machine->hold_again_ns = 0;
        step->transition->actions |= PHASE_ACTION_HOLD;
}

static void asleep_step(struct step *step, enum phase_event event)
{
        switch (event) {
        case PHASE_EVENT_DEMAND:
                if (!phase_holds(step->machine))
                        break; /* seen before the back-off began */
                enter(step, PHASE_WAKING, PHASE_ACTION_START);
                step->machine->hold_deadline_ns = step->now_ns + step->settings->hold_timeout_ns;
                break;
        case PHASE_EVENT_WAKE:
                enter(step, PHASE_WAKING, PHASE_ACTION_START);
                break;
        case PHASE_EVENT_STARTED:
                enter(step, PHASE_WAKING, 0);
                break;
        case PHASE_EVENT_READY:
                enter_awake(step);
                break;
        case PHASE_EVENT_SLEEP:
                step->transition->note = "it is asleep already";
                break;
        case PHASE_EVENT_TIME:
                hold_again(step);
                break;
        default:
                break;
        }
}

static uint64_t backoff_ns(unsigned failures)
{
        uint64_t backoff = backoff_first_ns;

        for (; failures > 1 && backoff < backoff_max_ns; failures--)
                backoff *= 2;
        return MIN(backoff, backoff_max_ns);
}

static void wake_fail(struct step *step)
{
        struct phase_machine *machine = step->machine;

        machine->failures++;
        machine->hold_deadline_ns = 0;
        machine->hold_again_ns = step->now_ns + backoff_ns(machine->failures);
        step->transition->actions |= PHASE_ACTION_REFUSE;
}

static void waking_step(struct step *step, enum phase_event event)
{
        struct phase_machine *machine = step->machine;

        switch (event) {
        case PHASE_EVENT_READY:
                enter_awake(step);
                break;
        case PHASE_EVENT_DEMAND:
                if (phase_holds(machine) && machine->hold_deadline_ns == 0)
                        machine->hold_deadline_ns = step->now_ns + step->settings->hold_timeout_ns;
                break;
        case PHASE_EVENT_GONE:
                if (machine->hold_deadline_ns)
                        step->transition->actions |= PHASE_ACTION_START;
                else
                        enter(step, PHASE_ASLEEP, 0);
                break;
        case PHASE_EVENT_WAKE:
                step->transition->note = "it is waking already";
                break;
        case PHASE_EVENT_SLEEP:
                step->transition->note = "it is waking; it can be put to sleep once it is awake";
                break;
        case PHASE_EVENT_TIME:
                if (machine->hold_deadline_ns && step->now_ns >= machine->hold_deadline_ns)
                        wake_fail(step);
                else
                        hold_again(step);
                break;
        default:
                break;
        }
}

static void phase_dispatch(struct step *step, enum phase_event event)
{
        switch (step->machine->phase) {
        case PHASE_AWAKE:
                awake_step(step, event);
                break;
        case PHASE_SLEEPING:
                sleeping_step(step, event);
                break;
        case PHASE_ASLEEP:
                asleep_step(step, event);
                break;
        case PHASE_WAKING:
                waking_step(step, event);
                break;
        case PHASE_MAX:
                break;
        }
}

/* Whether @event leaves the phase in a way that an overdue deadline would only spoil. */
static bool event_settles(enum phase phase, enum phase_event event)
{
        switch (event) {
        case PHASE_EVENT_TIME:
                return true;
        case PHASE_EVENT_READY:
                return phase != PHASE_SLEEPING;
        case PHASE_EVENT_ACTIVE:
        case PHASE_EVENT_QUIET:
        case PHASE_EVENT_DEMAND:
        case PHASE_EVENT_WAKE:
        case PHASE_EVENT_GONE:
                return phase == PHASE_SLEEPING;
        default:
                return false;
        }
}

void phase_begin(struct phase_machine *machine, const struct phase_settings *settings, enum phase phase, uint64_t now_ns,
                 struct phase_transition *ret_transition)
{
        struct step step = { .machine = machine, .settings = settings, .now_ns = now_ns, .transition = ret_transition };

        *machine = (struct phase_machine){ 0 };
        *ret_transition = (struct phase_transition){ .from = phase };
        enter(&step, phase, phase == PHASE_AWAKE ? 0 : PHASE_ACTION_HOLD);
}

void phase_step(struct phase_machine *machine, const struct phase_settings *settings, enum phase_event event, uint64_t now_ns,
                struct phase_transition *ret_transition)
{
        struct step step = { .machine = machine, .settings = settings, .now_ns = now_ns, .transition = ret_transition };
        uint64_t deadline = phase_deadline(machine);

        *ret_transition = (struct phase_transition){ .from = machine->phase, .to = machine->phase };

        if (deadline && now_ns >= deadline && !event_settles(machine->phase, event))
                phase_dispatch(&step, PHASE_EVENT_TIME);
        phase_dispatch(&step, event);
}

uint64_t phase_deadline(const struct phase_machine *machine)
{
        if (machine->quiet_deadline_ns)
                return machine->quiet_deadline_ns;
        return machine->hold_deadline_ns ? machine->hold_deadline_ns : machine->hold_again_ns;
}

bool phase_holds(const struct phase_machine *machine)
{
        return machine->phase != PHASE_AWAKE && machine->hold_again_ns == 0;
}

static const char *const phase_names[] = {
        [PHASE_AWAKE] = "Awake",
        [PHASE_SLEEPING] = "Sleeping",
        [PHASE_ASLEEP] = "Asleep",
        [PHASE_WAKING] = "Waking",
};
static_assert(ELEMENTSOF(phase_names) == PHASE_MAX, "every phase has a name");

static const char *const event_names[] = {
        [PHASE_EVENT_IDLE] = "idle",     [PHASE_EVENT_ACTIVE] = "active",   [PHASE_EVENT_QUIET] = "quiet",
        [PHASE_EVENT_DEMAND] = "demand", [PHASE_EVENT_STARTED] = "started", [PHASE_EVENT_READY] = "ready",
        [PHASE_EVENT_GONE] = "gone",     [PHASE_EVENT_WAKE] = "wake",       [PHASE_EVENT_SLEEP] = "sleep",
        [PHASE_EVENT_TIME] = "time",
};
static_assert(ELEMENTSOF(event_names) == PHASE_EVENT_MAX, "every event has a name");

const char *phase_to_string(enum phase phase)
{
        return (size_t)phase < ELEMENTSOF(phase_names) ? phase_names[phase] : "unknown";
}

int phase_from_string(const char *text, enum phase *ret_phase)
{
        for (size_t i = 0; i < ELEMENTSOF(phase_names); i++)
                if (strcmp(text, phase_names[i]) == 0) {
                        *ret_phase = (enum phase)i;
                        return 0;
                }
        return -EINVAL;
}

const char *phase_event_to_string(enum phase_event event)
{
        return (size_t)event < ELEMENTSOF(event_names) ? event_names[event] : "unknown";
}
