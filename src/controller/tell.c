/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"
#include "serve/event_log.h"

void tell(struct subject *subject, enum kube_event_type type, const char *reason, const char *action, const char *format, ...)
{
        const struct kube_metadata *metadata = &subject_known(subject)->object->metadata;
        const struct kube_reference about = { SCALE_TO_ZERO_API, "ScaleToZero", metadata->namespace,
                                              metadata->name,    metadata->uid, metadata->resource_version };
        _cleanup_(freep) char *text = NULL;
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (r < 0) {
                text = NULL;
                return;
        }
        kube_recorder_event(subject->controller->recorder, &about, type, reason, action, "%s", text);
        event_log_add(subject->controller->events, subject->key, reason, "%s", text);
        if (type == KUBE_EVENT_WARNING)
                log_notice("policy \"%s\": %s: %s", subject->key, reason, text);
}

static void tell_wake(struct subject *subject, const struct decision *decision)
{
        const struct status_wake *wake = &subject_known(subject)->object->status.last_wake;

        switch (decision->cause) {
        case WAKE_PACKET:
                tell(subject, KUBE_EVENT_NORMAL, "Woken", "Wake", "a packet from %s, held on node %s, wakes it",
                     wake->source ? wake->source : "an unknown client", wake->node ? wake->node : "?");
                break;
        case WAKE_SCALED:
                tell(subject, KUBE_EVENT_NORMAL, "Woken", "Wake", "somebody else has scaled its target up to %u",
                     subject->replicas_seen);
                break;
        case WAKE_MANUAL:
                tell(subject, KUBE_EVENT_NORMAL, "Woken", "Wake", "annotation lull.dev/wake asks for it");
                break;
        case WAKE_DELETED:
                tell(subject, KUBE_EVENT_NORMAL, "Woken", "Wake", "the policy is being deleted, and leaves nothing asleep");
                break;
        case WAKE_CAUSE_MAX:
                break;
        }
}

static const char *why_sleep_ended(const struct decision *decision)
{
        if (decision->blocked)
                return "it was blocked";
        if (decision->woken)
                return decision->cause == WAKE_PACKET ? "a packet came" : "annotation lull.dev/wake asks for it";
        return "it was active";
}

static void tell_sleep(struct subject *subject, const struct decision *decision)
{
        static const char *const words[SLEEP_REASON_MAX] = {
                [SLEEP_IDLE] = "it is idle on all of its nodes",
                [SLEEP_MANUAL] = "annotation lull.dev/sleep asks for it",
                [SLEEP_SCALED] = "somebody else has scaled its target to zero",
        };

        if (decision->machine.phase == PHASE_SLEEPING)
                tell(subject, KUBE_EVENT_NORMAL, "Sleeping", "Sleep", "%s; first packets are held", words[decision->reason]);
        else if (decision->slept)
                tell(subject, KUBE_EVENT_NORMAL, "Asleep", "Sleep", "%s", words[decision->reason]);
        else
                tell(subject, KUBE_EVENT_NORMAL, "Asleep", "Sleep", "scaled to zero, from %u", decision->replicas_before);
}

static void tell_awake(struct subject *subject, const struct decision *decision, uint64_t waited_ns)
{
        char waited[DURATION_TEXT_MAX];

        if (decision->from == PHASE_SLEEPING)
                tell(subject, KUBE_EVENT_NORMAL, "SleepAborted", "Sleep", "%s while it was about to sleep",
                     why_sleep_ended(decision));
        else
                tell(subject, KUBE_EVENT_NORMAL, "Awake", "Wake", "it is ready, %s after the wake began",
                     duration_format(waited_ns, waited));
}

static void tell_phase(struct subject *subject, const struct decision *decision)
{
        switch (decision->machine.phase) {
        case PHASE_AWAKE:
                tell_awake(subject, decision, now_monotonic_ns() - decision->from_since_ns);
                break;
        case PHASE_SLEEPING:
        case PHASE_ASLEEP:
                tell_sleep(subject, decision);
                break;
        case PHASE_WAKING:
                tell_wake(subject, decision);
                break;
        case PHASE_MAX:
                break;
        }
}

static bool is_good(const char *condition)
{
        return strcmp(condition, "DryRun") == 0 || strcmp(condition, "GpuIdle") == 0;
}

/* What a wake failed by is told once it has been looked at. */
static void tell_conditions(struct subject *subject, const struct decision *decision)
{
        for (size_t i = 0; i < decision->conditions.n; i++) {
                const struct condition_entry *entry = &decision->conditions.entries[i];
                bool is_news = decision->news & (UINT32_C(1) << i);

                if (is_news && strcmp(entry->type, "WakeFailed") != 0)
                        tell(subject, is_good(entry->type) ? KUBE_EVENT_NORMAL : KUBE_EVENT_WARNING, entry->type, "Manage", "%s",
                             entry->message);
        }
}

void tell_written(struct subject *subject, const struct decision *decision)
{
        if (decision->from != decision->machine.phase)
                tell_phase(subject, decision);
        tell_conditions(subject, decision);
}
