/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource_claim.h"

#include "kube/fields.h"

struct kube_resource_claim *kube_resource_claim_free(struct kube_resource_claim *claim)
{
        if (!claim)
                return NULL;
        kube_metadata_done(&claim->metadata);
        for (size_t i = 0; i < claim->n_devices; i++) {
                free(claim->devices[i].driver);
                free(claim->devices[i].pool);
                free(claim->devices[i].device);
                free(claim->devices[i].request);
        }
        free(claim->devices);
        free(claim);
        return NULL;
}

static void devices_read(struct field_reader *reader, const json_t *devices, struct kube_resource_claim *claim)
{
        const char *field = "status.allocation.devices.results";
        const json_t *list = field_array(reader, devices, "results", field), *entry;
        size_t i;

        claim->devices = field_allocate(reader, list, sizeof(*claim->devices), KUBE_CLAIM_DEVICES_MAX, field);
        if (!claim->devices)
                return;
        json_array_foreach(list, i, entry) {
                struct kube_claim_device *device = &claim->devices[claim->n_devices];

                if (field_bool(reader, entry, "adminAccess", false, "status.allocation.devices.results[].adminAccess"))
                        continue;
                claim->n_devices++;
                device->driver = field_copy_needed(reader, entry, "driver", "status.allocation.devices.results[].driver");
                device->pool = field_copy_needed(reader, entry, "pool", "status.allocation.devices.results[].pool");
                device->device = field_copy_needed(reader, entry, "device", "status.allocation.devices.results[].device");
                device->request = field_copy(reader, entry, "request", "", "status.allocation.devices.results[].request");
        }
}

int kube_resource_claim_read(const json_t *object, struct kube_resource_claim **ret_claim, const char **ret_field)
{
        _cleanup_(kube_resource_claim_freep) struct kube_resource_claim *claim = calloc(1, sizeof(*claim));
        struct field_reader reader = { 0 };
        const json_t *status = field_object(&reader, object, "status", "status");
        const json_t *allocation = field_object(&reader, status, "allocation", "status.allocation");
        int r;

        if (!claim)
                return -ENOMEM;
        r = kube_metadata_read(object, &claim->metadata, ret_field);
        if (r < 0)
                return r;
        devices_read(&reader, field_object(&reader, allocation, "devices", "status.allocation.devices"), claim);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_claim = TAKE_PTR(claim);
        return 0;
}
