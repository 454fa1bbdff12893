/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>

#include "base/time.h"
#include "kube/micro_time.h"
#include "kube/scale_to_zero_status.h"

/* "s*" and "o*" of json_pack() leave out what is NULL, "s?" and "o?" write null: the first is for entries of lists, which are replaced
 * as a whole, the second for fields that a merge patch must remove. */

static const char *time_text(uint64_t realtime_ns, char buffer[static MICRO_TIME_TEXT_MAX])
{
        return realtime_ns ? micro_time_format(realtime_ns / NSEC_PER_USEC, buffer) : NULL;
}

static const char *protocol_text(uint8_t protocol)
{
        return protocol == IPPROTO_UDP ? "UDP" : "TCP";
}

/* Takes @entry, also on failure; without memory for either, @list becomes NULL. */
static void list_append(json_t **list, json_t *entry)
{
        if (json_array_append_new(*list, entry) == 0)
                return;
        json_decref(*list);
        *list = NULL;
}

static json_t *prefixes_json(const struct prefix *prefixes, size_t n_prefixes)
{
        json_t *list = json_array();
        char text[PREFIX_TEXT_MAX];

        for (size_t i = 0; i < n_prefixes; i++)
                list_append(&list, json_string(prefix_format(&prefixes[i], text)));
        return list;
}

static json_t *frontend_json(const struct status_frontend *frontend)
{
        char address[ADDRESS_TEXT_MAX];
        json_t *ranges = NULL;

        if (frontend->n_source_ranges > 0) {
                ranges = prefixes_json(frontend->source_ranges, frontend->n_source_ranges);
                if (!ranges)
                        return NULL;
        }
        return json_pack("{s:s, s:i, s:s, s:s, s:s*, s:s*, s:o*, s:b, s:b}", "address",
                         address_format(&frontend->frontend.address, address), "port", frontend->frontend.port, "protocol",
                         protocol_text(frontend->frontend.protocol), "origin", status_origins[frontend->origin], "backend",
                         frontend->backend, "node", frontend->node, "sourceRanges", ranges, "local", frontend->local, "affinity",
                         frontend->affinity);
}

static json_t *frontends_json(const struct scale_to_zero_status *status)
{
        json_t *list = json_array();

        for (size_t i = 0; i < status->n_frontends; i++)
                list_append(&list, frontend_json(&status->frontends[i]));
        return list;
}

static json_t *ports_json(const struct status_port *ports, size_t n_ports)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n_ports; i++)
                list_append(&list, json_pack("{s:s, s:i, s:s}", "backend", ports[i].backend, "port", ports[i].port, "protocol",
                                             protocol_text(ports[i].protocol)));
        return list;
}

static json_t *headers_json(char *const *headers)
{
        json_t *list = json_array();

        for (; *headers; headers++)
                list_append(&list, json_string(*headers));
        return list;
}

static json_t *probe_json(const struct status_probe *probe)
{
        json_t *headers = NULL;

        if (probe->headers) {
                headers = headers_json(probe->headers);
                if (!headers)
                        return NULL;
        }
        return json_pack("{s:s, s:i, s:b, s:s*, s:s*, s:o*, s:I, s:I, s:I}", "type", status_probe_types[probe->type], "port",
                         probe->port, "tls", probe->tls, "path", probe->path, "host", probe->host, "headers", headers,
                         "timeoutSeconds", (json_int_t)(probe->timeout_ns / NSEC_PER_SEC), "initialDelaySeconds",
                         (json_int_t)(probe->initial_delay_ns / NSEC_PER_SEC), "successThreshold",
                         (json_int_t)probe->success_threshold);
}

static json_t *endpoint_json(const struct status_endpoint *endpoint)
{
        char address[ADDRESS_TEXT_MAX], started[MICRO_TIME_TEXT_MAX];
        json_t *probe = NULL;

        if (endpoint->probe.type != PROBE_NONE) {
                probe = probe_json(&endpoint->probe);
                if (!probe)
                        return NULL;
        }
        return json_pack("{s:s, s:s*, s:s*, s:s*, s:b, s:s*, s:o, s:o*}", "address", address_format(&endpoint->address, address),
                         "node", endpoint->node, "pod", endpoint->pod, "podUID", endpoint->pod_uid, "ready", endpoint->ready,
                         "startedAt", time_text(endpoint->started_realtime_ns, started), "ports",
                         ports_json(endpoint->ports, endpoint->n_ports), "probe", probe);
}

static json_t *endpoints_json(const struct scale_to_zero_status *status)
{
        json_t *list = json_array();

        for (size_t i = 0; i < status->n_endpoints; i++)
                list_append(&list, endpoint_json(&status->endpoints[i]));
        return list;
}

static json_t *condition_json(const struct status_condition *condition)
{
        char since[MICRO_TIME_TEXT_MAX];

        return json_pack("{s:s, s:s, s:s, s:s, s:s*, s:I}", "type", condition->type, "status", condition->holds ? "True" : "False",
                         "reason", condition->reason, "message", condition->message, "lastTransitionTime",
                         time_text(condition->since_realtime_ns, since), "observedGeneration", (json_int_t)condition->generation);
}

static json_t *conditions_json(const struct scale_to_zero_status *status)
{
        json_t *list = json_array();

        for (size_t i = 0; i < status->n_conditions; i++)
                list_append(&list, condition_json(&status->conditions[i]));
        return list;
}

static json_t *last_wake_json(const struct status_wake *wake)
{
        char time[MICRO_TIME_TEXT_MAX];

        if (wake->realtime_ns == 0)
                return json_null();
        return json_pack("{s:s, s:s?, s:s?, s:s?}", "time", time_text(wake->realtime_ns, time), "cause", wake->cause, "source",
                         wake->source, "node", wake->node);
}

static json_t *last_sleep_json(const struct scale_to_zero_status *status)
{
        char time[MICRO_TIME_TEXT_MAX];

        if (status->last_sleep_realtime_ns == 0)
                return json_null();
        return json_pack("{s:s, s:s?}", "time", time_text(status->last_sleep_realtime_ns, time), "reason",
                         status->last_sleep_reason);
}

static json_t *count_json(uint32_t count)
{
        return count ? json_integer(count) : json_null();
}

static json_t *seconds_json(double seconds)
{
        return seconds > 0 ? json_real(seconds) : json_null();
}

json_t *scale_to_zero_status_json(const struct scale_to_zero_status *status)
{
        char since[MICRO_TIME_TEXT_MAX];

        return json_pack("{s:s, s:I, s:b, s:s?, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:i, s:I, s:o}", "phase",
                         phase_to_string(status->phase), "epoch", (json_int_t)status->epoch, "holding", status->holding, "since",
                         time_text(status->since_realtime_ns, since), "replicasBefore", count_json(status->replicas_before),
                         "frontends", frontends_json(status), "endpoints", endpoints_json(status), "selector",
                         status->selector ? status->selector : "", "ports", ports_json(status->ports, status->n_ports), "ignored",
                         prefixes_json(status->ignored, status->n_ignored), "lastWake", last_wake_json(&status->last_wake),
                         "lastSleep", last_sleep_json(status), "savedReplicaSeconds", status->saved_replica_seconds, "gpusBefore",
                         count_json(status->gpus_before), "savedGpuSeconds", seconds_json(status->saved_gpu_seconds), "idleFactor",
                         (int)MAX(status->idle_factor, 1u), "observedGeneration", (json_int_t)status->observed_generation,
                         "conditions", conditions_json(status));
}
