/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"

static const uint64_t retry_first_ns = 100 * NSEC_PER_MSEC;
static const uint64_t retry_max_ns = 10 * NSEC_PER_SEC;
static const uint64_t retry_waited_for_max_ns = 1 * NSEC_PER_SEC; /* while packets may be held */

bool request_may_begin(struct subject *subject, bool urgent)
{
        struct controller *controller = subject->controller;

        if (urgent || controller->n_writes < WRITES_MAX)
                return true;
        if (!subject->is_waiting)
                TAILQ_INSERT_TAIL(&controller->waiting, subject, waiting);
        subject->is_waiting = true;
        return false;
}

void request_begun(struct subject *subject)
{
        subject->busy = true;
        subject->written_from = version_number(subject_known(subject)->object->metadata.resource_version);
        subject->controller->n_writes++;
}

void request_dropped(struct controller *controller)
{
        struct subject *next = TAILQ_FIRST(&controller->waiting);

        controller->n_writes--;
        if (!next)
                return;
        TAILQ_REMOVE(&controller->waiting, next, waiting);
        next->is_waiting = false;
        subject_is_due(next, false);
}

static void request_over(struct subject *subject)
{
        subject->busy = subject->scaling = false;
        subject->request = NULL;
        request_dropped(subject->controller);
        subject_is_due(subject, true);
}

static void retry_later(struct subject *subject)
{
        unsigned doublings = MIN(subject->failures, 10u);
        uint64_t most_ns = subject->machine.phase == PHASE_AWAKE ? retry_max_ns : retry_waited_for_max_ns;
        uint64_t delay_ns = MIN(retry_first_ns << doublings, most_ns);

        subject->failures++;
        subject->retry_ns = now_monotonic_ns() + delay_ns;
}

/* Takes the object of an answer, where it is newer than all that is known. */
static void take_answer(struct subject *subject, const json_t *body)
{
        _cleanup_(known_policy_freep) struct known_policy *known = NULL;
        const struct kube_metadata *before = &subject_known(subject)->object->metadata;
        const char *field;

        if (!body || known_policy_read(body, &known, &field) < 0)
                return; /* the watch will tell, or complain */
        if (strcmp(known->object->metadata.uid, before->uid) != 0 ||
            version_number(known->object->metadata.resource_version) <= version_number(before->resource_version))
                return;
        known_policy_free(subject->own);
        subject->own = TAKE_PTR(known);
}

static void on_read(const struct kube_reply *reply, void *userdata)
{
        struct subject *subject = userdata;

        if (kube_reply_is_ok(reply))
                take_answer(subject, reply->body);
        if (version_number(subject_known(subject)->object->metadata.resource_version) == subject->written_from)
                retry_later(subject); /* nothing newer is to be had */
        request_over(subject);
}

/* The view was old: what is there now decides, and is not waited for. */
static bool read_afresh(struct subject *subject)
{
        static const struct kube_request_callbacks callbacks = { .done = on_read };
        const struct kube_metadata *metadata = &subject_known(subject)->object->metadata;
        const struct kube_object address = { SCALE_TO_ZERO_API, SCALE_TO_ZERO_RESOURCE, metadata->namespace, metadata->name, NULL };
        const struct kube_change change = { .priority = KUBE_PRIORITY_WAKE };

        return kube_get(subject->controller->client, &address, &change, &callbacks, subject, &subject->request) >= 0;
}

void request_failed(struct subject *subject, int error, const char *what)
{
        if (subject->failures == 0)
                log_warning("policy \"%s\": cannot %s: %s", subject->key, what, strerror(-error));
        retry_later(subject);
        subject_is_due(subject, false);
}

/* A server that does not know a field drops it, and what is written again for it would be dropped again, without end. What goes away
 * with its last finalizer is answered as it was before. */
static bool has_changed_nothing(const struct subject *subject, const struct kube_reply *reply)
{
        const json_t *metadata = json_object_get(reply->body, "metadata");
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));

        return !subject->scaling && version && version_number(version) == subject->written_from &&
               !json_object_get(metadata, "deletionTimestamp");
}

void request_ended(struct subject *subject, const struct kube_reply *reply, const char *what)
{
        subject->request = NULL;
        if (kube_reply_is_ok(reply) && has_changed_nothing(subject, reply)) {
                if (subject->failures == 0)
                        log_warning("policy \"%s\": cannot %s: the server drops what is new; install the CRDs of this version",
                                    subject->key, what);
                retry_later(subject);
        } else if (kube_reply_is_ok(reply)) {
                subject->failures = 0;
                subject->retry_ns = 0;
                if (!subject->scaling)
                        take_answer(subject, reply->body);
        } else if (reply->error == 0 && kube_status_is_conflict(&reply->status)) {
                if (!subject->scaling && read_afresh(subject))
                        return;
                retry_later(subject);
        } else if (reply->error == 0 && reply->status.code == 404 && !subject->scaling) {
                retry_later(subject); /* it has been deleted: the watch will tell */
        } else {
                if (subject->failures == 0)
                        log_warning("policy \"%s\": cannot %s: %s", subject->key, what,
                                    reply->status.message[0] ? reply->status.message : strerror(-reply->error));
                retry_later(subject);
        }
        request_over(subject);
}
