/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/decide.h"

#include <assert.h>
#include <string.h>

#include "base/time.h"
#include "controller/veto.h"

struct deciding {
        const struct decide_input *input;
        struct decision *decision;
        struct phase_settings settings;
        struct phase_transition transition; /* the last */
        uint32_t actions;                   /* of all */
        bool vetoed;
};

struct phase_settings decide_settings(const struct policy *policy)
{
        return (struct phase_settings){
                .min_awake_ns = policy->idle.min_awake_ns,
                .hold_timeout_ns = policy->wake.hold_timeout_ns,
                .quiet_ns = DECIDE_QUIET_NS,
                .dry_run = policy->dry_run,
        };
}

/* A moment of the status on our own clock. One in the future is now: clocks differ. */
static uint64_t to_monotonic(uint64_t realtime_ns, uint64_t now_ns, uint64_t now_realtime_ns)
{
        uint64_t ago = realtime_ns < now_realtime_ns ? now_realtime_ns - realtime_ns : 0;

        return ago < now_ns ? now_ns - ago : 1;
}

void decide_seed(const struct scale_to_zero *object, uint64_t now_ns, uint64_t now_realtime_ns, struct phase_machine *ret_machine)
{
        const struct scale_to_zero_status *status = &object->status;
        const struct status_condition *failed = status_find_condition(status, "WakeFailed");
        struct phase_machine machine = { .phase = status->phase, .since_ns = now_ns };
        bool has_failed = failed && failed->holds;

        if (status->since_realtime_ns)
                machine.since_ns = to_monotonic(status->since_realtime_ns, now_ns, now_realtime_ns);
        if (status->phase == PHASE_SLEEPING)
                machine.quiet_deadline_ns = machine.since_ns + DECIDE_QUIET_NS;
        if (status->phase == PHASE_WAKING || status->phase == PHASE_ASLEEP) {
                machine.failures = has_failed;
                machine.hold_again_ns = status->holding ? 0 : now_ns + NSEC_PER_SEC;
        }
        if (status->phase == PHASE_WAKING && !has_failed && object->policy)
                machine.hold_deadline_ns = machine.since_ns + object->policy->wake.hold_timeout_ns;
        *ret_machine = machine;
}

static void look_again(struct deciding *deciding, uint64_t at_ns)
{
        struct decision *decision = deciding->decision;

        if (at_ns > deciding->input->now_ns && (decision->again_ns == 0 || at_ns < decision->again_ns))
                decision->again_ns = at_ns;
}

static void step(struct deciding *deciding, enum phase_event event)
{
        phase_step(&deciding->decision->machine, &deciding->settings, event, deciding->input->now_ns, &deciding->transition);
        deciding->actions |= deciding->transition.actions;
}

static bool moved(const struct deciding *deciding)
{
        return deciding->decision->machine.phase != deciding->decision->from;
}

static bool has_replicas(const struct deciding *deciding)
{
        const struct target_state *target = deciding->input->target;

        return target->known && target->exists && target->replicas > 0 && !target->in_doubt;
}

static bool has_none(const struct deciding *deciding)
{
        const struct target_state *target = deciding->input->target;

        return target->known && target->exists && target->replicas == 0;
}

/* The pods of a target that has just been scaled to zero still look alive: a wake must not be given to those. */
static bool is_gone(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;

        if (!has_none(deciding))
                return false;
        if (!input->resolution || input->resolution->n_ready == 0 || input->now_ns - input->zero_since_ns >= DECIDE_LEFTOVER_NS)
                return true;
        look_again(deciding, input->zero_since_ns + DECIDE_LEFTOVER_NS);
        return false;
}

static bool is_ready(const struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;

        return input->resolution && input->resolution->n_ready > 0 && !has_none(deciding) && !input->target->in_doubt;
}

static uint32_t replicas_to_have(const struct deciding *deciding)
{
        const struct scale_to_zero *object = deciding->input->object;

        if (object->policy->cluster.replicas > 0)
                return object->policy->cluster.replicas;
        return MAX(object->status.replicas_before, 1u);
}

/* Agents do not tell of packets that they hold for what wakes already: somebody may wait in every Waking, whatever caused it. */
static void wake_by(struct deciding *deciding, enum wake_cause cause)
{
        if (!moved(deciding))
                return;
        deciding->decision->woken = true;
        deciding->decision->cause = cause;
        if (deciding->decision->machine.phase == PHASE_WAKING)
                step(deciding, PHASE_EVENT_DEMAND);
}

static void sleep_for(struct deciding *deciding, enum sleep_reason reason)
{
        struct decision *decision = deciding->decision;
        const struct decide_input *input = deciding->input;

        if (!moved(deciding))
                return;
        decision->slept = true;
        decision->reason = reason;
        decision->fresh_sleep = true;
        if (decision->from != PHASE_AWAKE)
                return;
        decision->gpus_before = reason == SLEEP_SCALED ? 0 : input->evidence->gpus;
        if (has_replicas(deciding))
                decision->replicas_before = input->target->replicas;
        else if (input->replicas_seen > 0)
                decision->replicas_before = input->replicas_seen;
}

/* The source without its port. */
static size_t address_length(const char *source)
{
        const char *colon = source ? strrchr(source, ':') : NULL;

        return colon ? (size_t)(colon - source) : 0;
}

/* Only agents see whose connection a sleep cuts. Here the same client twice, each time right after a sleep, is a client that
 * does not let it sleep. */
static bool is_flapping(const struct decide_input *input)
{
        const struct scale_to_zero_status *status = &input->object->status;
        uint64_t slept = to_monotonic(status->last_sleep_realtime_ns, input->now_ns, input->now_realtime_ns);
        uint64_t soon = MAX(input->object->policy->idle.after_ns / 10, DECIDE_FLAPPING_MIN_NS);
        const char *source = input->evidence->demand->source, *before = status->last_wake.source;
        size_t length = address_length(source);

        return status->last_sleep_realtime_ns && length > 0 && length == address_length(before) &&
               strncmp(source, before, length) == 0 && input->now_ns - slept < soon;
}

static void follow_flapping(struct deciding *deciding)
{
        struct decision *decision = deciding->decision;

        if (!moved(deciding) || decision->from != PHASE_ASLEEP)
                return;
        if (is_flapping(deciding->input))
                decision->idle_factor = MIN(2 * decision->idle_factor, (uint32_t)IDLE_FACTOR_MAX);
        else
                decision->idle_factor = 1;
}

static bool idle_for_long_enough(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;

        if (!input->evidence->idle)
                return false;
        if (input->now_ns < input->blocked_until_ns) {
                look_again(deciding, input->blocked_until_ns);
                return false;
        }
        return true;
}

static void begin_sleep(struct deciding *deciding, enum phase_event event, enum sleep_reason reason)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;
        struct phase_machine before = decision->machine;

        if (!input->object->has_finalizer) {
                decision->add_finalizer = true;
                return;
        }
        step(deciding, event);
        if (moved(deciding) && event == PHASE_EVENT_IDLE && !input->round) {
                decision->machine = before;
                decision->wants_round = true;
                return;
        }
        if (!moved(deciding))
                look_again(deciding, before.since_ns + deciding->settings.min_awake_ns);
        sleep_for(deciding, reason);
}

static void decide_awake(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;

        decision->clear_wake = input->object->wake_requested;
        if (input->object->metadata.deleting)
                return;
        if (is_gone(deciding)) {
                if (!input->object->has_finalizer)
                        return; /* which comes first: deleted before it has one, it would leave its target at zero */
                step(deciding, PHASE_EVENT_GONE);
                sleep_for(deciding, SLEEP_SCALED);
        } else if (decision->clear_wake) {
                return; /* first it is taken away, lest it ends the sleep that would begin */
        } else if (deciding->vetoed || !has_replicas(deciding)) {
                decision->clear_sleep = input->object->sleep_requested;
                if (decision->clear_sleep)
                        decision->refused = "something forbids it: see the conditions";
        } else if (input->object->sleep_requested) {
                begin_sleep(deciding, PHASE_EVENT_SLEEP, SLEEP_MANUAL);
                decision->clear_sleep = !moved(deciding) && !decision->add_finalizer;
                decision->refused = deciding->transition.note;
        } else if (idle_for_long_enough(deciding)) {
                begin_sleep(deciding, PHASE_EVENT_IDLE, SLEEP_IDLE);
        }
}

static bool is_manual_sleep(const struct deciding *deciding)
{
        const char *reason = deciding->input->object->status.last_sleep_reason;

        return reason && strcmp(reason, sleep_reason_to_string(SLEEP_MANUAL)) == 0;
}

/* An operator's sleep does not ask for idleness: there the quiet votes alone say that nothing moves. */
static bool is_active(const struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;

        if (deciding->vetoed || input->object->metadata.deleting)
                return true;
        if (has_replicas(deciding) && input->target->replicas != input->object->status.replicas_before)
                return true; /* by other hands, meanwhile */
        return !is_manual_sleep(deciding) && !input->evidence->idle;
}

/* STOP is what is done first here: the phase follows when the target has no replicas. */
static void stop_if_quiet(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;
        struct phase_machine before = decision->machine;

        if (!input->current || !input->evidence->quiet || !input->evidence->programmed)
                return;
        step(deciding, PHASE_EVENT_QUIET);
        if (deciding->transition.actions & PHASE_ACTION_STOP) {
                decision->scale = SCALE_DOWN;
                decision->machine = before;
        } else if (!moved(deciding)) {
                look_again(deciding, before.since_ns + DECIDE_QUIET_NS);
        }
}

/* A target that may have been scaled to zero is scaled up for all that: awake, it would stay there. */
static void end_sleep(struct deciding *deciding, enum phase_event event, enum wake_cause cause)
{
        if (deciding->input->target->in_doubt) {
                step(deciding, PHASE_EVENT_GONE);
                step(deciding, event == PHASE_EVENT_DEMAND ? PHASE_EVENT_DEMAND : PHASE_EVENT_WAKE);
        } else {
                step(deciding, event);
        }
        if (event != PHASE_EVENT_ACTIVE || deciding->decision->machine.phase == PHASE_WAKING)
                wake_by(deciding, cause);
}

static void decide_sleeping(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;
        uint64_t limit = decision->machine.since_ns + DECIDE_SLEEPING_MAX_NS;

        decision->clear_sleep = input->object->sleep_requested;
        look_again(deciding, limit);
        if (has_none(deciding)) {
                if (is_gone(deciding))
                        step(deciding, PHASE_EVENT_GONE);
        } else if (input->object->wake_requested && !decision->clear_sleep) {
                end_sleep(deciding, PHASE_EVENT_WAKE, WAKE_MANUAL);
        } else if (input->evidence->demand) {
                end_sleep(deciding, PHASE_EVENT_DEMAND, WAKE_PACKET);
        } else if (is_active(deciding)) {
                end_sleep(deciding, PHASE_EVENT_ACTIVE, input->object->metadata.deleting ? WAKE_DELETED : WAKE_SCALED);
        } else if (input->now_ns >= limit) {
                end_sleep(deciding, PHASE_EVENT_ACTIVE, WAKE_SCALED);
                decision->blocked = true;
        } else {
                stop_if_quiet(deciding);
        }
}

static void decide_asleep(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;

        decision->clear_sleep = input->object->sleep_requested;
        if (has_replicas(deciding)) {
                step(deciding, is_ready(deciding) ? PHASE_EVENT_READY : PHASE_EVENT_STARTED);
                wake_by(deciding, WAKE_SCALED);
        } else if (input->object->wake_requested || input->object->metadata.deleting) {
                step(deciding, PHASE_EVENT_WAKE);
                wake_by(deciding, input->object->metadata.deleting ? WAKE_DELETED : WAKE_MANUAL);
        } else if (input->evidence->demand) {
                step(deciding, PHASE_EVENT_DEMAND);
                wake_by(deciding, WAKE_PACKET);
                follow_flapping(deciding);
        } else {
                step(deciding, PHASE_EVENT_TIME);
        }
}

static bool was_woken_by(const struct scale_to_zero *object, enum wake_cause cause)
{
        return object->status.last_wake.cause && strcmp(object->status.last_wake.cause, wake_cause_to_string(cause)) == 0;
}

static void scale_up(struct deciding *deciding)
{
        deciding->decision->scale = SCALE_UP;
        deciding->decision->replicas = replicas_to_have(deciding);
}

static void decide_waking(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;

        decision->clear_wake = input->object->wake_requested;
        decision->clear_sleep = input->object->sleep_requested;
        if (decision->clear_sleep)
                decision->refused = "it is waking; it can be put to sleep once it is awake";

        if (is_ready(deciding)) {
                step(deciding, PHASE_EVENT_READY);
                return;
        }
        if (input->target->in_doubt || (has_none(deciding) && !input->has_been_up)) {
                scale_up(deciding);
        } else if (has_none(deciding)) {
                if (!was_woken_by(input->object, WAKE_PACKET))
                        decision->machine.hold_deadline_ns = 0; /* it was by hand, and by hand it ends */
                step(deciding, PHASE_EVENT_GONE);
                if (deciding->transition.actions & PHASE_ACTION_START)
                        scale_up(deciding);
                sleep_for(deciding, SLEEP_SCALED);
        }
        if (!moved(deciding) && input->evidence->demand)
                step(deciding, PHASE_EVENT_DEMAND);
        if (!moved(deciding))
                step(deciding, PHASE_EVENT_TIME);
        decision->wake_failed = deciding->actions & PHASE_ACTION_REFUSE;
}

/* What it has put to sleep it wakes: how many replicas there were, only it knows. */
static void decide_rivalled_at_zero(struct deciding *deciding)
{
        struct decision *decision = deciding->decision;

        if (decision->from == PHASE_WAKING) {
                scale_up(deciding);
                step(deciding, PHASE_EVENT_TIME);
                decision->wake_failed = deciding->actions & PHASE_ACTION_REFUSE;
                return;
        }
        if (decision->from == PHASE_SLEEPING)
                step(deciding, PHASE_EVENT_GONE);
        step(deciding, PHASE_EVENT_WAKE);
        wake_by(deciding, WAKE_SCALED);
}

/* A younger policy of a target that an older one has does nothing, and lets nothing wait. */
static void decide_rivalled(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;
        bool has_been_woken = decision->from == PHASE_WAKING && input->has_been_up;
        bool is_unknown = !input->target->known && !input->target->final;

        decision->clear_wake = input->object->wake_requested;
        decision->clear_sleep = input->object->sleep_requested;
        if (decision->clear_sleep || decision->clear_wake)
                decision->refused = "another policy has its target";
        if (decision->from == PHASE_AWAKE || is_unknown)
                return;
        if (input->target->in_doubt || (has_none(deciding) && !has_been_woken))
                decide_rivalled_at_zero(deciding);
        else
                phase_begin(&decision->machine, &deciding->settings, PHASE_AWAKE, input->now_ns, &deciding->transition);
}

static void decide_leader(struct deciding *deciding)
{
        if (deciding->input->rival) {
                decide_rivalled(deciding);
                return;
        }
        switch (deciding->decision->from) {
        case PHASE_AWAKE:
                decide_awake(deciding);
                break;
        case PHASE_SLEEPING:
                decide_sleeping(deciding);
                break;
        case PHASE_ASLEEP:
                decide_asleep(deciding);
                break;
        case PHASE_WAKING:
                decide_waking(deciding);
                break;
        case PHASE_MAX:
                break;
        }
}

static void decide_follower(struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        struct decision *decision = deciding->decision;

        bool waits = !input->has_been_up || decision->machine.hold_deadline_ns;

        if (decision->from == PHASE_WAKING && has_none(deciding) && waits) {
                uint64_t due_ns = MAX(input->zero_since_ns, decision->machine.since_ns) + DECIDE_LEADERLESS_NS;

                if (input->woke || input->now_ns >= due_ns)
                        scale_up(deciding);
                else
                        look_again(deciding, due_ns);
        }
        if (!input->evidence->demand || input->rival)
                return;
        if (decision->from == PHASE_SLEEPING && input->now_ns - input->demand_since_ns < DECIDE_LEADERLESS_NS) {
                look_again(deciding, input->demand_since_ns + DECIDE_LEADERLESS_NS);
                return;
        }
        if (decision->from != PHASE_SLEEPING && decision->from != PHASE_ASLEEP)
                return;
        if (decision->from == PHASE_SLEEPING)
                step(deciding, PHASE_EVENT_GONE);
        step(deciding, PHASE_EVENT_DEMAND);
        wake_by(deciding, WAKE_PACKET);
        follow_flapping(deciding);
        decision->write = moved(deciding);
}

/* A policy that is to go away leaves nothing asleep that would not be woken any more. What could not be read may be asleep. */
static bool may_be_removed(const struct deciding *deciding)
{
        const struct decide_input *input = deciding->input;
        const struct phase_machine *machine = &deciding->decision->machine;
        bool is_hopeless = input->target->final || (input->target->known && !input->target->exists);

        if (is_hopeless)
                return true;
        if (machine->phase == PHASE_WAKING && has_replicas(deciding))
                return machine->failures > 0 || input->now_ns - machine->since_ns >= deciding->settings.hold_timeout_ns;
        return machine->phase == PHASE_AWAKE && !deciding->decision->changed && !input->target->in_doubt;
}

static void decide_finalizer(struct deciding *deciding)
{
        const struct scale_to_zero *object = deciding->input->object;
        struct decision *decision = deciding->decision;

        if (!object->metadata.deleting) {
                decision->add_finalizer = !object->has_finalizer && !deciding->input->rival;
        } else {
                decision->add_finalizer = false;
                decision->remove_finalizer = object->has_finalizer && may_be_removed(deciding);
                look_again(deciding, decision->machine.since_ns + deciding->settings.hold_timeout_ns);
        }
}

void decide(const struct decide_input *input, struct decision *ret_decision)
{
        const struct scale_to_zero_status *status = &input->object->status;
        struct deciding deciding = { .input = input, .decision = ret_decision, .settings = decide_settings(input->object->policy) };
        struct decision *decision = ret_decision;

        *decision = (struct decision){
                .machine = *input->machine,
                .from = input->machine->phase,
                .from_since_ns = input->machine->since_ns,
                .replicas_before = status->replicas_before,
                .gpus_before = status->gpus_before,
                .idle_factor = MAX(status->idle_factor, 1u),
        };
        deciding.vetoed = veto_conditions(input, &decision->conditions);

        if (input->leader) {
                decision->write = true;
                decide_leader(&deciding);
                look_again(&deciding, phase_deadline(&decision->machine));
        } else {
                decide_follower(&deciding);
        }
        decision->changed =
                decision->machine.phase != decision->from || phase_holds(&decision->machine) != phase_holds(input->machine);
        if (input->leader)
                decide_finalizer(&deciding);
        lasting_conditions(input, decision);
        if (!deciding.vetoed)
                gpu_condition(input, decision);
        decision->news = conditions_news(&decision->conditions, status);
}

static const char *const cause_names[] = {
        [WAKE_PACKET] = "Packet",
        [WAKE_SCALED] = "Scaled",
        [WAKE_MANUAL] = "Manual",
        [WAKE_DELETED] = "Deleted",
};
static_assert(ELEMENTSOF(cause_names) == WAKE_CAUSE_MAX, "every cause has a name");

static const char *const reason_names[] = {
        [SLEEP_IDLE] = "Idle",
        [SLEEP_MANUAL] = "Manual",
        [SLEEP_SCALED] = "Scaled",
};
static_assert(ELEMENTSOF(reason_names) == SLEEP_REASON_MAX, "every reason has a name");

const char *wake_cause_to_string(enum wake_cause cause)
{
        return cause_names[cause];
}

const char *sleep_reason_to_string(enum sleep_reason reason)
{
        return reason_names[reason];
}
