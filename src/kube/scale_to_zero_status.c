/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/scale_to_zero_status.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include "base/time.h"

const char *const status_origins[] = {
        [FRONTEND_CLUSTER_IP] = "ClusterIP",       [FRONTEND_NODE_PORT] = "NodePort", [FRONTEND_EXTERNAL] = "ExternalIP",
        [FRONTEND_LOAD_BALANCER] = "LoadBalancer", [FRONTEND_PARKING] = "Parking",    NULL,
};
static_assert(ELEMENTSOF(status_origins) == FRONTEND_PARKING + 2, "a word for each origin");

const char *const status_probe_types[] = {
        [PROBE_NONE] = "None",
        [PROBE_HTTP] = "HTTP",
        [PROBE_TCP] = "TCP",
        NULL,
};
static_assert(ELEMENTSOF(status_probe_types) == PROBE_TCP + 2, "a word for each type");

static void address_read(struct field_reader *reader, const json_t *source, struct address *address, const char *field)
{
        const char *text = field_text(reader, source, "address", field);

        if (!text || address_parse(text, address) < 0)
                field_fail(reader, -EBADMSG, field);
}

static void port_read(struct field_reader *reader, const json_t *source, uint16_t *port, uint8_t *protocol, const char *field)
{
        *port = (uint16_t)field_number(reader, source, "port", 0, UINT16_MAX, field);
        *protocol = field_protocol(reader, source, "protocol", field);
        if (*port == 0 || *protocol == 0)
                field_fail(reader, -EBADMSG, field);
}

static char *needed_copy(struct field_reader *reader, const json_t *source, const char *key, const char *field)
{
        char *copy = field_copy(reader, source, key, NULL, field);

        if (!copy)
                field_fail(reader, -EBADMSG, field);
        return copy;
}

static struct prefix *prefixes_read(struct field_reader *reader, const json_t *list, size_t max, size_t *ret_count,
                                    const char *field)
{
        struct prefix *prefixes = field_allocate(reader, list, sizeof(*prefixes), max, field);
        const json_t *entry;
        size_t i;

        if (!prefixes)
                return NULL;
        json_array_foreach(list, i, entry)
                if (!json_is_string(entry) || prefix_parse(json_string_value(entry), &prefixes[i]) < 0)
                        field_fail(reader, -EBADMSG, field);
        *ret_count = json_array_size(list);
        return prefixes;
}

static void phase_read(struct field_reader *reader, const json_t *source, struct scale_to_zero_status *status)
{
        const char *text = field_text(reader, source, "phase", "status.phase");

        if (text && phase_from_string(text, &status->phase) < 0)
                field_fail(reader, -EBADMSG, "status.phase");
}

static void frontend_read(struct field_reader *reader, const json_t *source, struct status_frontend *frontend)
{
        const json_t *ranges = field_array(reader, source, "sourceRanges", "status.frontends[].sourceRanges");

        address_read(reader, source, &frontend->frontend.address, "status.frontends[].address");
        port_read(reader, source, &frontend->frontend.port, &frontend->frontend.protocol, "status.frontends[].port");
        frontend->origin = field_word(reader, source, "origin", status_origins, -1, "status.frontends[].origin");
        frontend->backend = needed_copy(reader, source, "backend", "status.frontends[].backend");
        frontend->node = field_copy(reader, source, "node", NULL, "status.frontends[].node");
        frontend->source_ranges = prefixes_read(reader, ranges, KUBE_SERVICE_ADDRESSES_MAX, &frontend->n_source_ranges,
                                                "status.frontends[].sourceRanges");
        frontend->local = field_bool(reader, source, "local", false, "status.frontends[].local");
        frontend->affinity = field_bool(reader, source, "affinity", false, "status.frontends[].affinity");
}

static void frontends_read(struct field_reader *reader, const json_t *source, struct scale_to_zero_status *status)
{
        const json_t *list = field_array(reader, source, "frontends", "status.frontends"), *entry;
        size_t i;

        status->frontends = field_allocate(reader, list, sizeof(*status->frontends), STATUS_FRONTENDS_MAX, "status.frontends");
        if (!status->frontends)
                return;
        json_array_foreach(list, i, entry)
                frontend_read(reader, entry, &status->frontends[status->n_frontends++]);
}

static struct status_port *ports_read(struct field_reader *reader, const json_t *source, size_t *n_ports, const char *field)
{
        const json_t *list = field_array(reader, source, "ports", field), *entry;
        struct status_port *ports = field_allocate(reader, list, sizeof(*ports), STATUS_PORTS_MAX, field);
        size_t i;

        if (!ports)
                return NULL;
        json_array_foreach(list, i, entry) {
                struct status_port *port = &ports[(*n_ports)++];

                port->backend = needed_copy(reader, entry, "backend", field);
                port_read(reader, entry, &port->port, &port->protocol, field);
        }
        return ports;
}

static void headers_read(struct field_reader *reader, const json_t *source, struct status_probe *probe)
{
        static const char field[] = "status.endpoints[].probe.headers";
        const json_t *list = field_array(reader, source, "headers", field), *entry;
        size_t i;

        if (json_array_size(list) > STATUS_HEADERS_MAX)
                field_fail(reader, -E2BIG, field);
        if (json_array_size(list) == 0 || reader->failed < 0)
                return;
        probe->headers = calloc(json_array_size(list) + 1, sizeof(char *));
        if (!probe->headers) {
                field_fail(reader, -ENOMEM, field);
                return;
        }
        json_array_foreach(list, i, entry) {
                probe->headers[i] = json_is_string(entry) ? strdup(json_string_value(entry)) : NULL;
                if (!probe->headers[i]) {
                        field_fail(reader, json_is_string(entry) ? -ENOMEM : -EBADMSG, field);
                        return;
                }
        }
}

static void probe_read(struct field_reader *reader, const json_t *endpoint, struct status_probe *probe)
{
        const json_t *source = field_object(reader, endpoint, "probe", "status.endpoints[].probe");
        uint8_t protocol;

        if (!source)
                return;
        probe->type = field_word(reader, source, "type", status_probe_types, -1, "status.endpoints[].probe.type");
        port_read(reader, source, &probe->port, &protocol, "status.endpoints[].probe.port");
        probe->tls = field_bool(reader, source, "tls", false, "status.endpoints[].probe.tls");
        probe->path = field_copy(reader, source, "path", probe->type == PROBE_HTTP ? "/" : NULL, "status.endpoints[].probe.path");
        probe->host = field_copy(reader, source, "host", NULL, "status.endpoints[].probe.host");
        headers_read(reader, source, probe);
        probe->timeout_ns = NSEC_PER_SEC *
                            field_number(reader, source, "timeoutSeconds", 1, INT32_MAX, "status.endpoints[].probe.timeoutSeconds");
        probe->initial_delay_ns = NSEC_PER_SEC * field_number(reader, source, "initialDelaySeconds", 0, INT32_MAX,
                                                              "status.endpoints[].probe.initialDelaySeconds");
        probe->success_threshold =
                field_number(reader, source, "successThreshold", 1, INT32_MAX, "status.endpoints[].probe.successThreshold");
}

static void endpoint_read(struct field_reader *reader, const json_t *source, struct status_endpoint *endpoint)
{
        address_read(reader, source, &endpoint->address, "status.endpoints[].address");
        endpoint->node = field_copy(reader, source, "node", NULL, "status.endpoints[].node");
        endpoint->pod = field_copy(reader, source, "pod", NULL, "status.endpoints[].pod");
        endpoint->pod_uid = field_copy(reader, source, "podUID", NULL, "status.endpoints[].podUID");
        endpoint->ready = field_bool(reader, source, "ready", false, "status.endpoints[].ready");
        endpoint->started_realtime_ns = field_time(reader, source, "startedAt", "status.endpoints[].startedAt");
        endpoint->ports = ports_read(reader, source, &endpoint->n_ports, "status.endpoints[].ports");
        probe_read(reader, source, &endpoint->probe);
}

static void endpoints_read(struct field_reader *reader, const json_t *source, struct scale_to_zero_status *status)
{
        const json_t *list = field_array(reader, source, "endpoints", "status.endpoints"), *entry;
        size_t i;

        status->endpoints = field_allocate(reader, list, sizeof(*status->endpoints), STATUS_ENDPOINTS_MAX, "status.endpoints");
        if (!status->endpoints)
                return;
        json_array_foreach(list, i, entry)
                endpoint_read(reader, entry, &status->endpoints[status->n_endpoints++]);
}

static void condition_read(struct field_reader *reader, const json_t *source, struct status_condition *condition)
{
        const char *holds = field_text(reader, source, "status", "status.conditions[].status");

        condition->type = needed_copy(reader, source, "type", "status.conditions[].type");
        condition->reason = field_copy(reader, source, "reason", "", "status.conditions[].reason");
        condition->message = field_copy(reader, source, "message", "", "status.conditions[].message");
        condition->holds = holds && strcmp(holds, "True") == 0;
        condition->since_realtime_ns = field_time(reader, source, "lastTransitionTime", "status.conditions[].lastTransitionTime");
        condition->generation = field_integer(reader, source, "observedGeneration", 0, "status.conditions[].observedGeneration");
}

static void conditions_read(struct field_reader *reader, const json_t *source, struct scale_to_zero_status *status)
{
        const json_t *list = field_array(reader, source, "conditions", "status.conditions"), *entry;
        size_t i;

        status->conditions = field_allocate(reader, list, sizeof(*status->conditions), STATUS_CONDITIONS_MAX, "status.conditions");
        if (!status->conditions)
                return;
        json_array_foreach(list, i, entry)
                condition_read(reader, entry, &status->conditions[status->n_conditions++]);
}

static void last_read(struct field_reader *reader, const json_t *source, struct scale_to_zero_status *status)
{
        const json_t *wake = field_object(reader, source, "lastWake", "status.lastWake");
        const json_t *sleep = field_object(reader, source, "lastSleep", "status.lastSleep");

        status->last_wake.realtime_ns = field_time(reader, wake, "time", "status.lastWake.time");
        status->last_wake.cause = field_copy(reader, wake, "cause", NULL, "status.lastWake.cause");
        status->last_wake.source = field_copy(reader, wake, "source", NULL, "status.lastWake.source");
        status->last_wake.node = field_copy(reader, wake, "node", NULL, "status.lastWake.node");
        status->last_sleep_realtime_ns = field_time(reader, sleep, "time", "status.lastSleep.time");
        status->last_sleep_reason = field_copy(reader, sleep, "reason", NULL, "status.lastSleep.reason");
}

static double saved_read(struct field_reader *reader, const json_t *source, const char *key, const char *field)
{
        const json_t *saved = json_object_get(source, key);

        if (saved && !json_is_null(saved) && !json_is_number(saved))
                field_fail(reader, -EBADMSG, field);
        return json_number_value(saved);
}

void scale_to_zero_status_read(struct field_reader *reader, const json_t *status, struct scale_to_zero_status *ret_status)
{
        const json_t *ignored = field_array(reader, status, "ignored", "status.ignored");

        phase_read(reader, status, ret_status);
        ret_status->epoch = field_integer(reader, status, "epoch", 0, "status.epoch");
        ret_status->holding = field_bool(reader, status, "holding", false, "status.holding");
        ret_status->since_realtime_ns = field_time(reader, status, "since", "status.since");
        ret_status->replicas_before = field_number(reader, status, "replicasBefore", 0, INT32_MAX, "status.replicasBefore");
        ret_status->gpus_before = field_number(reader, status, "gpusBefore", 0, INT32_MAX, "status.gpusBefore");
        frontends_read(reader, status, ret_status);
        endpoints_read(reader, status, ret_status);
        ret_status->selector = field_copy(reader, status, "selector", "", "status.selector");
        ret_status->ports = ports_read(reader, status, &ret_status->n_ports, "status.ports");
        ret_status->ignored = prefixes_read(reader, ignored, STATUS_IGNORED_MAX, &ret_status->n_ignored, "status.ignored");
        last_read(reader, status, ret_status);
        ret_status->saved_replica_seconds = saved_read(reader, status, "savedReplicaSeconds", "status.savedReplicaSeconds");
        ret_status->saved_gpu_seconds = saved_read(reader, status, "savedGpuSeconds", "status.savedGpuSeconds");
        ret_status->idle_factor = MAX(field_number(reader, status, "idleFactor", 1, IDLE_FACTOR_MAX, "status.idleFactor"), 1u);
        ret_status->observed_generation = field_integer(reader, status, "observedGeneration", 0, "status.observedGeneration");
        conditions_read(reader, status, ret_status);
}
