/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"
#include "kube/resource.h"

struct kube_lease *kube_lease_free(struct kube_lease *lease)
{
        if (!lease)
                return NULL;
        kube_metadata_done(&lease->metadata);
        free(lease->holder);
        free(lease->acquire_time);
        free(lease->renew_time);
        free(lease);
        return NULL;
}

int kube_lease_read(const json_t *object, struct kube_lease **ret_lease, const char **ret_field)
{
        _cleanup_(kube_lease_freep) struct kube_lease *lease = calloc(1, sizeof(*lease));
        struct field_reader reader = { 0 };
        const json_t *spec = field_object(&reader, object, "spec", "spec");
        int r;

        if (!lease)
                return -ENOMEM;
        r = kube_metadata_read(object, &lease->metadata, ret_field);
        if (r < 0)
                return r;
        lease->holder = field_copy(&reader, spec, "holderIdentity", "", "spec.holderIdentity");
        lease->duration_seconds = field_number(&reader, spec, "leaseDurationSeconds", 0, INT32_MAX, "spec.leaseDurationSeconds");
        lease->transitions = field_number(&reader, spec, "leaseTransitions", 0, INT32_MAX, "spec.leaseTransitions");
        lease->acquire_time = field_copy(&reader, spec, "acquireTime", "", "spec.acquireTime");
        lease->renew_time = field_copy(&reader, spec, "renewTime", "", "spec.renewTime");
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_lease = TAKE_PTR(lease);
        return 0;
}
