/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/scale_to_zero.h"

#include <string.h>

#include "kube/scale_to_zero_status.h"
#include "policy/object.h"

static void probe_done(struct status_probe *probe)
{
        free(probe->path);
        free(probe->host);
        for (char **header = probe->headers; header && *header; header++)
                free(*header);
        free(probe->headers);
}

static void ports_free(struct status_port *ports, size_t n_ports)
{
        for (size_t i = 0; i < n_ports; i++)
                free(ports[i].backend);
        free(ports);
}

static void frontends_free(struct status_frontend *frontends, size_t n_frontends)
{
        for (size_t i = 0; i < n_frontends; i++) {
                free(frontends[i].backend);
                free(frontends[i].node);
                free(frontends[i].source_ranges);
        }
        free(frontends);
}

static void endpoints_free(struct status_endpoint *endpoints, size_t n_endpoints)
{
        for (size_t i = 0; i < n_endpoints; i++) {
                free(endpoints[i].node);
                free(endpoints[i].pod);
                free(endpoints[i].pod_uid);
                ports_free(endpoints[i].ports, endpoints[i].n_ports);
                probe_done(&endpoints[i].probe);
        }
        free(endpoints);
}

static void conditions_free(struct status_condition *conditions, size_t n_conditions)
{
        for (size_t i = 0; i < n_conditions; i++) {
                free(conditions[i].type);
                free(conditions[i].reason);
                free(conditions[i].message);
        }
        free(conditions);
}

void scale_to_zero_status_done(struct scale_to_zero_status *status)
{
        frontends_free(status->frontends, status->n_frontends);
        endpoints_free(status->endpoints, status->n_endpoints);
        free(status->selector);
        ports_free(status->ports, status->n_ports);
        free(status->ignored);
        free(status->last_wake.cause);
        free(status->last_wake.source);
        free(status->last_wake.node);
        free(status->last_sleep_reason);
        conditions_free(status->conditions, status->n_conditions);
        *status = (struct scale_to_zero_status){ 0 };
}

struct scale_to_zero *scale_to_zero_free(struct scale_to_zero *object)
{
        if (!object)
                return NULL;

        kube_metadata_done(&object->metadata);
        free(object->wake_requested);
        free(object->sleep_requested);
        policy_free(object->policy);
        free(object->policy_problem);
        scale_to_zero_status_done(&object->status);
        free(object);
        return NULL;
}

const struct status_condition *status_find_condition(const struct scale_to_zero_status *status, const char *type)
{
        for (size_t i = 0; i < status->n_conditions; i++)
                if (strcmp(status->conditions[i].type, type) == 0)
                        return &status->conditions[i];
        return NULL;
}

static void metadata_read(struct field_reader *reader, const json_t *metadata, struct scale_to_zero *object)
{
        const json_t *annotations = field_object(reader, metadata, "annotations", "metadata.annotations");
        const json_t *finalizers = field_array(reader, metadata, "finalizers", "metadata.finalizers"), *finalizer;
        size_t i;

        object->wake_requested = field_copy(reader, annotations, "lull.dev/wake", NULL, "metadata.annotations");
        object->sleep_requested = field_copy(reader, annotations, "lull.dev/sleep", NULL, "metadata.annotations");
        json_array_foreach(finalizers, i, finalizer) {
                const char *text = json_string_value(finalizer);

                object->has_finalizer |= text && strcmp(text, SCALE_TO_ZERO_FINALIZER) == 0;
        }
}

static int policy_read(const json_t *spec, struct scale_to_zero *object)
{
        _cleanup_(freep) char *name = NULL;
        int r;

        if (asprintf(&name, "%s/%s", object->metadata.namespace, object->metadata.name) < 0) {
                name = NULL; /* undefined after a failure */
                return -ENOMEM;
        }
        r = policy_from_object(name, spec, &object->policy, &object->policy_problem);
        return r < 0 ? r : 0;
}

int scale_to_zero_read(const json_t *object, struct scale_to_zero **ret_object, const char **ret_field)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *read = calloc(1, sizeof(*read));
        struct field_reader reader = { 0 };
        int r;

        if (!read)
                return -ENOMEM;
        r = kube_metadata_read(object, &read->metadata, ret_field);
        if (r < 0)
                return r;

        metadata_read(&reader, json_object_get(object, "metadata"), read);
        scale_to_zero_status_read(&reader, field_object(&reader, object, "status", "status"), &read->status);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }

        r = policy_read(json_object_get(object, "spec"), read);
        if (r < 0)
                return r;
        *ret_object = TAKE_PTR(read);
        return 0;
}
