/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kube/reflector_private.h"

enum { KEY_MAX = 512, EARLY_BOOKMARKS_MAX = 2 };

static const char initial_events_end[] = "k8s.io/initial-events-end";

static int object_key(const json_t *object, char key[static KEY_MAX], const char **ret_version)
{
        const json_t *metadata = json_object_get(object, "metadata");
        const char *name = json_string_value(json_object_get(metadata, "name"));
        const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
        int length;

        if (!name || !*name || !version || !*version)
                return -EBADMSG;
        if (namespace && *namespace)
                length = snprintf(key, KEY_MAX, "%s/%s", namespace, name);
        else
                length = snprintf(key, KEY_MAX, "%s", name);
        if (length >= KEY_MAX)
                return -EBADMSG;
        *ret_version = version;
        return 0;
}

/* Returns 1 with a value, 0 when the object is to be left out, or -ENOMEM. */
static int object_read(struct kube_reflector *reflector, const char *key, const json_t *object, void **ret_value)
{
        int r = reflector->callbacks.read(key, object, ret_value, reflector->userdata);

        if (r == -ENOMEM)
                return r;
        if (r < 0 && r != -ENOENT)
                reflector->counters.unreadable++;
        return r >= 0;
}

static void pending_remove(struct kube_reflector *reflector, const char *key)
{
        struct store_entry *entry = store_find(&reflector->pending, key);

        if (entry)
                store_remove(&reflector->pending, entry);
}

static int pending_put(struct kube_reflector *reflector, const char *key, const char *version, const json_t *object)
{
        const struct store_entry *known = store_find(&reflector->view, key);
        struct store_entry *entry;
        void *value = NULL;
        int r;

        pending_remove(reflector, key);
        if (store_count(&reflector->pending) >= REFLECTOR_OBJECTS_MAX)
                return -E2BIG;
        if (!known || strcmp(known->version, version) != 0) {
                r = object_read(reflector, key, object, &value);
                if (r <= 0)
                        return r;
        }
        r = store_add(&reflector->pending, key, version, &entry);
        if (r < 0) {
                if (value)
                        reflector->callbacks.release(value, reflector->userdata);
                return r;
        }
        entry->value = value;
        entry->unchanged = !value;
        return 0;
}

int view_read_item(const json_t *item, void *userdata)
{
        struct kube_reflector *reflector = userdata;
        char key[KEY_MAX];
        const char *version;
        int r = object_key(item, key, &version);

        reflector->events++;
        return r < 0 ? r : pending_put(reflector, key, version, item);
}

static int view_set_version(struct kube_reflector *reflector, const char *version)
{
        char *copy;

        if (reflector->version && strcmp(reflector->version, version) == 0)
                return 0;
        copy = strdup(version);
        if (!copy)
                return -ENOMEM;
        free(reflector->version);
        reflector->version = copy;
        return 0;
}

static void view_remove(struct kube_reflector *reflector, struct store_entry *entry)
{
        if (reflector->callbacks.deleted)
                reflector->callbacks.deleted(entry->key, entry->value, reflector->userdata);
        store_remove(&reflector->view, entry);
}

/* Takes @value over, also when it fails. */
static int view_put(struct kube_reflector *reflector, const char *key, const char *version, void *value)
{
        struct store_entry *entry = store_find(&reflector->view, key);
        void *old;
        int r;

        if (!entry && store_count(&reflector->view) >= REFLECTOR_OBJECTS_MAX)
                r = -E2BIG;
        else
                r = entry ? store_set_version(entry, version) : store_add(&reflector->view, key, version, &entry);
        if (r < 0) {
                reflector->callbacks.release(value, reflector->userdata);
                return r;
        }

        old = entry->value;
        entry->value = value;
        if (!old && reflector->callbacks.added)
                reflector->callbacks.added(key, value, reflector->userdata);
        if (old && reflector->callbacks.modified)
                reflector->callbacks.modified(key, old, value, reflector->userdata);
        if (old)
                reflector->callbacks.release(old, reflector->userdata);
        return 0;
}

static void remove_missing(struct kube_reflector *reflector)
{
        struct store_entry *entry, *next;

        HASH_ITER(hh, reflector->view.entries, entry, next)
                if (!store_find(&reflector->pending, entry->key))
                        view_remove(reflector, entry);
}

int view_swap(struct kube_reflector *reflector, const char *version)
{
        struct store_entry *entry, *next;
        int r;

        remove_missing(reflector);
        HASH_ITER(hh, reflector->pending.entries, entry, next) {
                if (entry->unchanged)
                        continue;
                r = view_put(reflector, entry->key, entry->version, TAKE_PTR(entry->value));
                if (r < 0)
                        return r;
        }
        store_clear(&reflector->pending);
        return view_set_version(reflector, version);
}

static int change_apply(struct kube_reflector *reflector, const char *key, const char *version, const json_t *object)
{
        struct store_entry *entry;
        void *value;
        int r;

        if (reflector->initial)
                return pending_put(reflector, key, version, object);

        r = object_read(reflector, key, object, &value);
        if (r < 0)
                return r;
        if (r > 0)
                return view_put(reflector, key, version, value);
        entry = store_find(&reflector->view, key);
        if (entry)
                view_remove(reflector, entry);
        return 0;
}

static void deletion_apply(struct kube_reflector *reflector, const char *key)
{
        struct store_entry *entry;

        if (reflector->initial) {
                pending_remove(reflector, key);
                return;
        }
        entry = store_find(&reflector->view, key);
        if (entry)
                view_remove(reflector, entry);
}

/* The version of the initial events says nothing: they come in any order. */
static int object_event(struct kube_reflector *reflector, const char *type, const json_t *object)
{
        char key[KEY_MAX];
        const char *version;
        int r = object_key(object, key, &version);

        if (r < 0)
                return r;
        if (strcmp(type, "DELETED") == 0)
                deletion_apply(reflector, key);
        else if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
                r = change_apply(reflector, key, version, object);
        else
                r = -EBADMSG;
        if (r < 0 || reflector->initial)
                return r;
        return view_set_version(reflector, version);
}

static int initial_bookmark(struct kube_reflector *reflector, const json_t *metadata, const char *version)
{
        const char *end = json_string_value(json_object_get(json_object_get(metadata, "annotations"), initial_events_end));
        int r;

        /* A server that does not know about initial events sends common bookmarks only, one a minute. */
        if (!end || strcmp(end, "true") != 0)
                return ++reflector->early_bookmarks < EARLY_BOOKMARKS_MAX ? 0 : -EPROTO;

        r = view_swap(reflector, version);
        if (r < 0)
                return r;
        reflector->initial = false;
        reflector_synced(reflector);
        return 0;
}

static int bookmark_event(struct kube_reflector *reflector, const json_t *object)
{
        const json_t *metadata = json_object_get(object, "metadata");
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));

        if (!version || !*version)
                return -EBADMSG;
        reflector->counters.bookmarks++;
        if (reflector->initial)
                return initial_bookmark(reflector, metadata, version);
        return view_set_version(reflector, version);
}

int view_read_event(const json_t *event, void *userdata)
{
        struct kube_reflector *reflector = userdata;
        const char *type = json_string_value(json_object_get(event, "type"));
        const json_t *object = json_object_get(event, "object");

        if (!type || !json_is_object(object))
                return -EBADMSG;
        reflector->events++;
        reflector->counters.events++;
        if (strcmp(type, "ERROR") == 0) {
                kube_status_read(object, &reflector->error_event_status);
                reflector->error_event = &reflector->error_event_status;
                return -ECANCELED;
        }
        if (strcmp(type, "BOOKMARK") == 0)
                return bookmark_event(reflector, object);
        return object_event(reflector, type, object);
}
