/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "controller/target_private.h"
#include "kube/patch.h"

#define TIMER_ACCURACY_US 50000

struct known_kind {
        const char *api_version, *kind, *resource;
        enum target_form form;
};

static const struct known_kind known_kinds[] = {
        { "apps/v1", "Deployment", "deployments", TARGET_FORM_APPS },
        { "apps/v1", "StatefulSet", "statefulsets", TARGET_FORM_APPS },
        { "apps/v1", "ReplicaSet", "replicasets", TARGET_FORM_APPS },
        { "batch/v1", "Job", "jobs", TARGET_FORM_JOB },
};

static const struct known_kind *known_kind_find(const struct target_reference *reference)
{
        for (size_t i = 0; i < ELEMENTSOF(known_kinds); i++)
                if (strcmp(known_kinds[i].api_version, reference->api_version) == 0 &&
                    strcmp(known_kinds[i].kind, reference->kind) == 0)
                        return &known_kinds[i];
        return NULL;
}

static struct watched_object *object_find(const struct watched_kind *kind, const char *key)
{
        struct watched_object *object;

        HASH_FIND_STR(kind->objects, key, object);
        return object;
}

static void object_mark_changed(struct watched_object *object)
{
        struct target *target;

        LIST_FOREACH(target, &object->targets, of_object)
        target_mark_changed(target);
}

void watched_kind_mark_changed(struct watched_kind *kind)
{
        struct watched_object *object, *next;

        HASH_ITER(hh, kind->objects, object, next)
                object_mark_changed(object);
}

void watched_kind_set_problem(struct watched_kind *kind, char *problem)
{
        free(kind->problem);
        kind->problem = problem;
        watched_kind_mark_changed(kind);
}

static int on_read(const char *key, const json_t *source, void **ret_value, void *userdata)
{
        const struct watched_kind *kind = userdata;
        struct target_object *value;
        int r = target_object_read(source, kind->form, &value);

        if (r < 0)
                return r;
        *ret_value = value;
        return 0;
}

static void on_release(void *value, void *userdata)
{
        target_object_free(value);
}

static void on_object(struct watched_kind *kind, const char *key)
{
        struct watched_object *object = object_find(kind, key);

        if (!object)
                return;
        if (kind->form == TARGET_FORM_ANY)
                watched_object_read_scale(object);
        object_mark_changed(object);
}

static void on_added(const char *key, void *value, void *userdata)
{
        on_object(userdata, key);
}

static void on_modified(const char *key, void *old, void *value, void *userdata)
{
        on_object(userdata, key);
}

static void on_deleted(const char *key, void *value, void *userdata)
{
        struct watched_object *object = object_find(userdata, key);

        if (!object)
                return;
        object->request = kube_request_cancel(object->request);
        object->scale_wanted = false;
        watched_object_forget_scale(object);
        watched_object_forget_answer(object);
        object_mark_changed(object);
}

static void on_synced(void *userdata)
{
        watched_kind_mark_changed(userdata);
}

static void on_stale(bool stale, void *userdata)
{
        watched_kind_mark_changed(userdata);
}

int watched_kind_watch(struct watched_kind *kind)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = on_read,
                .release = on_release,
                .added = on_added,
                .modified = on_modified,
                .deleted = on_deleted,
                .synced = on_synced,
                .stale = on_stale,
        };
        const struct kube_object collection = { .api = kind->api_version, .resource = kind->resource };
        struct kube_reflector_settings settings = { .resource = kind->resource };
        _cleanup_(freep) char *path = NULL;
        int r = kube_object_path(&collection, &path);

        if (r < 0)
                return r;
        settings.path = path;
        r = kube_reflector_new(kind->targets->client, &settings, &callbacks, kind, NULL, &kind->reflector);
        if (r >= 0)
                watched_kind_retry_later(kind); /* by then it is known whether it may be watched */
        return r;
}

void watched_kind_retry_later(struct watched_kind *kind)
{
        if (sd_event_source_set_time_relative(kind->timer, kind->retry_ns / NSEC_PER_USEC) >= 0)
                sd_event_source_set_enabled(kind->timer, SD_EVENT_ONESHOT);
        kind->retry_ns = MIN(kind->retry_ns * 2, TARGET_RETRY_MAX_NS);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct watched_kind *kind = userdata;
        struct watched_object *object, *next;

        if (!kind->reflector) {
                if (!kind->request && target_discovery_start(kind) < 0)
                        watched_kind_retry_later(kind);
                return 0;
        }
        HASH_ITER(hh, kind->objects, object, next)
                if (object->scale_wanted)
                        watched_object_read_scale(object);
        if (!kube_reflector_is_synced(kind->reflector))
                watched_kind_mark_changed(kind);
        return 0;
}

static int kind_start(struct watched_kind *kind, const struct known_kind *known)
{
        sd_event *event = kube_client_event(kind->targets->client);
        int r = sd_event_add_time_relative(event, &kind->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_timer, kind);

        if (r >= 0)
                r = sd_event_source_set_enabled(kind->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        if (!known)
                return target_discovery_start(kind);
        kind->resource = strdup(known->resource);
        return kind->resource ? watched_kind_watch(kind) : -ENOMEM;
}

int watched_kind_get(struct targets *targets, const struct target_reference *reference, struct watched_kind **ret_kind)
{
        const struct known_kind *known = known_kind_find(reference);
        struct watched_kind *kind;
        int r;

        LIST_FOREACH(kind, &targets->kinds, of_all)
        if (strcmp(kind->api_version, reference->api_version) == 0 && strcmp(kind->kind, reference->kind) == 0) {
                *ret_kind = kind;
                return 0;
        }
        kind = calloc(1, sizeof(*kind));
        if (!kind)
                return -ENOMEM;
        LIST_INSERT_HEAD(&targets->kinds, kind, of_all);
        kind->targets = targets;
        kind->form = known ? known->form : TARGET_FORM_ANY;
        kind->retry_ns = TARGET_RETRY_MIN_NS;
        kind->api_version = strdup(reference->api_version);
        kind->kind = strdup(reference->kind);
        r = kind->api_version && kind->kind ? kind_start(kind, known) : -ENOMEM;
        if (r < 0) {
                watched_kind_free(kind);
                return r;
        }
        *ret_kind = kind;
        return 0;
}

struct watched_kind *watched_kind_free(struct watched_kind *kind)
{
        if (!kind)
                return NULL;
        kube_request_cancel(kind->request);
        kube_reflector_free(kind->reflector);
        sd_event_source_disable_unref(kind->timer);
        LIST_REMOVE(kind, of_all);
        free(kind->api_version);
        free(kind->kind);
        free(kind->resource);
        free(kind->problem);
        free(kind);
        return NULL;
}

int watched_object_get(struct watched_kind *kind, const char *namespace, const char *name, struct watched_object **ret_object)
{
        size_t length = strlen(namespace) + strlen(name) + 2;
        struct watched_object *object = calloc(1, sizeof(*object) + length), *known;

        if (!object)
                return -ENOMEM;
        snprintf(object->key, length, "%s/%s", namespace, name);
        known = object_find(kind, object->key);
        if (known) {
                free(object);
                *ret_object = known;
                return 0;
        }
        object->namespace = strdup(namespace);
        object->name = strdup(name);
        if (object->namespace && object->name)
                HASH_ADD_STR(kind->objects, key, object);
        if (!object->namespace || !object->name || !object->hh.tbl) {
                free(object->namespace);
                free(object->name);
                free(object);
                return -ENOMEM;
        }
        object->kind = kind;
        if (kind->form == TARGET_FORM_ANY)
                watched_object_read_scale(object);
        *ret_object = object;
        return 0;
}

struct watched_object *watched_object_free(struct watched_object *object)
{
        if (!object)
                return NULL;
        HASH_DEL(object->kind->objects, object);
        kube_request_cancel(object->request);
        watched_object_forget_scale(object);
        watched_object_forget_answer(object);
        free(object->namespace);
        free(object->name);
        free(object);
        return NULL;
}
