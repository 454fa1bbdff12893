/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as in docs/control-api.md. */
#include <string.h>

#include "base/time.h"
#include "controller/controller_private.h"

static json_t *timestamp_json(uint64_t realtime_ns)
{
        char text[TIMESTAMP_TEXT_MAX];

        return json_string(timestamp_format(realtime_ns, text));
}

static json_t *frontends_json(const struct scale_to_zero_status *status)
{
        char text[FRONTEND_TEXT_MAX];
        json_t *json = json_array();

        for (size_t i = 0; i < status->n_frontends; i++)
                json_array_append_new(json, json_string(frontend_format(&status->frontends[i].frontend, text)));
        return json;
}

static json_t *target_json(const struct subject *subject)
{
        struct target_state state;
        const char *words = "unknown";

        if (!subject->target)
                return json_null();
        target_read(subject->target, &state);
        if (state.known)
                words = !state.exists ? "missing" : state.replicas == 0 ? "stopped" : "running";
        return json_pack("{ss, ss, ss, sI, sI}", "kind", subject->reference.kind, "name", subject->reference.name, "state", words,
                         "replicas", (json_int_t)(state.known ? state.replicas : 0), "ready",
                         (json_int_t)(state.known ? state.ready : 0));
}

static json_t *idle_json(const struct subject *subject, const struct scale_to_zero *object)
{
        const struct resolution *resolution = subject->resolution;
        struct evidence_question question = {
                .policy = subject->key,
                .epoch = object->status.epoch,
                .nodes = resolution ? resolution->nodes : NULL,
                .pods = resolution ? resolution->node_pods : NULL,
                .n_nodes = resolution ? resolution->n_nodes : 0,
        };
        uint32_t factor = MAX(object->status.idle_factor, 1u);
        struct target_state target = { .known = false };
        struct evidence evidence;
        char reason[256];

        if (object->status.phase == PHASE_ASLEEP || object->status.phase == PHASE_WAKING || !object->policy)
                return json_null();
        if (subject->target)
                target_read(subject->target, &target);
        question.wanted = target.known && target.exists ? target.replicas : 0;
        question.running = resolution ? resolution->n_pods : 0;
        question.n_ready = resolution ? resolution->n_ready : 0;
        evidence_gather(subject->controller->agents, &question, now_monotonic_ns(), &evidence);
        if (evidence.idle)
                snprintf(reason, sizeof(reason), "idle on all of its nodes");
        else if (evidence.pods_are_missing)
                snprintf(reason, sizeof(reason), "only %u of the %u pods run that its target is to have", question.running,
                         question.wanted);
        else if (evidence.none_is_ready)
                snprintf(reason, sizeof(reason), "none of its pods is ready");
        else if (!evidence.busy_node)
                snprintf(reason, sizeof(reason), "no node is known to run its pods");
        else
                snprintf(reason, sizeof(reason), "node %s: %.180s", evidence.busy_node,
                         evidence.busy_reason ? evidence.busy_reason : "says nothing of it");
        return json_pack("{ss, ss, sf, sf, si}", "verdict",
                         evidence.idle                                     ? "idle"
                         : evidence.busy_node && !evidence.busy_is_unknown ? "busy"
                                                                           : "unknown",
                         "reason", reason, "idle_seconds", 0.0, "required_seconds",
                         (double)object->policy->idle.after_ns / NSEC_PER_SEC * factor, "factor", (int)factor);
}

static const char *cause_word(const char *cause)
{
        if (strcmp(cause, wake_cause_to_string(WAKE_PACKET)) == 0)
                return "packet";
        return strcmp(cause, wake_cause_to_string(WAKE_SCALED)) == 0 ? "started" : "operator";
}

static json_t *wake_json(const struct status_wake *wake)
{
        if (wake->realtime_ns == 0 || !wake->cause)
                return json_null();
        return json_pack("{so, ss, ss?, ss?}", "time", timestamp_json(wake->realtime_ns), "cause", cause_word(wake->cause),
                         "source", wake->source, "node", wake->node);
}

static json_t *sleep_json(const struct scale_to_zero_status *status)
{
        const char *reason = status->last_sleep_reason;
        bool manual = reason && strcmp(reason, sleep_reason_to_string(SLEEP_MANUAL)) == 0;
        bool scaled = reason && strcmp(reason, sleep_reason_to_string(SLEEP_SCALED)) == 0;

        if (status->last_sleep_realtime_ns == 0)
                return json_null();
        return json_pack("{so, ss, ss}", "time", timestamp_json(status->last_sleep_realtime_ns), "cause",
                         manual ? "operator" : "idle", "reason",
                         scaled   ? "somebody else has scaled its target to zero"
                         : manual ? "annotation lull.dev/sleep asked for it"
                                  : "it was idle on all of its nodes");
}

static json_t *conditions_json(const struct scale_to_zero_status *status)
{
        json_t *json = json_array();

        for (size_t i = 0; i < status->n_conditions; i++) {
                const struct status_condition *condition = &status->conditions[i];

                if (condition->holds)
                        json_array_append_new(json, json_pack("{ss, ss?, ss?, so}", "type", condition->type, "reason",
                                                              condition->reason, "message", condition->message, "since",
                                                              timestamp_json(condition->since_realtime_ns)));
        }
        return json;
}

json_t *subject_json(const struct subject *subject)
{
        const struct scale_to_zero *object = subject_known(subject)->object;
        const struct scale_to_zero_status *status = &object->status;
        uint64_t now = now_realtime_ns(), since = status->since_realtime_ns ? status->since_realtime_ns : now;

        return json_pack("{ss, ss, ss, so, sf, sb, so, so, so, sn, s{sb, si}, so, so, so, sI, sf}", "name", subject->key, "origin",
                         "ScaleToZero", "phase", phase_to_string(status->phase), "since", timestamp_json(since), "since_seconds",
                         now > since ? (double)(now - since) / NSEC_PER_SEC : 0.0, "dry_run",
                         (int)(object->policy && object->policy->dry_run), "listen", frontends_json(status), "target",
                         target_json(subject), "idle", idle_json(subject, object), "activity", "held", "holding",
                         (int)status->holding, "parked", 0, "last_wake", wake_json(&status->last_wake), "last_sleep",
                         sleep_json(status), "conditions", conditions_json(status), "epoch", (json_int_t)status->epoch,
                         "saved_replica_seconds", status->saved_replica_seconds);
}
