/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "controller/controller_private.h"
#include "policy/object.h"

struct known_policy *known_policy_free(struct known_policy *known)
{
        if (!known)
                return NULL;
        scale_to_zero_free(known->object);
        json_decref(known->finalizers);
        target_reference_done(&known->target);
        free(known->created);
        free(known);
        return NULL;
}

/* What else is wrong with a spec keeps nobody from waking what it has put to sleep. */
static int target_read_alone(const json_t *spec, struct known_policy *known)
{
        _cleanup_(json_decrefp) json_t *alone = json_pack("{s:O*}", "target", json_object_get(spec, "target"));
        _cleanup_(policy_freep) struct policy *policy = NULL;
        _cleanup_(freep) char *problem = NULL;
        int r = alone ? policy_from_object(known->object->metadata.name, alone, &policy, &problem) : -ENOMEM;

        return r > 0 ? target_reference_copy(&policy->cluster.reference, &known->target) : r;
}

const struct target_reference *known_policy_target(const struct known_policy *known)
{
        if (known->object->policy)
                return &known->object->policy->cluster.reference;
        return known->target.name ? &known->target : NULL;
}

int known_policy_read(const json_t *object, struct known_policy **ret_known, const char **ret_field)
{
        _cleanup_(known_policy_freep) struct known_policy *known = calloc(1, sizeof(*known));
        const json_t *metadata = json_object_get(object, "metadata");
        const char *created = json_string_value(json_object_get(metadata, "creationTimestamp"));
        json_t *finalizers = json_object_get(metadata, "finalizers");
        int r;

        if (!known)
                return -ENOMEM;
        r = scale_to_zero_read(object, &known->object, ret_field);
        if (r >= 0 && !known->object->policy)
                r = target_read_alone(json_object_get(object, "spec"), known);
        if (r < 0)
                return r;
        known->created = strdup(created ? created : "");
        if (!known->created)
                return -ENOMEM;
        if (json_is_array(finalizers)) {
                known->finalizers = json_deep_copy(finalizers);
                if (!known->finalizers)
                        return -ENOMEM;
        }
        *ret_known = TAKE_PTR(known);
        return 0;
}

uint64_t version_number(const char *resource_version)
{
        return resource_version ? strtoull(resource_version, NULL, 10) : 0;
}

void target_reference_done(struct target_reference *reference)
{
        free(reference->api_version);
        free(reference->kind);
        free(reference->name);
        *reference = (struct target_reference){ 0 };
}

int target_reference_copy(const struct target_reference *reference, struct target_reference *ret_reference)
{
        struct target_reference copy = {
                .api_version = strdup(reference->api_version),
                .kind = strdup(reference->kind),
                .name = strdup(reference->name),
        };

        if (!copy.api_version || !copy.kind || !copy.name) {
                target_reference_done(&copy);
                return -ENOMEM;
        }
        *ret_reference = copy;
        return 0;
}

bool target_reference_equal(const struct target_reference *a, const struct target_reference *b)
{
        const char *a_slash = strrchr(a->api_version, '/'), *b_slash = strrchr(b->api_version, '/');
        size_t a_group = a_slash ? (size_t)(a_slash - a->api_version) : 0,
               b_group = b_slash ? (size_t)(b_slash - b->api_version) : 0;

        return strcmp(a->name, b->name) == 0 && strcmp(a->kind, b->kind) == 0 && a_group == b_group &&
               strncmp(a->api_version, b->api_version, a_group) == 0;
}

struct autoscaler *autoscaler_free(struct autoscaler *autoscaler)
{
        if (!autoscaler)
                return NULL;
        free(autoscaler->name);
        target_reference_done(&autoscaler->target);
        free(autoscaler);
        return NULL;
}

int autoscaler_read(const json_t *object, struct autoscaler **ret_autoscaler)
{
        _cleanup_(autoscaler_freep) struct autoscaler *autoscaler = calloc(1, sizeof(*autoscaler));
        const json_t *target = json_object_get(json_object_get(object, "spec"), "scaleTargetRef");
        const char *name = json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
        const char *api_version = json_string_value(json_object_get(target, "apiVersion"));
        const struct target_reference reference = {
                .api_version = (char *)(api_version ? api_version : ""),
                .kind = (char *)json_string_value(json_object_get(target, "kind")),
                .name = (char *)json_string_value(json_object_get(target, "name")),
        };

        if (!autoscaler)
                return -ENOMEM;
        if (!name || !reference.kind || !reference.name)
                return -EBADMSG;
        autoscaler->name = strdup(name);
        if (!autoscaler->name)
                return -ENOMEM;
        if (target_reference_copy(&reference, &autoscaler->target) < 0)
                return -ENOMEM;
        *ret_autoscaler = TAKE_PTR(autoscaler);
        return 0;
}

int autoscaler_unreadable(const char *key, struct autoscaler **ret_autoscaler)
{
        _cleanup_(autoscaler_freep) struct autoscaler *autoscaler = calloc(1, sizeof(*autoscaler));
        const char *slash = strchr(key, '/');

        if (!autoscaler)
                return -ENOMEM;
        autoscaler->name = strdup(slash ? slash + 1 : key);
        if (!autoscaler->name)
                return -ENOMEM;
        *ret_autoscaler = TAKE_PTR(autoscaler);
        return 0;
}
