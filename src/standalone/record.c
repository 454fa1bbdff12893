/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/record.h"

#include "base/time.h"

static const char *const cause_names[] = {
        [CAUSE_NONE] = "none",       [CAUSE_PACKET] = "packet", [CAUSE_OPERATOR] = "operator",
        [CAUSE_STARTED] = "started", [CAUSE_IDLE] = "idle",     [CAUSE_EXITED] = "exited",
};
_Static_assert(ELEMENTSOF(cause_names) == CAUSE_MAX, "a name for every cause");

static const char *const wake_phase_names[] = {
        [WAKE_DETECTED] = "detected", [WAKE_REQUESTED] = "requested", [WAKE_STARTED] = "started",
        [WAKE_READY] = "ready",       [WAKE_RELEASED] = "released",   [WAKE_ANSWERED] = "answered",
};
_Static_assert(ELEMENTSOF(wake_phase_names) == WAKE_PHASE_MAX, "a name for every phase of a wake");

static const char *const condition_names[] = {
        [CONDITION_WAKE_FAILED] = "WakeFailed", [CONDITION_PROCESS_FAILED] = "ProcessFailed",
        [CONDITION_FLAPPING] = "Flapping",      [CONDITION_IDLE_UNKNOWN] = "IdleUnknown",
        [CONDITION_PORT_IN_USE] = "PortInUse",  [CONDITION_NOT_LISTENING] = "NotListening",
        [CONDITION_DRY_RUN] = "DryRun",         [CONDITION_HOLD_FAILED] = "HoldFailed",
        [CONDITION_GPU_IDLE] = "GpuIdle",
};
_Static_assert(ELEMENTSOF(condition_names) == CONDITION_MAX, "a name for every condition");

const char *cause_to_string(enum cause cause)
{
        return cause_names[cause];
}

const char *wake_phase_to_string(enum wake_phase phase)
{
        return wake_phase_names[phase];
}

const char *condition_to_string(enum condition_type type)
{
        return condition_names[type];
}

void wake_record_reach(struct wake_record *record, enum wake_phase phase, uint64_t now_ns)
{
        if (record->cause != CAUSE_NONE && record->reached_ns[phase] == 0)
                record->reached_ns[phase] = now_ns;
}

json_t *timestamp_json(uint64_t realtime_ns)
{
        char text[TIMESTAMP_TEXT_MAX];

        return json_string(timestamp_format(realtime_ns, text));
}

/* Seconds with microseconds: enough for the shortest phase, and no digits that mean nothing. */
static json_t *seconds_json(uint64_t from_ns, uint64_t to_ns)
{
        if (to_ns == 0)
                return json_null();
        if (to_ns < from_ns)
                return json_real(0.0);
        return json_real((double)((to_ns - from_ns) / NSEC_PER_USEC) / 1e6);
}

static json_t *phases_json(const struct wake_record *record)
{
        json_t *phases = json_object();

        for (int phase = 0; phase < WAKE_PHASE_MAX; phase++)
                json_object_set_new(phases, wake_phase_names[phase], seconds_json(record->zero_ns, record->reached_ns[phase]));
        return phases;
}

static void client_json(const struct client *client, json_t *into)
{
        char endpoint[ENDPOINT_TEXT_MAX], flow[FLOW_TEXT_MAX];

        if (!client->known) {
                json_object_set_new(into, "source", json_null());
                json_object_set_new(into, "flow", json_null());
        } else {
                endpoint_format(&client->flow.source, client->flow.source_port, endpoint);
                json_object_set_new(into, "source", json_string(endpoint));
                json_object_set_new(into, "flow", json_string(flow_format(&client->flow, flow)));
        }
        json_object_set_new(into, "process", client->process[0] ? json_string(client->process) : json_null());
        json_object_set_new(into, "pid", client->pid ? json_integer(client->pid) : json_null());
        json_object_set_new(into, "cgroup", client->cgroup[0] ? json_string(client->cgroup) : json_null());
}

json_t *wake_record_json(const struct wake_record *record)
{
        json_t *json;

        if (record->cause == CAUSE_NONE)
                return json_null();

        json = json_pack("{so, ss}", "time", timestamp_json(record->realtime_ns), "cause", cause_to_string(record->cause));
        if (!json)
                return NULL;
        client_json(&record->client, json);
        json_object_set_new(json, "phases", phases_json(record));
        return json;
}

json_t *sleep_record_json(const struct sleep_record *record)
{
        if (record->cause == CAUSE_NONE)
                return json_null();

        return json_pack("{so, ss, ss, so}", "time", timestamp_json(record->realtime_ns), "cause", cause_to_string(record->cause),
                         "reason", record->reason, "stop_seconds", seconds_json(record->began_ns, record->stopped_ns));
}

json_t *conditions_json(const struct condition conditions[static CONDITION_MAX])
{
        json_t *json = json_array();

        for (int type = 0; type < CONDITION_MAX; type++) {
                const struct condition *condition = &conditions[type];

                if (condition->holds)
                        json_array_append_new(json, json_pack("{ss, ss, ss, so}", "type", condition_names[type], "reason",
                                                              condition->reason, "message", condition->message, "since",
                                                              timestamp_json(condition->realtime_ns)));
        }
        return json;
}

json_t *record_or_earlier(json_t *record, json_t *earlier)
{
        if (!json_is_null(record) || !earlier)
                return record;
        json_decref(record);
        return json_incref(earlier);
}
