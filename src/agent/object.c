/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/object.h"

#include <string.h>

#include "agent/node.h"
#include "base/log.h"

static uint64_t version_of(const json_t *json)
{
        const char *version = json_string_value(json_object_get(json_object_get(json, "metadata"), "resourceVersion"));

        return version ? strtoull(version, NULL, 10) : 0;
}

int object_new(const char *name, const json_t *json, struct object **ret_object)
{
        _cleanup_(object_freep) struct object *object = calloc(1, sizeof(*object));
        int r;

        if (!object)
                return -ENOMEM;
        object->name = strdup(name);
        if (!object->name)
                return -ENOMEM;
        r = scale_to_zero_read(json, &object->read, &object->unread_field);
        if (r == -EBADMSG || r == -E2BIG) {
                object->unread_error = r;
                object->unread_version = MAX(version_of(json), UINT64_C(1));
        } else if (r < 0) {
                return r;
        }
        *ret_object = TAKE_PTR(object);
        return 0;
}

struct object *object_free(struct object *object)
{
        if (!object)
                return NULL;
        if (object->listed)
                LIST_REMOVE(object, unreadable);
        scale_to_zero_free(object->read);
        free(object->name);
        free(object);
        return NULL;
}

static void tell_unreadable(const struct object *old, const struct object *object)
{
        if (old && old->unread_version && strcmp(old->unread_field, object->unread_field) == 0)
                return;
        log_error("ScaleToZero \"%s\": %s: %s; %s", object->name, object->unread_field,
                  object->unread_error == -E2BIG ? "has too many entries" : "is not as the API promises",
                  object->read ? "what it said before stays in force here" : "nothing is done for it here");
}

static void unlist(struct object *object)
{
        if (object->listed)
                LIST_REMOVE(object, unreadable);
        object->listed = false;
}

void object_follow(struct node *node, struct object *old, struct object *object)
{
        bool was_unreadable = old && old->unread_version;

        if (old)
                unlist(old);
        if (object->unread_version) {
                if (old)
                        object->read = TAKE_PTR(old->read);
                if (was_unreadable)
                        object->unread_version = old->unread_version;
                tell_unreadable(old, object);
                LIST_INSERT_HEAD(&node->unreadable, object, unreadable);
                object->listed = true;
        } else if (was_unreadable) {
                log_info("ScaleToZero \"%s\" can be read again", object->name);
        }
        if (was_unreadable || object->unread_version)
                node_report(node, false);
}

void object_forget(struct node *node, struct object *object)
{
        if (!object->listed)
                return;
        unlist(object);
        node_report(node, false);
}
