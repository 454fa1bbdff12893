/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "base/time.h"

static json_t *time_json(uint64_t realtime_ns)
{
        char text[TIMESTAMP_TEXT_MAX];

        return realtime_ns ? json_string(timestamp_format(realtime_ns, text)) : json_null();
}

static double seconds(uint64_t ns)
{
        return (double)(ns / NSEC_PER_MSEC) / 1e3;
}

static json_t *listen_json(const struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        char text[FRONTEND_TEXT_MAX];
        json_t *json = json_array();

        for (size_t i = 0; i < status->n_frontends; i++)
                json_array_append_new(json, json_string(frontend_format(&status->frontends[i].frontend, text)));
        return json;
}

static json_t *pods_json(const struct agent_policy *policy)
{
        const struct agent_pod *pod;
        json_t *json = json_array();

        LIST_FOREACH(pod, &policy->pods, others)
        json_array_append_new(json, json_pack("{ss, ss, sb}", "name", pod->key, "uid", pod->uid, "watched", pod->workload != NULL));
        return json;
}

static json_t *target_json(const struct agent_policy *policy)
{
        const struct policy *spec = policy->object->policy;
        const struct target_reference *reference = spec ? &spec->cluster.reference : NULL;

        return json_pack("{ss*, ss*, sI, so}", "kind", reference ? reference->kind : NULL, "name",
                         reference ? reference->name : NULL, "replicas_before", (json_int_t)policy->object->status.replicas_before,
                         "pods", pods_json(policy));
}

static json_t *idle_json(const struct agent_policy *policy)
{
        const struct idle_verdict *verdict = &policy->verdict;

        if (policy->n_pods == 0)
                return json_null();
        return json_pack("{ss, ss, sf, sf, si}", "verdict", verdict_to_string(verdict->verdict), "reason", verdict->reason,
                         "idle_seconds", seconds(verdict->idle_ns), "required_seconds", seconds(verdict->required_ns), "factor",
                         (int)MAX(policy->object->status.idle_factor, 1U));
}

void agent_policy_add_up(const struct agent_policy *policy, struct workload_snapshot *ret_sum)
{
        const struct agent_pod *pod;

        *ret_sum = (struct workload_snapshot){ 0 };
        LIST_FOREACH(pod, &policy->pods, others)
        {
                ret_sum->connections += pod->snapshot.connections;
                ret_sum->outbound += pod->snapshot.outbound;
                ret_sum->open_requests += pod->snapshot.open_requests;
                ret_sum->received_bytes += pod->snapshot.received_bytes;
                ret_sum->sent_bytes += pod->snapshot.sent_bytes;
                ret_sum->connections_total += pod->snapshot.connections_total;
                ret_sum->cpu_millicores += pod->snapshot.cpu_millicores;
        }
}

static json_t *activity_json(const struct agent_policy *policy)
{
        struct workload_snapshot sum;

        if (policy->n_pods == 0)
                return json_null();
        agent_policy_add_up(policy, &sum);
        return json_pack("{si, si, si, sI, sI, sI, sf}", "connections", (int)sum.connections, "outbound", (int)sum.outbound,
                         "open_requests", (int)sum.open_requests, "received_bytes", (json_int_t)sum.received_bytes, "sent_bytes",
                         (json_int_t)sum.sent_bytes, "connections_total", (json_int_t)sum.connections_total, "cpu_cores",
                         (double)sum.cpu_millicores / 1e3);
}

static json_t *steps_json(const struct wake_story *wake)
{
        json_t *json = json_object();

        for (int step = 0; step < WAKE_STEP_MAX; step++) {
                uint64_t at = wake->reached_ns[step];

                json_object_set_new(json, wake_step_to_string(step),
                                    at ? json_real((double)(at - MIN(wake->zero_ns, at)) / NSEC_PER_SEC) : json_null());
        }
        return json;
}

static json_t *wake_json(const struct agent_policy *policy)
{
        const struct wake_story *wake = &policy->wake;
        char source[ENDPOINT_TEXT_MAX], flow[FLOW_TEXT_MAX];

        if (wake->realtime_ns == 0)
                return json_null();
        return json_pack("{so, ss, ss, ss, so}", "time", time_json(wake->realtime_ns), "cause", "packet", "source",
                         endpoint_format(&wake->flow.source, wake->flow.source_port, source), "flow",
                         flow_format(&wake->flow, flow), "phases", steps_json(wake));
}

static json_t *sleep_json(const struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;

        if (status->last_sleep_realtime_ns == 0)
                return json_null();
        return json_pack("{so, ss, ss}", "time", time_json(status->last_sleep_realtime_ns), "cause", "idle", "reason",
                         status->last_sleep_reason ? status->last_sleep_reason : "");
}

static json_t *conditions_json(const struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        json_t *json = json_array();

        for (size_t i = 0; i < status->n_conditions; i++) {
                const struct status_condition *condition = &status->conditions[i];

                if (condition->holds)
                        json_array_append_new(json, json_pack("{ss, ss, ss, so}", "type", condition->type, "reason",
                                                              condition->reason, "message", condition->message, "since",
                                                              time_json(condition->since_realtime_ns)));
        }
        return json;
}

static json_t *held_json(const struct agent_policy *policy)
{
        bool started = policy->holding && holding_is_started(policy->holding);

        return json_pack("{sb, sb, si}", "holding", (int)started, "releasing", (int)agent_policy_is_releasing(policy), "parked",
                         policy->holding ? (int)holding_parked(policy->holding) : 0);
}

json_t *agent_policy_json(struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        const struct policy *spec = policy->object->policy;
        uint64_t now = now_realtime_ns();

        agent_policy_look(policy);
        return json_pack("{ss, ss, ss, so, sf, sb, so, so, so, so, so, so, so, so, so, sI, sI}", "name", policy->name, "origin",
                         "ScaleToZero", "phase", phase_to_string(status->phase), "since", time_json(status->since_realtime_ns),
                         "since_seconds", now > status->since_realtime_ns ? seconds(now - status->since_realtime_ns) : 0.0,
                         "dry_run", spec ? (int)spec->dry_run : 0, "listen", listen_json(policy), "target", target_json(policy),
                         "idle", idle_json(policy), "activity", activity_json(policy), "gpu", agent_policy_gpu_json(policy), "held",
                         held_json(policy), "last_wake", wake_json(policy), "last_sleep", sleep_json(policy), "conditions",
                         conditions_json(policy), "epoch", (json_int_t)status->epoch, "quiet_epoch",
                         (json_int_t)policy->quiet_epoch);
}
