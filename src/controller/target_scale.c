/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "controller/target_private.h"
#include "kube/patch.h"

enum { LOOKS_MAX = 5 }; /* of one wake, while others keep writing */
#define OUTCOME_DEADLINE_NS (2 * NSEC_PER_SEC)

struct scale_change {
        struct target *target;
        struct kube_request *request;
        sd_event_source *refused; /* instead: tells that nothing could be asked for */
        int error;
        uint32_t replicas;
        unsigned looks;           /* at the scale */
        struct kube_reply answer; /* to the change, while the scale is read for what has become of it */
        void (*done)(const struct kube_reply *reply, void *userdata);
        void *userdata;
        LIST_ENTRY(scale_change) of_target;
};

/* resourceVersions of one resource can be compared as numbers; 0: none. */
static uint64_t version_of(const char *resource_version)
{
        return resource_version ? strtoull(resource_version, NULL, 10) : 0;
}

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
        free(object->scale_problem);
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
        struct kube_reply copy = *reply; /* it may be the change's own */

        change->request = NULL;
        change_free(change);
        done(&copy, userdata);
}

static const struct target_object *value_seen(const struct watched_object *object)
{
        return object->kind->reflector ? kube_reflector_get(object->kind->reflector, object->key) : NULL;
}

bool watched_object_seen(const struct watched_object *object, struct seen_scale *ret_seen)
{
        const struct target_object *value = value_seen(object);
        bool has_scale = object->kind->form == TARGET_FORM_ANY;
        struct seen_scale seen;

        if (!value || (has_scale && !object->scale))
                return false;
        seen.version = has_scale ? object->scale->metadata.resource_version : value->resource_version;
        seen.replicas = has_scale ? object->scale->replicas : value->replicas;
        if (object->answer_version && version_of(object->answer_version) > version_of(seen.version))
                seen = (struct seen_scale){ object->answer_version, object->answer_replicas };
        *ret_seen = seen;
        return true;
}

/* Any later version settles it: that change was made, or has come too late for its guard. */
bool watched_object_is_in_doubt(const struct watched_object *object)
{
        struct seen_scale seen;

        return object->doubt_version && watched_object_seen(object, &seen) && version_of(seen.version) <= object->doubt_version;
}

void watched_object_forget_answer(struct watched_object *object)
{
        free(object->answer_version);
        object->answer_version = NULL;
        object->doubt_version = 0;
}

static int answer_read(const struct watched_object *object, const json_t *body, char **ret_version, uint32_t *ret_replicas)
{
        _cleanup_(target_object_freep) struct target_object *job = NULL;
        _cleanup_(kube_scale_freep) struct kube_scale *scale = NULL;
        bool is_job = object->kind->form == TARGET_FORM_JOB;
        const char *field;
        int r = is_job ? target_object_read(body, TARGET_FORM_JOB, &job) : kube_scale_read(body, &scale, &field);
        char *version;

        if (r < 0)
                return r;
        version = strdup(is_job ? job->resource_version : scale->metadata.resource_version);
        if (!version)
                return -ENOMEM;
        *ret_version = version;
        *ret_replicas = is_job ? job->replicas : scale->replicas;
        return 0;
}

static bool answer_take(struct watched_object *object, const json_t *body)
{
        struct target *target;
        uint32_t replicas;
        char *version;

        object->doubt_version = 0;
        if (answer_read(object, body, &version, &replicas) < 0)
                return false; /* the watch will tell, or complain */
        free(object->answer_version);
        object->answer_version = version;
        object->answer_replicas = replicas;
        LIST_FOREACH(target, &object->targets, of_object)
        target_mark_changed(target);
        return true;
}

static struct kube_object address(const struct watched_object *object)
{
        const struct watched_kind *kind = object->kind;

        return (struct kube_object){ .api = kind->api_version,
                                     .resource = kind->resource,
                                     .namespace = object->namespace,
                                     .name = object->name,
                                     .subresource = kind->form == TARGET_FORM_JOB ? NULL : "scale" };
}

/* A conflict may be with this change itself, sent before and never answered. */
static bool is_unclear(const struct kube_reply *reply)
{
        unsigned code = reply->status.code;

        return reply->error < 0 || code >= 500 || code == 408 || code == 409;
}

static void on_done(const struct kube_reply *reply, void *userdata);

static void answer_copy(struct scale_change *change, const struct kube_reply *reply)
{
        change->answer = *reply;
        change->answer.body = NULL;
}

static json_t *job_patch(bool suspend, const char *resource_version)
{
        return json_pack("{s:{s:b},s:{s:s}}", "spec", "suspend", suspend, "metadata", "resourceVersion", resource_version);
}

static int patch(struct scale_change *change, const char *resource_version)
{
        static const struct kube_request_callbacks callbacks = { .done = on_done };
        struct watched_object *object = change->target->object;
        const struct kube_object where = address(object);
        const struct kube_change how = { .priority = KUBE_PRIORITY_WAKE,
                                         .deadline_ns = change->replicas == 0 ? TARGET_SLEEP_DEADLINE_NS : 0 };
        json_t *body = object->kind->form == TARGET_FORM_JOB ? job_patch(change->replicas == 0, resource_version)
                                                             : kube_patch_replicas(change->replicas, resource_version);
        int r;

        if (!body)
                return -ENOMEM;
        r = kube_patch(object->kind->targets->client, &where, KUBE_PATCH_MERGE, body, &how, &callbacks, change, &change->request);
        json_decref(body);
        if (r >= 0 && change->replicas == 0)
                object->doubt_version = version_of(resource_version);
        return r;
}

static void on_outcome(const struct kube_reply *reply, void *userdata)
{
        struct scale_change *change = userdata;
        struct watched_object *object = change->target->object;
        bool taken = kube_reply_is_ok(reply) && answer_take(object, reply->body);

        change->request = NULL;
        if (reply->error == 0 && reply->status.code == 404)
                object->doubt_version = 0;
        if (change->replicas > 0) {
                answer_copy(change, reply);
                if (taken && object->answer_replicas == 0 && patch(change, object->answer_version) >= 0)
                        return; /* else somebody has scaled it up: that is kept */
        }
        change_end(change, &change->answer);
}

static int look(struct scale_change *change)
{
        static const struct kube_request_callbacks callbacks = { .done = on_outcome };
        static const struct kube_change how = { .priority = KUBE_PRIORITY_WAKE, .deadline_ns = OUTCOME_DEADLINE_NS };
        const struct watched_object *object = change->target->object;
        const struct kube_object where = address(object);

        change->looks++;
        return kube_get(object->kind->targets->client, &where, &how, &callbacks, change, &change->request);
}

static bool wants_look(const struct scale_change *change)
{
        if (change->replicas > 0)
                return change->answer.status.code == 409 && change->looks < LOOKS_MAX;
        return is_unclear(&change->answer);
}

static void on_done(const struct kube_reply *reply, void *userdata)
{
        struct scale_change *change = userdata;
        struct watched_object *object = change->target->object;

        change->request = NULL;
        answer_copy(change, reply);
        if (kube_reply_is_ok(reply))
                answer_take(object, reply->body);
        else if (wants_look(change) && look(change) >= 0)
                return;
        else if (change->replicas == 0 && !is_unclear(reply))
                object->doubt_version = 0;
        change_end(change, &change->answer);
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

int target_scale(struct target *target, uint32_t replicas, void (*done)(const struct kube_reply *reply, void *userdata),
                 void *userdata)
{
        const struct watched_object *object = target->object;
        struct scale_change *change = calloc(1, sizeof(*change));
        struct seen_scale seen;
        bool is_seen = watched_object_seen(object, &seen);
        int r;

        if (!change)
                return -ENOMEM;
        *change = (struct scale_change){ .target = target, .replicas = replicas, .done = done, .userdata = userdata };
        LIST_INSERT_HEAD(&target->changes, change, of_target);
        if (object->kind->problem)
                r = refuse(change, -EOPNOTSUPP);
        else if (!object->kind->resource || (replicas == 0 && !is_seen))
                r = refuse(change, -EAGAIN);
        else if (replicas > 0 && (!is_seen || seen.replicas > 0 || watched_object_is_in_doubt(object)))
                r = look(change);
        else
                r = patch(change, seen.version);
        if (r < 0)
                change_free(change);
        return r;
}
