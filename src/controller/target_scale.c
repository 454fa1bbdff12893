/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "controller/target_private.h"
#include "kube/patch.h"

struct scale_change {
        struct target *target;
        struct kube_request *request;
        sd_event_source *refused; /* instead: tells that nothing could be asked for */
        int error;
        void (*done)(const struct kube_reply *reply, void *userdata);
        void *userdata;
        LIST_ENTRY(scale_change) of_target;
};

void watched_object_forget_scale(struct watched_object *object)
{
        object->scale = kube_scale_free(object->scale);
        free(object->scale_problem);
        object->scale_problem = NULL;
        json_decref(object->scale_labels);
        object->scale_labels = NULL;
}

static void scale_failed(struct watched_object *object, const char *why)
{
        watched_object_forget_scale(object);
        if (asprintf(&object->scale_problem, "the replicas of %s %s cannot be read: %s", object->kind->kind, object->name, why) < 0)
                object->scale_problem = NULL;
        object->scale_wanted = true;
        watched_kind_retry_later(object->kind);
}

static void scale_take(struct watched_object *object, const struct kube_reply *reply)
{
        const char *field = "";
        struct kube_scale *scale;
        int r = kube_scale_read(reply->body, &scale, &field);

        if (r < 0) {
                scale_failed(object, r == -ENOMEM ? "out of memory" : field);
                return;
        }
        watched_object_forget_scale(object);
        object->scale = scale;
        object->kind->retry_ns = TARGET_RETRY_MIN_NS;
        object->scale_labels = *scale->selector ? label_selector_labels(scale->selector) : NULL;
}

static void on_scale(const struct kube_reply *reply, void *userdata)
{
        struct watched_object *object = userdata;
        struct target *target;

        object->request = NULL;
        if (kube_reply_is_ok(reply))
                scale_take(object, reply);
        else if (reply->status.code == 404)
                watched_object_forget_scale(object); /* the watch will say so too */
        else
                scale_failed(object, *reply->status.message ? reply->status.message : strerror(-reply->error));

        LIST_FOREACH(target, &object->targets, of_object)
        target_mark_changed(target);
        if (object->scale_wanted && kube_reply_is_ok(reply))
                watched_object_read_scale(object);
}

void watched_object_read_scale(struct watched_object *object)
{
        static const struct kube_request_callbacks callbacks = { .done = on_scale };
        const struct watched_kind *kind = object->kind;
        const struct kube_object scale = { .api = kind->api_version,
                                           .resource = kind->resource,
                                           .namespace = object->namespace,
                                           .name = object->name,
                                           .subresource = "scale" };

        if (!kind->reflector || !kube_reflector_get(kind->reflector, object->key))
                return; /* it is read when it appears */
        object->scale_wanted = object->request != NULL;
        if (!object->request && kube_get(kind->targets->client, &scale, NULL, &callbacks, object, &object->request) < 0)
                scale_failed(object, "too many requests wait");
}

static struct scale_change *change_free(struct scale_change *change)
{
        kube_request_cancel(change->request);
        sd_event_source_disable_unref(change->refused);
        LIST_REMOVE(change, of_target);
        free(change);
        return NULL;
}

void target_changes_drop(struct target *target)
{
        while (!LIST_EMPTY(&target->changes))
                change_free(LIST_FIRST(&target->changes));
}

static void change_end(struct scale_change *change, const struct kube_reply *reply)
{
        void (*done)(const struct kube_reply *reply, void *userdata) = change->done;
        void *userdata = change->userdata;

        change->request = NULL;
        change_free(change);
        done(reply, userdata);
}

static void on_done(const struct kube_reply *reply, void *userdata)
{
        change_end(userdata, reply);
}

static int on_refused(sd_event_source *source, void *userdata)
{
        struct scale_change *change = userdata;
        struct kube_reply reply = { .error = change->error };

        if (change->error == -EAGAIN)
                snprintf(reply.status.message, sizeof(reply.status.message), "the target has not been seen yet");
        else
                snprintf(reply.status.message, sizeof(reply.status.message), "%s", change->target->object->kind->problem ?: "");
        change_end(change, &reply);
        return 0;
}

static int refuse(struct scale_change *change, int error)
{
        change->error = error;
        return sd_event_add_defer(kube_client_event(change->target->targets->client), &change->refused, on_refused, change);
}

static json_t *job_patch(bool suspend, const char *resource_version)
{
        if (!resource_version)
                return json_pack("{s:{s:b}}", "spec", "suspend", suspend);
        return json_pack("{s:{s:b},s:{s:s}}", "spec", "suspend", suspend, "metadata", "resourceVersion", resource_version);
}

/* What the state that target_read() shows was read from. */
static const char *version_seen(const struct watched_object *object)
{
        const struct watched_kind *kind = object->kind;
        const struct target_object *value = kind->reflector ? kube_reflector_get(kind->reflector, object->key) : NULL;

        if (!value || (kind->form == TARGET_FORM_ANY && !object->scale))
                return NULL;
        return kind->form == TARGET_FORM_ANY ? object->scale->metadata.resource_version : value->resource_version;
}

static int patch(struct scale_change *change, uint32_t replicas, const char *resource_version, enum kube_priority priority)
{
        static const struct kube_request_callbacks callbacks = { .done = on_done };
        const struct watched_object *object = change->target->object;
        const struct watched_kind *kind = object->kind;
        bool is_job = kind->form == TARGET_FORM_JOB;
        const struct kube_object where = { .api = kind->api_version,
                                           .resource = kind->resource,
                                           .namespace = object->namespace,
                                           .name = object->name,
                                           .subresource = is_job ? NULL : "scale" };
        const struct kube_change how = { .priority = priority };
        json_t *body = is_job ? job_patch(replicas == 0, resource_version) : kube_patch_replicas(replicas, resource_version);
        int r;

        if (!body)
                return -ENOMEM;
        r = kube_patch(kind->targets->client, &where, KUBE_PATCH_MERGE, body, &how, &callbacks, change, &change->request);
        json_decref(body);
        return r;
}

int target_scale(struct target *target, uint32_t replicas, bool guarded, enum kube_priority priority,
                 void (*done)(const struct kube_reply *reply, void *userdata), void *userdata)
{
        const struct watched_kind *kind = target->object->kind;
        const char *version = guarded ? version_seen(target->object) : NULL;
        struct scale_change *change = calloc(1, sizeof(*change));
        int r;

        if (!change)
                return -ENOMEM;
        *change = (struct scale_change){ .target = target, .done = done, .userdata = userdata };
        LIST_INSERT_HEAD(&target->changes, change, of_target);
        if (kind->problem)
                r = refuse(change, -EOPNOTSUPP);
        else if (!kind->resource || (guarded && !version))
                r = refuse(change, -EAGAIN);
        else
                r = patch(change, replicas, version, priority);
        if (r < 0)
                change_free(change);
        return r;
}
