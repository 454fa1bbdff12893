/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/event_log.h"
#include "standalone/managed.h"
#include "standalone/readiness.h"

void managed_set_condition(struct managed *managed, enum condition_type type, const char *reason, const char *format, ...)
{
        struct condition *condition = &managed->conditions[type];
        _cleanup_(freep) char *message = NULL;
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = vasprintf(&message, format, arguments);
        va_end(arguments);
        if (r < 0) {
                message = NULL;
                return;
        }
        if (condition->holds && strcmp(condition->message, message) == 0)
                return;

        if (!condition->holds)
                condition->realtime_ns = now_realtime_ns();
        condition->holds = true;
        condition->reason = reason;
        event_log_add(managed->context->events, managed->policy->name, condition_to_string(type), "%s", message);
        log_notice("policy \"%s\": %s: %s", managed->policy->name, condition_to_string(type), message);
        free(condition->message);
        condition->message = TAKE_PTR(message);
}

void managed_clear_condition(struct managed *managed, enum condition_type type)
{
        managed->conditions[type].holds = false;
}

void managed_reach(struct managed *managed, enum wake_phase phase, uint64_t now_ns)
{
        struct wake_record *wake = &managed->wake;

        if (wake->cause == CAUSE_NONE || wake->reached_ns[phase])
                return;

        wake_record_reach(wake, phase, now_ns);
        histogram_add(&managed->context->wake_phases[phase], (double)(now_ns - wake->zero_ns) / NSEC_PER_SEC);
}

uint64_t managed_asleep_ns(const struct managed *managed, uint64_t now_ns)
{
        if (managed->machine.phase != PHASE_ASLEEP)
                return managed->asleep_ns;
        return managed->asleep_ns + (now_ns - managed->machine.since_ns);
}

static void start_target(struct managed *managed)
{
        int r;

        managed_reach(managed, WAKE_REQUESTED, now_monotonic_ns());

        r = managed_equip(managed);
        if (r < 0) {
                managed_set_condition(managed, CONDITION_PROCESS_FAILED, "CannotStart", "cannot be started: %s", strerror(-r));
                return;
        }
        managed_watch(managed);

        /* Somebody may have started a server by hand: then there is nothing to start, and ours could not bind. */
        if (readiness_count_now(managed->readiness) < managed->policy->n_frontends)
                process_start(managed->process);

        r = readiness_begin(managed->readiness);
        if (r < 0)
                log_error("policy \"%s\": cannot watch for its listeners: %s", managed->policy->name, strerror(-r));
}

void managed_stop_target(struct managed *managed)
{
        managed_remember_cut_clients(managed);
        managed->sleep.began_ns = now_monotonic_ns();
        managed->sleep.stopped_ns = 0;

        if (managed->process)
                process_stop(managed->process);
        managed->stopping = process_state(managed->process) == PROCESS_STOPPING;
        if (!managed->stopping)
                managed->sleep.stopped_ns = managed->sleep.began_ns;
}

void managed_hold(struct managed *managed)
{
        int r = holding_start(managed->holding);

        if (r < 0)
                managed_set_condition(managed, CONDITION_HOLD_FAILED, "CannotHold", "its frontends cannot be held: %s",
                                      strerror(-r));
        else
                managed_clear_condition(managed, CONDITION_HOLD_FAILED);

        /* After a back-off, some may be ready already. */
        if (r < 0 || managed->machine.phase != PHASE_WAKING || !managed->readiness)
                return;
        for (size_t i = 0; i < managed->policy->n_frontends; i++)
                if (readiness_is_ready(managed->readiness, i))
                        holding_release(managed->holding, i);
}

bool managed_lacks_holding(const struct managed *managed)
{
        return phase_holds(&managed->machine) && !holding_is_started(managed->holding);
}

/* Packets held while the target was still up need no pacing when part of it does not listen: they are owed its normal answer. */
static void release(struct managed *managed, const struct phase_transition *transition)
{
        bool listening = managed->readiness && readiness_count(managed->readiness) == managed->policy->n_frontends;

        if (managed->readiness && transition->from == PHASE_SLEEPING)
                listening = readiness_count_now(managed->readiness) == managed->policy->n_frontends;

        if (!listening) {
                holding_stop(managed->holding);
                return;
        }
        for (size_t i = 0; i < managed->policy->n_frontends; i++)
                holding_release(managed->holding, i);
}

static void refuse(struct managed *managed)
{
        char timeout[DURATION_TEXT_MAX];
        const struct condition *failure = &managed->conditions[CONDITION_PROCESS_FAILED];

        managed->wake_failures++;
        duration_format(managed->policy->wake.hold_timeout_ns, timeout);
        if (failure->holds)
                managed_set_condition(managed, CONDITION_WAKE_FAILED, "ProcessFailed", "not ready within %s: %s", timeout,
                                      failure->message);
        else
                managed_set_condition(managed, CONDITION_WAKE_FAILED, "NotListening",
                                      "the process runs, but did not listen on all of its frontends within %s", timeout);
        holding_refuse(managed->holding);
}

static void verdict_to_sleep_record(struct managed *managed, enum phase_event event)
{
        struct sleep_record *record = &managed->sleep;

        *record = (struct sleep_record){ .realtime_ns = now_realtime_ns(), .began_ns = now_monotonic_ns() };
        if (event == PHASE_EVENT_SLEEP) {
                record->cause = CAUSE_OPERATOR;
                strcpy(record->reason, "an operator asked for it");
        } else if (event == PHASE_EVENT_GONE) {
                record->cause = CAUSE_EXITED;
                record->stopped_ns = record->began_ns;
                if (managed->conditions[CONDITION_PROCESS_FAILED].holds)
                        snprintf(record->reason, sizeof(record->reason), "its process ended by itself: %.150s",
                                 managed->conditions[CONDITION_PROCESS_FAILED].message);
                else
                        strcpy(record->reason, "nobody listens any more");
        } else {
                record->cause = CAUSE_IDLE;
                snprintf(record->reason, sizeof(record->reason), "%s", managed->verdict.reason);
        }
}

static void tell_of_ready(struct managed *managed)
{
        struct event_log *log = managed->context->events;
        char waited[DURATION_TEXT_MAX];

        if (managed->wake.cause == CAUSE_NONE) {
                event_log_add(log, managed->policy->name, "Awake", "it listens");
                return;
        }
        duration_format(now_monotonic_ns() - managed->wake.zero_ns, waited);
        event_log_add(log, managed->policy->name, "Awake", "it listens, %s after the %s", waited,
                      managed->wake.cause == CAUSE_PACKET ? "first packet" : "request");
}

static const char *why_sleep_ended(const struct managed *managed, enum phase_event event)
{
        if (event == PHASE_EVENT_DEMAND)
                return "a packet came";
        if (event == PHASE_EVENT_WAKE)
                return "an operator woke it";
        return managed->conditions[CONDITION_HOLD_FAILED].holds ? managed->conditions[CONDITION_HOLD_FAILED].message
                                                                : "it was active";
}

static void tell_of_transition(struct managed *managed, enum phase_event event, const struct phase_transition *transition)
{
        struct event_log *log = managed->context->events;
        const char *name = managed->policy->name;

        switch (transition->to) {
        case PHASE_AWAKE:
                if (transition->from == PHASE_SLEEPING)
                        event_log_add(log, name, "SleepAborted", "%s while it was about to sleep", why_sleep_ended(managed, event));
                else
                        tell_of_ready(managed);
                break;
        case PHASE_SLEEPING:
                event_log_add(log, name, "Sleeping", "%s", managed->sleep.reason);
                break;
        case PHASE_ASLEEP:
                event_log_add(log, name, "Asleep", "%s", managed->sleep.reason);
                break;
        case PHASE_WAKING: /* the cause told of it */
        case PHASE_MAX:
                break;
        }
}

static void on_transition(struct managed *managed, enum phase_event event, const struct phase_transition *transition,
                          uint64_t slept_ns)
{
        managed->transitions[transition->from][transition->to]++;
        managed->since_realtime_ns = now_realtime_ns();

        if (transition->from == PHASE_ASLEEP) {
                managed->asleep_ns += slept_ns;
                managed_woke_gpu(managed, slept_ns);
        }
        if (transition->to == PHASE_ASLEEP) {
                if (managed->readiness)
                        readiness_end(managed->readiness);
                managed_forget_gpu(managed);
                managed_clear_condition(managed, CONDITION_IDLE_UNKNOWN);
                managed_clear_condition(managed, CONDITION_NOT_LISTENING);
        }
        if (transition->to == PHASE_SLEEPING || (transition->to == PHASE_ASLEEP && event == PHASE_EVENT_GONE))
                verdict_to_sleep_record(managed, event);
        if (transition->to == PHASE_AWAKE && transition->from != PHASE_SLEEPING) {
                managed_reach(managed, WAKE_READY, now_monotonic_ns());
                managed_clear_condition(managed, CONDITION_WAKE_FAILED);
                managed_clear_condition(managed, CONDITION_PROCESS_FAILED);
        }
        tell_of_transition(managed, event, transition);
}

static void perform(struct managed *managed, const struct phase_transition *transition)
{
        if (transition->actions & PHASE_ACTION_HOLD)
                managed_hold(managed);
        if (transition->actions & PHASE_ACTION_STOP)
                managed_stop_target(managed);
        if (transition->actions & PHASE_ACTION_START)
                start_target(managed);
        if (transition->actions & PHASE_ACTION_RELEASE)
                release(managed, transition);
        if (transition->actions & PHASE_ACTION_REFUSE)
                refuse(managed);
}

/* A policy that is to be forgotten is done once it is awake and holds nothing any more, and also when its wake failed. */
static void finish_retiring(struct managed *managed)
{
        bool awake = managed->machine.phase == PHASE_AWAKE && !holding_is_started(managed->holding);
        bool failed = managed->machine.phase == PHASE_ASLEEP ||
                      (managed->machine.phase == PHASE_WAKING && managed->conditions[CONDITION_WAKE_FAILED].holds);

        if (managed->retiring && (awake || failed))
                managed->context->retired(managed, managed->context->userdata);
}

static void carry_out(struct managed *managed, enum phase_event event, const struct phase_transition *transition, uint64_t slept_ns)
{
        if (transition->from != transition->to)
                on_transition(managed, event, transition, slept_ns);
        perform(managed, transition);
        if (transition->from != transition->to)
                managed_save_state(managed);

        if (transition->actions & PHASE_ACTION_VERIFY) {
                managed_step(managed, managed_verify(managed));
                return;
        }
        managed_arm_timer(managed);
        finish_retiring(managed);
}

static void step(struct managed *managed, enum phase_event event, struct phase_transition *ret_transition)
{
        uint64_t now = now_monotonic_ns(), since = managed->machine.since_ns;

        phase_step(&managed->machine, &managed->settings, event, now, ret_transition);
        carry_out(managed, event, ret_transition, now - since);
}

void managed_step(struct managed *managed, enum phase_event event)
{
        struct phase_transition transition;

        step(managed, event, &transition);
}

void managed_begin(struct managed *managed, enum phase phase)
{
        struct phase_transition transition;

        phase_begin(&managed->machine, &managed->settings, phase, now_monotonic_ns(), &transition);
        managed->since_realtime_ns = now_realtime_ns();
        perform(managed, &transition);
        managed_arm_timer(managed);
}

int managed_wake(struct managed *managed, const char **ret_message)
{
        struct phase_transition transition;
        uint64_t now = now_monotonic_ns();

        if (managed->machine.phase == PHASE_ASLEEP) {
                managed->wake = (struct wake_record){ .cause = CAUSE_OPERATOR, .realtime_ns = now_realtime_ns(), .zero_ns = now };
                managed->wakes[CAUSE_OPERATOR]++;
                managed_reach(managed, WAKE_DETECTED, now);
                event_log_add(managed->context->events, managed->policy->name, "Woken", "an operator woke it");
        }

        step(managed, PHASE_EVENT_WAKE, &transition);
        if (transition.from == transition.to) {
                *ret_message = transition.note ? transition.note : "it is awake or waking already";
                return -EBUSY;
        }
        *ret_message = "waking";
        return 0;
}

int managed_sleep(struct managed *managed, const char **ret_message)
{
        struct phase_transition transition;

        step(managed, PHASE_EVENT_SLEEP, &transition);
        if (transition.from == transition.to) {
                *ret_message = transition.note ? transition.note : "it is asleep or about to sleep already";
                return -EBUSY;
        }
        *ret_message = "going to sleep, unless something happens within the next moment";
        return 0;
}
