/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "controller/controller_private.h"

struct area *area_find(const struct controller *controller, const char *namespace)
{
        struct area *area;

        HASH_FIND_STR(controller->areas, namespace, area);
        return area;
}

int area_get(struct controller *controller, const char *namespace, struct area **ret_area)
{
        struct area *area = area_find(controller, namespace);

        if (!area) {
                area = calloc(1, sizeof(*area));
                if (!area)
                        return -ENOMEM;
                area->namespace = strdup(namespace);
                if (!area->namespace) {
                        free(area);
                        return -ENOMEM;
                }
                LIST_INIT(&area->subjects);
                HASH_ADD_KEYPTR(hh, controller->areas, area->namespace, strlen(area->namespace), area);
        }
        *ret_area = area;
        return 0;
}

void area_forget_if_empty(struct controller *controller, struct area *area)
{
        if (area->services.n > 0 || area->slices.n > 0 || area->autoscalers.n > 0 || !LIST_EMPTY(&area->subjects))
                return;
        HASH_DEL(controller->areas, area);
        free(area->services.items);
        free(area->slices.items);
        free(area->autoscalers.items);
        free(area->namespace);
        free(area);
}

int pointers_add(struct pointers *pointers, void *item)
{
        if (pointers->n == pointers->room) {
                size_t room = pointers->room ? 2 * pointers->room : 8;
                void **items = reallocarray(pointers->items, room, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                pointers->items = items;
                pointers->room = room;
        }
        pointers->items[pointers->n++] = item;
        return 0;
}

void pointers_remove(struct pointers *pointers, const void *item)
{
        for (size_t i = 0; i < pointers->n; i++)
                if (pointers->items[i] == item) {
                        pointers->items[i] = pointers->items[--pointers->n];
                        return;
                }
}

static void is_due(struct subject *subject)
{
        subject->resolution_is_old = true;
        subject_is_due(subject, false);
}

void area_is_due(struct area *area)
{
        struct subject *subject;

        LIST_FOREACH(subject, &area->subjects, neighbours)
        {
                is_due(subject);
        }
}

void area_target_is_due(struct area *area, const struct target_reference *reference)
{
        struct subject *subject;

        LIST_FOREACH(subject, &area->subjects, neighbours)
        {
                if (subject->target && target_reference_equal(&subject->reference, reference))
                        is_due(subject);
        }
}

void area_selected_is_due(struct area *area, const struct kube_service *service)
{
        struct target_state target;
        struct subject *subject;

        LIST_FOREACH(subject, &area->subjects, neighbours)
        {
                const struct policy *policy = subject_known(subject)->object->policy;

                if (!policy || !subject->target)
                        continue;
                target_read(subject->target, &target);
                if (resolve_may_use(policy, &target, service))
                        is_due(subject);
        }
}

/* Its own parking slices matter to it as long as there are any, whatever has become of its Services. */
static bool uses_slice(const struct subject *subject, const struct kube_endpoint_slice *slice)
{
        const struct resolution *resolution = subject->resolution;

        if (!resolution || (slice->owner_uid && strcmp(slice->owner_uid, subject_known(subject)->object->metadata.uid) == 0))
                return true;
        for (size_t i = 0; i < resolution->n_services; i++)
                if (strcmp(resolution->services[i], slice->service) == 0)
                        return true;
        return false;
}

void area_slice_is_due(struct area *area, const struct kube_endpoint_slice *slice)
{
        struct subject *subject;

        LIST_FOREACH(subject, &area->subjects, neighbours)
        {
                if (uses_slice(subject, slice))
                        is_due(subject);
        }
}

/* By the time they were made, which the API has in seconds; then by name. */
static bool is_older(const struct subject *a, const struct subject *b)
{
        int order = strcmp(subject_known(a)->created, subject_known(b)->created);

        return order < 0 || (order == 0 && strcmp(a->key, b->key) < 0);
}

const char *area_rival(const struct subject *subject)
{
        const struct subject *other, *oldest = subject;

        LIST_FOREACH(other, &subject->area->subjects, neighbours)
        {
                if (other != subject && other->target && subject_known(other)->object->policy &&
                    target_reference_equal(&other->reference, &subject->reference) && is_older(other, oldest))
                        oldest = other;
        }
        return oldest == subject ? NULL : subject_known(oldest)->object->metadata.name;
}

const char *area_autoscaler(const struct subject *subject)
{
        const struct pointers *autoscalers = &subject->area->autoscalers;

        for (size_t i = 0; i < autoscalers->n; i++) {
                const struct autoscaler *autoscaler = autoscalers->items[i];

                if (!autoscaler->target.name || target_reference_equal(&autoscaler->target, &subject->reference))
                        return autoscaler->name;
        }
        return NULL;
}
