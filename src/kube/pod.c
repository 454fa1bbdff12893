/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kube/fields.h"
#include "kube/pod_devices.h"
#include "kube/resource.h"

struct kube_pod *kube_pod_free(struct kube_pod *pod)
{
        if (!pod)
                return NULL;
        kube_metadata_done(&pod->metadata);
        free(pod->node);
        free(pod->phase);
        json_decref(pod->labels);
        free(pod->owner_kind);
        free(pod->owner_name);
        free(pod->owner_uid);
        pod_devices_done(pod);
        free(pod);
        return NULL;
}

static bool condition_is_true(struct field_reader *reader, const json_t *status, const char *wanted)
{
        const json_t *conditions = field_array(reader, status, "conditions", "status.conditions"), *condition;
        size_t i;

        json_array_foreach(conditions, i, condition) {
                const char *type = field_text(reader, condition, "type", "status.conditions[].type");
                const char *value = field_text(reader, condition, "status", "status.conditions[].status");

                if (type && value && strcmp(type, wanted) == 0)
                        return strcmp(value, "True") == 0;
        }
        return false;
}

static void owner_read(struct field_reader *reader, const json_t *object, struct kube_pod *pod)
{
        const json_t *metadata = json_object_get(object, "metadata"), *owner;
        const json_t *owners = field_array(reader, metadata, "ownerReferences", "metadata.ownerReferences");
        size_t i;

        json_array_foreach(owners, i, owner) {
                if (!field_bool(reader, owner, "controller", false, "metadata.ownerReferences[].controller"))
                        continue;
                pod->owner_kind = field_copy(reader, owner, "kind", "", "metadata.ownerReferences[].kind");
                pod->owner_name = field_copy(reader, owner, "name", "", "metadata.ownerReferences[].name");
                pod->owner_uid = field_copy(reader, owner, "uid", "", "metadata.ownerReferences[].uid");
                return;
        }
}

static void addresses_read(struct field_reader *reader, const json_t *status, struct kube_pod *pod)
{
        const json_t *list = field_array(reader, status, "podIPs", "status.podIPs"), *entry;
        size_t i;

        json_array_foreach(list, i, entry) {
                const char *text = field_text(reader, entry, "ip", "status.podIPs[].ip");

                if (pod->n_addresses == KUBE_POD_ADDRESSES_MAX) {
                        field_fail(reader, -E2BIG, "status.podIPs");
                        return;
                }
                if (!text || address_parse(text, &pod->addresses[pod->n_addresses]) < 0)
                        field_fail(reader, -EBADMSG, "status.podIPs[].ip");
                else
                        pod->n_addresses++;
        }
}

int kube_pod_read(const json_t *object, struct kube_pod **ret_pod, const char **ret_field)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = calloc(1, sizeof(*pod));
        struct field_reader reader = { 0 };
        const json_t *spec = field_object(&reader, object, "spec", "spec");
        const json_t *status = field_object(&reader, object, "status", "status");
        const json_t *labels = field_object(&reader, json_object_get(object, "metadata"), "labels", "metadata.labels");
        int r;

        if (!pod)
                return -ENOMEM;
        r = kube_metadata_read(object, &pod->metadata, ret_field);
        if (r < 0)
                return r;
        pod->node = field_copy(&reader, spec, "nodeName", "", "spec.nodeName");
        pod->host_network = field_bool(&reader, spec, "hostNetwork", false, "spec.hostNetwork");
        pod->phase = field_copy(&reader, status, "phase", "", "status.phase");
        pod->ready = condition_is_true(&reader, status, "Ready");
        pod->labels = labels ? json_incref((json_t *)labels) : NULL;
        owner_read(&reader, object, pod);
        addresses_read(&reader, status, pod);
        pod->started_realtime_ns = field_time(&reader, status, "startTime", "status.startTime");
        pod_devices_read(&reader, spec, status, pod);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_pod = TAKE_PTR(pod);
        return 0;
}
