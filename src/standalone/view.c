/* SPDX-License-Identifier: Apache-2.0 */
#include "base/time.h"
#include "hold/hold.h"
#include "standalone/managed.h"

static json_t *frontends_json(const struct policy *policy)
{
        char text[FRONTEND_TEXT_MAX];
        json_t *json = json_array();

        for (size_t i = 0; i < policy->n_frontends; i++)
                json_array_append_new(json, json_string(frontend_format(&policy->frontends[i], text)));
        return json;
}

static json_t *command_json(const struct policy *policy)
{
        json_t *json = json_array();

        for (char **word = policy->process.command; *word; word++)
                json_array_append_new(json, json_string(*word));
        return json;
}

static json_t *target_json(const struct managed *managed)
{
        return json_pack("{ss, ss, si, so, ss}", "kind", "Process", "state",
                         process_state_to_string(process_state(managed->process)), "pid", (int)process_pid(managed->process),
                         "command", command_json(managed->policy), "cgroup", managed->cgroup);
}

static double seconds(uint64_t ns)
{
        return (double)(ns / NSEC_PER_MSEC) / 1e3;
}

static json_t *idle_json(const struct managed *managed)
{
        const struct idle_verdict *verdict = &managed->verdict;

        if (managed->machine.phase != PHASE_AWAKE && managed->machine.phase != PHASE_SLEEPING)
                return json_null();
        return json_pack("{ss, ss, sf, sf, si}", "verdict", verdict_to_string(verdict->verdict), "reason", verdict->reason,
                         "idle_seconds", seconds(verdict->idle_ns), "required_seconds", seconds(verdict->required_ns), "factor",
                         (int)managed->idle_factor);
}

static json_t *activity_json(const struct managed *managed)
{
        const struct workload_snapshot *snapshot = &managed->snapshot;

        if (!managed->snapshot_known)
                return json_null();
        return json_pack("{si, si, si, sI, sI, sI, sf}", "connections", (int)snapshot->connections, "outbound",
                         (int)snapshot->outbound, "open_requests", (int)snapshot->open_requests, "received_bytes",
                         (json_int_t)snapshot->received_bytes, "sent_bytes", (json_int_t)snapshot->sent_bytes, "connections_total",
                         (json_int_t)snapshot->connections_total, "cpu_cores", (double)snapshot->cpu_millicores / 1e3);
}

json_t *managed_json(struct managed *managed)
{
        const struct policy *policy = managed->policy;
        uint64_t now = now_monotonic_ns();
        _cleanup_(freep) char *origin = NULL;

        /* What an awake policy says of itself is read now, not at its last evaluation. */
        if (managed->machine.phase == PHASE_AWAKE)
                managed_look(managed);
        if (asprintf(&origin, "%s:%u", policy->file, policy->line) < 0)
                return NULL;

        return json_pack("{ss, ss, ss, so, sf, sb, so, so, so, so, so, s{si, sb}, so, so, so}", "name", policy->name, "origin",
                         origin, "phase", phase_to_string(managed->machine.phase), "since",
                         timestamp_json(managed->since_realtime_ns), "since_seconds", seconds(now - managed->machine.since_ns),
                         "dry_run", (int)policy->dry_run, "listen", frontends_json(policy), "target", target_json(managed), "idle",
                         idle_json(managed), "activity", activity_json(managed), "gpu", managed_gpu_json(managed), "held", "parked",
                         (int)holding_parked(managed->holding), "holding", (int)phase_holds(&managed->machine), "last_wake",
                         record_or_earlier(wake_record_json(&managed->wake), managed->earlier_wake), "last_sleep",
                         record_or_earlier(sleep_record_json(&managed->sleep), managed->earlier_sleep), "conditions",
                         conditions_json(managed->conditions));
}
