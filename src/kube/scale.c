/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"
#include "kube/resource.h"

struct kube_scale *kube_scale_free(struct kube_scale *scale)
{
        if (!scale)
                return NULL;
        kube_metadata_done(&scale->metadata);
        free(scale->selector);
        free(scale);
        return NULL;
}

int kube_scale_read(const json_t *object, struct kube_scale **ret_scale, const char **ret_field)
{
        _cleanup_(kube_scale_freep) struct kube_scale *scale = calloc(1, sizeof(*scale));
        struct field_reader reader = { 0 };
        const json_t *spec = field_object(&reader, object, "spec", "spec");
        const json_t *status = field_object(&reader, object, "status", "status");
        int r;

        if (!scale)
                return -ENOMEM;
        r = kube_metadata_read(object, &scale->metadata, ret_field);
        if (r < 0)
                return r;
        scale->replicas = field_number(&reader, spec, "replicas", 0, INT32_MAX, "spec.replicas");
        scale->current = field_number(&reader, status, "replicas", 0, INT32_MAX, "status.replicas");
        scale->selector = field_copy(&reader, status, "selector", "", "status.selector");
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_scale = TAKE_PTR(scale);
        return 0;
}
