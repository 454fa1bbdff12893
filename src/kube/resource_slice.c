/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/resource_slice.h"

#include <string.h>

#include "kube/fields.h"

static const char bus_attribute[] = "resource.kubernetes.io/pciBusID";

struct kube_resource_slice *kube_resource_slice_free(struct kube_resource_slice *slice)
{
        if (!slice)
                return NULL;
        kube_metadata_done(&slice->metadata);
        free(slice->driver);
        free(slice->pool);
        for (size_t i = 0; i < slice->n_devices; i++) {
                free(slice->devices[i].name);
                free(slice->devices[i].bus_id);
                free(slice->devices[i].uuid);
        }
        free(slice->devices);
        free(slice);
        return NULL;
}

/* NULL where there is none, or one that is no text. */
static char *attribute_copy(struct field_reader *reader, const json_t *attributes, const char *name)
{
        const char *field = "spec.devices[].attributes";
        const json_t *attribute = field_object(reader, attributes, name, field);

        return field_copy(reader, attribute, "string", NULL, field);
}

/* A driver's own attributes may be written with its domain or without. */
static char *own_attribute_copy(struct field_reader *reader, const json_t *attributes, const char *driver, const char *name)
{
        char *text = attribute_copy(reader, attributes, name), qualified[256];

        if (text)
                return text;
        snprintf(qualified, sizeof(qualified), "%s/%s", driver, name);
        return attribute_copy(reader, attributes, qualified);
}

static void device_read(struct field_reader *reader, const json_t *source, const char *driver, struct kube_slice_device *device)
{
        const json_t *attributes = field_object(reader, source, "attributes", "spec.devices[].attributes");

        device->name = field_copy_needed(reader, source, "name", "spec.devices[].name");
        device->bus_id = attribute_copy(reader, attributes, bus_attribute);
        device->uuid = own_attribute_copy(reader, attributes, driver, "parentUUID");
        if (!device->uuid)
                device->uuid = own_attribute_copy(reader, attributes, driver, "uuid");
}

static void devices_read(struct field_reader *reader, const json_t *spec, struct kube_resource_slice *slice)
{
        const json_t *list = field_array(reader, spec, "devices", "spec.devices"), *entry;
        size_t i;

        slice->devices = field_allocate(reader, list, sizeof(*slice->devices), KUBE_SLICE_DEVICES_MAX, "spec.devices");
        if (!slice->devices || !slice->driver)
                return;
        json_array_foreach(list, i, entry)
                device_read(reader, entry, slice->driver, &slice->devices[slice->n_devices++]);
}

static void pool_read(struct field_reader *reader, const json_t *spec, struct kube_resource_slice *slice)
{
        const json_t *pool = field_object(reader, spec, "pool", "spec.pool");

        slice->driver = field_copy_needed(reader, spec, "driver", "spec.driver");
        slice->pool = field_copy_needed(reader, pool, "name", "spec.pool.name");
        slice->generation = field_integer(reader, pool, "generation", 0, "spec.pool.generation");
        slice->n_slices = field_integer(reader, pool, "resourceSliceCount", 0, "spec.pool.resourceSliceCount");
        if (slice->n_slices < 1)
                field_fail(reader, -EBADMSG, "spec.pool.resourceSliceCount");
}

int kube_resource_slice_read(const json_t *object, struct kube_resource_slice **ret_slice, const char **ret_field)
{
        _cleanup_(kube_resource_slice_freep) struct kube_resource_slice *slice = calloc(1, sizeof(*slice));
        struct field_reader reader = { 0 };
        const json_t *spec = field_object(&reader, object, "spec", "spec");
        int r;

        if (!slice)
                return -ENOMEM;
        r = kube_metadata_read(object, &slice->metadata, ret_field);
        if (r < 0)
                return r;
        pool_read(&reader, spec, slice);
        devices_read(&reader, spec, slice);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_slice = TAKE_PTR(slice);
        return 0;
}
