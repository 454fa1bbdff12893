/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kube/fields.h"
#include "kube/resource.h"

static void endpoint_done(struct kube_endpoint *endpoint)
{
        free(endpoint->addresses);
        free(endpoint->node);
        free(endpoint->zone);
        free(endpoint->pod);
        free(endpoint->pod_uid);
}

struct kube_endpoint_slice *kube_endpoint_slice_free(struct kube_endpoint_slice *slice)
{
        if (!slice)
                return NULL;
        kube_metadata_done(&slice->metadata);
        free(slice->service);
        free(slice->managed_by);
        free(slice->owner_uid);
        for (size_t i = 0; i < slice->n_endpoints; i++)
                endpoint_done(&slice->endpoints[i]);
        free(slice->endpoints);
        for (size_t i = 0; i < slice->n_ports; i++)
                free(slice->ports[i].name);
        free(slice->ports);
        free(slice);
        return NULL;
}

static void addresses_read(struct field_reader *reader, const json_t *source, struct kube_endpoint *endpoint)
{
        const json_t *list = field_array(reader, source, "addresses", "endpoints[].addresses"), *entry;
        size_t i;

        endpoint->addresses =
                field_allocate(reader, list, sizeof(*endpoint->addresses), KUBE_ENDPOINT_ADDRESSES_MAX, "endpoints[].addresses");
        if (!endpoint->addresses)
                return;
        json_array_foreach(list, i, entry) {
                if (!json_is_string(entry) || address_parse(json_string_value(entry), &endpoint->addresses[i]) < 0)
                        field_fail(reader, -EBADMSG, "endpoints[].addresses[]");
                endpoint->n_addresses++;
        }
}

/* What a condition says when it is absent: ready and serving, not terminating (discovery/v1). */
static void endpoint_read(struct field_reader *reader, const json_t *source, struct kube_endpoint *endpoint)
{
        const json_t *conditions = field_object(reader, source, "conditions", "endpoints[].conditions");
        const json_t *target = field_object(reader, source, "targetRef", "endpoints[].targetRef");
        const char *kind = field_text(reader, target, "kind", "endpoints[].targetRef.kind");

        addresses_read(reader, source, endpoint);
        endpoint->ready = field_bool(reader, conditions, "ready", true, "endpoints[].conditions.ready");
        endpoint->serving = field_bool(reader, conditions, "serving", true, "endpoints[].conditions.serving");
        endpoint->terminating = field_bool(reader, conditions, "terminating", false, "endpoints[].conditions.terminating");
        endpoint->node = field_copy(reader, source, "nodeName", NULL, "endpoints[].nodeName");
        endpoint->zone = field_copy(reader, source, "zone", NULL, "endpoints[].zone");
        if (kind && strcmp(kind, "Pod") == 0) {
                endpoint->pod = field_copy(reader, target, "name", NULL, "endpoints[].targetRef.name");
                endpoint->pod_uid = field_copy(reader, target, "uid", NULL, "endpoints[].targetRef.uid");
        }
}

static void endpoints_read(struct field_reader *reader, const json_t *object, struct kube_endpoint_slice *slice)
{
        const json_t *list = field_array(reader, object, "endpoints", "endpoints"), *entry;
        size_t i;

        if (slice->fqdn)
                return;
        slice->endpoints = field_allocate(reader, list, sizeof(*slice->endpoints), KUBE_SLICE_ENDPOINTS_MAX, "endpoints");
        if (!slice->endpoints)
                return;
        json_array_foreach(list, i, entry)
                endpoint_read(reader, entry, &slice->endpoints[slice->n_endpoints++]);
}

static void ports_read(struct field_reader *reader, const json_t *object, struct kube_endpoint_slice *slice)
{
        const json_t *list = field_array(reader, object, "ports", "ports"), *entry;
        size_t i;

        slice->ports = field_allocate(reader, list, sizeof(*slice->ports), KUBE_SLICE_PORTS_MAX, "ports");
        if (!slice->ports)
                return;
        json_array_foreach(list, i, entry) {
                struct kube_slice_port *port = &slice->ports[slice->n_ports];

                port->port = (uint16_t)field_number(reader, entry, "port", 0, UINT16_MAX, "ports[].port");
                if (port->port == 0)
                        continue;
                port->protocol = field_protocol(reader, entry, "protocol", "ports[].protocol");
                port->name = field_copy(reader, entry, "name", "", "ports[].name");
                slice->n_ports++;
        }
}

int kube_endpoint_slice_read(const json_t *object, struct kube_endpoint_slice **ret_slice, const char **ret_field)
{
        _cleanup_(kube_endpoint_slice_freep) struct kube_endpoint_slice *slice = calloc(1, sizeof(*slice));
        struct field_reader reader = { 0 };
        const json_t *metadata = json_object_get(object, "metadata");
        const json_t *labels = field_object(&reader, metadata, "labels", "metadata.labels");
        const json_t *owners = field_array(&reader, metadata, "ownerReferences", "metadata.ownerReferences");
        const char *type = field_text(&reader, object, "addressType", "addressType");
        int r;

        if (!slice)
                return -ENOMEM;
        r = kube_metadata_read(object, &slice->metadata, ret_field);
        if (r < 0)
                return r;
        slice->service = field_copy(&reader, labels, "kubernetes.io/service-name", NULL, "metadata.labels");
        slice->managed_by = field_copy(&reader, labels, "endpointslice.kubernetes.io/managed-by", NULL, "metadata.labels");
        slice->owner_uid = field_copy(&reader, json_array_get(owners, 0), "uid", NULL, "metadata.ownerReferences[].uid");
        slice->fqdn = type && strcmp(type, "FQDN") == 0;
        endpoints_read(&reader, object, slice);
        ports_read(&reader, object, slice);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_slice = TAKE_PTR(slice);
        return 0;
}

int kube_endpoint_slice_unreadable(const char *key, struct kube_endpoint_slice **ret_slice)
{
        _cleanup_(kube_endpoint_slice_freep) struct kube_endpoint_slice *slice = calloc(1, sizeof(*slice));
        size_t length = strcspn(key, "/");

        if (!slice)
                return -ENOMEM;
        slice->unreadable = true;
        slice->metadata.namespace = strndup(key, length);
        slice->metadata.name = strdup(key[length] ? key + length + 1 : "");
        if (!slice->metadata.namespace || !slice->metadata.name)
                return -ENOMEM;
        *ret_slice = TAKE_PTR(slice);
        return 0;
}
