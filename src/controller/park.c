/* SPDX-License-Identifier: Apache-2.0 */
/* Parking of one policy: its frontends while it sleeps, and its EndpointSlices. parking.h says what that is for. */
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"

/* Parking that cannot be had does not keep a target awake for longer. */
static const uint64_t parked_within_ns = 5 * NSEC_PER_SEC;

static bool is_alive(const char *node, void *userdata)
{
        const struct controller *controller = userdata;

        return agents_get(controller->agents, node, now_monotonic_ns()).freshness != AGENT_STALE;
}

static void on_nodes_changed(void *userdata)
{
        park_nodes_changed(userdata);
}

static void on_again(const char *policy, void *userdata)
{
        struct subject *subject = subject_find(userdata, policy);

        if (subject)
                subject_is_due(subject, false);
}

int park_start(struct controller *controller)
{
        const struct parking_keeper_settings settings = {
                .namespace = controller->options->namespace,
                .first = controller->options->parking_first,
                .last = controller->options->parking_last,
                .is_fresh = is_alive,
                .nodes_changed = on_nodes_changed,
                .again = on_again,
        };

        return parking_keeper_new(controller->client, &settings, controller, &controller->parking);
}

void park_nodes_changed(struct controller *controller)
{
        struct subject *subject;

        for (subject = controller->subjects; subject; subject = subject->hh.next) {
                if (subject->machine.phase == PHASE_AWAKE)
                        continue;
                subject->resolution_is_old = true;
                subject_is_due(subject, false);
        }
}

static struct parking_services services_of(const struct subject *subject, const struct resolution *resolution)
{
        return (struct parking_services){
                .services = (const struct kube_service *const *)subject->area->services.items,
                .n_services = subject->area->services.n,
                .resolution = resolution,
        };
}

/* It sleeps, is about to, or has just woken: connections made to a parking port go on over it. */
static bool is_wanted(const struct subject *subject)
{
        const struct scale_to_zero *object = subject_known(subject)->object;

        if (!object->policy->cluster.parking)
                return false;
        return subject->machine.phase != PHASE_AWAKE || subject->wants_round || object->sleep_requested ||
               now_monotonic_ns() < subject->endpoints_until_ns;
}

/* Whether it is known where the agents are: a new leader must not take away what the last one has parked. */
static bool is_known(const struct controller *controller)
{
        return views_have_synced(controller, VIEW_LEASES, VIEW_LEASES) &&
               kube_reflector_is_synced(parking_keeper_view(controller->parking));
}

static int resolve_with(const struct parking_plan *plan, const struct resolve_input *input, struct resolution **ret_resolution)
{
        struct resolve_input parked = *input;

        parked.parking = plan->entries;
        parked.n_parking = plan->n_entries;
        return resolve(&parked, ret_resolution);
}

int park_resolve(struct subject *subject, const struct resolve_input *input, struct resolution **ret_resolution)
{
        struct controller *controller = subject->controller;
        _cleanup_(resolution_freep) struct resolution *bare = NULL;
        _cleanup_(parking_plan_done) struct parking_plan plan = { 0 };
        int r = resolve(input, &bare);

        subject->parking_is_unknown = is_wanted(subject) && !is_known(controller);
        if (r >= 0 && is_wanted(subject) && is_known(controller)) {
                const struct parking_services services = services_of(subject, bare);

                r = parking_keeper_plan(controller->parking, subject->key, &services, &plan);
        }
        if (r < 0)
                return r;
        subject->parking_reason = plan.reason;
        subject->parking_message = plan.message;
        if (plan.n_entries > 0)
                return resolve_with(&plan, input, ret_resolution);
        *ret_resolution = TAKE_PTR(bare);
        return 0;
}

/* From just before the target is scaled to zero, until an endpoint is ready. */
static bool is_published(const struct subject *subject, const struct decision *decision)
{
        const struct scale_to_zero *object = subject_known(subject)->object;

        if (!object->policy->cluster.parking || object->metadata.deleting)
                return false;
        if (subject->machine.phase == PHASE_SLEEPING)
                return decision->scale == SCALE_DOWN || subject->zero_since_ns;
        return subject->machine.phase == PHASE_ASLEEP ||
               (subject->machine.phase == PHASE_WAKING && (!subject->resolution || subject->resolution->n_ready == 0));
}

static bool is_as_planned(const struct subject *subject, const struct parking_services *services, const struct parking_plan *plan)
{
        _cleanup_(parking_step_done) struct parking_step step = { 0 };
        int r = parking_next(subject_known(subject)->object, services, plan,
                             (const struct kube_endpoint_slice *const *)subject->area->slices.items, subject->area->slices.n,
                             &step);

        return r >= 0 && step.action == PARKING_NOTHING;
}

/* There are slices of it, or may be soon. */
static bool has_slices(const struct subject *subject)
{
        const struct pointers *slices = &subject->area->slices;

        for (size_t i = 0; i < slices->n; i++)
                if (parking_is_own(subject_known(subject)->object, slices->items[i]))
                        return true;
        return parking_keeper_is_busy(subject->controller->parking, subject->key);
}

bool park_write(struct subject *subject, const struct decision *decision)
{
        struct controller *controller = subject->controller;
        const struct parking_services services = services_of(subject, subject->resolution);
        _cleanup_(parking_plan_done) struct parking_plan plan = { 0 };
        bool published = is_published(subject, decision), done;

        if (!controller_leads(controller) || !subject->resolution || !is_known(controller))
                return true;
        if (!published && !has_slices(subject))
                return true;
        if (published && parking_keeper_plan(controller->parking, subject->key, &services, &plan) < 0)
                return true;
        parking_plan_keep_told(&plan, &subject_known(subject)->object->status);

        done = is_as_planned(subject, &services, published ? &plan : NULL);
        parking_keeper_write(controller->parking, subject->key, subject_known(subject)->object, &services, published ? &plan : NULL,
                             (const struct kube_endpoint_slice *const *)subject->area->slices.items, subject->area->slices.n);
        return done || now_monotonic_ns() - subject->machine.since_ns > parked_within_ns;
}

void park_release(struct subject *subject)
{
        const struct scale_to_zero_status *status = &subject_known(subject)->object->status;

        if (is_wanted(subject) || !views_have_synced(subject->controller, VIEW_SLICES, VIEW_SLICES) || has_slices(subject))
                return;
        for (size_t i = 0; i < status->n_frontends; i++)
                if (status->frontends[i].origin == FRONTEND_PARKING)
                        return;
        parking_keeper_release(subject->controller->parking, subject->key);
}
