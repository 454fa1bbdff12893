/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"

enum { ALL_DUE_AFTER_MS = 100 };

struct subject *subject_find(const struct controller *controller, const char *key)
{
        struct subject *subject;

        HASH_FIND_STR(controller->subjects, key, subject);
        return subject;
}

const struct known_policy *subject_known(const struct subject *subject)
{
        return subject->own ? subject->own : subject->viewed;
}

void subject_is_due(struct subject *subject, bool first)
{
        struct controller *controller = subject->controller;

        if (subject->is_due && !first)
                return;
        if (subject->is_due)
                TAILQ_REMOVE(&controller->due, subject, due);
        if (first)
                TAILQ_INSERT_HEAD(&controller->due, subject, due);
        else
                TAILQ_INSERT_TAIL(&controller->due, subject, due);
        subject->is_due = true;
        sd_event_source_set_enabled(controller->look_source, SD_EVENT_ONESHOT);
}

/* Many agents may come or go at once: what concerns all policies is looked at ten times a second at most. */
void subjects_are_due(struct controller *controller)
{
        int enabled;

        if (sd_event_source_get_enabled(controller->all_timer, &enabled) > 0)
                return;
        sd_event_source_set_time_relative(controller->all_timer, ALL_DUE_AFTER_MS * NSEC_PER_MSEC / NSEC_PER_USEC);
        sd_event_source_set_enabled(controller->all_timer, SD_EVENT_ONESHOT);
}

/* The API lets nobody change the target: another one is that of another policy of the same name. */
static int follow_target(struct subject *subject)
{
        const struct target_reference *wanted = known_policy_target(subject_known(subject));
        struct target_reference reference;
        struct target *target;
        int r;

        if (!wanted)
                return 0;
        if (subject->target && target_reference_equal(&subject->reference, wanted) &&
            strcmp(subject->reference.api_version, wanted->api_version) == 0)
                return 0;
        r = target_reference_copy(wanted, &reference);
        if (r < 0)
                return r;
        r = target_new(subject->controller->targets, subject->area->namespace, &reference, subject, &target);
        if (r < 0) {
                target_reference_done(&reference);
                return r;
        }
        target_free(subject->target);
        target_reference_done(&subject->reference);
        subject->target = target;
        subject->reference = reference;
        subject->has_been_up = false;
        subject->replicas_seen = 0;
        subject->zero_since_ns = 0;
        subject->leftovers = leftovers_free(subject->leftovers);
        return 0;
}

static void follow_object(struct subject *subject)
{
        const struct scale_to_zero *object;
        int r = follow_target(subject);

        if (r < 0)
                log_error("policy \"%s\": cannot follow its target: %s", subject->key, strerror(-r));
        r = parking_keeper_learn(subject->controller->parking, subject->key, &subject->viewed->object->status);
        if (r < 0)
                log_error("policy \"%s\": cannot keep its parking ports: %s", subject->key, strerror(-r));
        object = subject_known(subject)->object;
        if (object && object->policy)
                r = ignored_follow(subject->controller->ignored, subject->area->namespace, object->policy, &subject->ignores);
        if (r < 0)
                log_error("policy \"%s\": cannot follow spec.ignore: %s", subject->key, strerror(-r));
        subject->resolution_is_old = true;
        subject_is_due(subject, false);
}

int subject_new(struct controller *controller, const char *key, struct known_policy *viewed)
{
        struct subject *subject = calloc(1, sizeof(*subject));
        int r;

        if (!subject)
                return -ENOMEM;
        subject->controller = controller;
        subject->viewed = viewed;
        subject->epoch = -1;
        subject->key = strdup(key);
        r = subject->key ? area_get(controller, viewed->object->metadata.namespace, &subject->area) : -ENOMEM;
        if (r < 0) {
                free(subject->key);
                free(subject);
                return r;
        }
        LIST_INSERT_HEAD(&subject->area->subjects, subject, neighbours);
        HASH_ADD_KEYPTR(hh, controller->subjects, subject->key, strlen(subject->key), subject);
        follow_object(subject);
        return 0;
}

void subject_view(struct subject *subject, struct known_policy *viewed)
{
        const struct scale_to_zero *own = subject->own ? subject->own->object : NULL;

        subject->viewed = viewed;
        if (own && (strcmp(own->metadata.uid, viewed->object->metadata.uid) != 0 ||
                    version_number(own->metadata.resource_version) <= version_number(viewed->object->metadata.resource_version)))
                subject->own = known_policy_free(subject->own);
        follow_object(subject);
}

struct subject *subject_free(struct subject *subject)
{
        struct controller *controller;

        if (!subject)
                return NULL;
        controller = subject->controller;
        kube_request_cancel(subject->request);
        target_free(subject->target);
        target_reference_done(&subject->reference);
        if (subject->is_due)
                TAILQ_REMOVE(&controller->due, subject, due);
        if (subject->is_waiting)
                TAILQ_REMOVE(&controller->waiting, subject, waiting);
        if (subject->busy)
                request_dropped(controller);
        LIST_REMOVE(subject, neighbours);
        HASH_DEL(controller->subjects, subject);
        sd_event_source_disable_unref(subject->timer);
        known_policy_free(subject->own);
        resolution_free(subject->resolution);
        leftovers_free(subject->leftovers);
        pods_free(subject->pods);
        ignored_policy_free(subject->ignores);
        diagnosis_free(subject->diagnosis);
        free(subject->scale_problem);
        free(subject->pending);
        free(subject->key);
        free(subject);
        return NULL;
}
