/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"
#include "kube/resource.h"

void kube_metadata_done(struct kube_metadata *metadata)
{
        free(metadata->namespace);
        free(metadata->name);
        free(metadata->uid);
        free(metadata->resource_version);
        *metadata = (struct kube_metadata){ 0 };
}

int kube_metadata_read(const json_t *object, struct kube_metadata *ret_metadata, const char **ret_field)
{
        struct field_reader reader = { 0 };
        const json_t *source = field_object(&reader, object, "metadata", "metadata");
        const json_t *generation = json_object_get(source, "generation");
        struct kube_metadata metadata = { 0 };

        metadata.namespace = field_copy(&reader, source, "namespace", "", "metadata.namespace");
        metadata.name = field_copy_needed(&reader, source, "name", "metadata.name");
        metadata.uid = field_copy(&reader, source, "uid", "", "metadata.uid");
        metadata.resource_version = field_copy(&reader, source, "resourceVersion", "", "metadata.resourceVersion");
        metadata.generation = json_is_integer(generation) ? json_integer_value(generation) : 0;
        metadata.deleting = field_text(&reader, source, "deletionTimestamp", "metadata.deletionTimestamp") != NULL;

        if (reader.failed < 0) {
                kube_metadata_done(&metadata);
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_metadata = metadata;
        return 0;
}
