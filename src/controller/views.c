/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"

static const char *const view_names[] = {
        [VIEW_POLICIES] = SCALE_TO_ZERO_RESOURCE,   [VIEW_SERVICES] = "services", [VIEW_SLICES] = "endpointslices",
        [VIEW_ACTIVITIES] = NODE_ACTIVITY_RESOURCE, [VIEW_LEASES] = "leases",     [VIEW_AUTOSCALERS] = "horizontalpodautoscalers",
};
static_assert(ELEMENTSOF(view_names) == VIEW_MAX, "every view has a name");

const char *view_name(enum view view)
{
        return view_names[view];
}

static int log_unreadable(int r, const char *kind, const char *key, const char *field)
{
        if (r == -EBADMSG)
                log_warning("%s %s: %s is not as the API promises; it is left out", kind, key, field ? field : "it");
        return r;
}

/* Policies */

static int policy_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *field = NULL;

        return log_unreadable(known_policy_read(object, (struct known_policy **)ret_value, &field), "ScaleToZero", key, field);
}

static void policy_release(void *value, void *userdata)
{
        known_policy_free(value);
}

static void policy_added(const char *key, void *value, void *userdata)
{
        int r = subject_new(userdata, key, value);

        if (r < 0)
                log_error("ScaleToZero %s: %s", key, strerror(-r));
}

static void policy_modified(const char *key, void *old, void *value, void *userdata)
{
        struct subject *subject = subject_find(userdata, key);

        if (subject)
                subject_view(subject, value);
        else
                policy_added(key, value, userdata);
}

static void policy_deleted(const char *key, void *value, void *userdata)
{
        struct subject *subject = subject_find(userdata, key);
        struct area *area = subject ? subject->area : NULL;
        struct controller *controller = userdata;

        if (!subject)
                return;
        parking_keeper_forget(controller->parking, key);
        if (subject->target)
                area_target_is_due(area, &subject->reference); /* a younger policy of the same target is free now */
        subject_free(subject);
        area_forget_if_empty(userdata, area);
}

/* Services */

static int service_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *field = NULL;

        return log_unreadable(kube_service_read(object, (struct kube_service **)ret_value, &field), "Service", key, field);
}

static void service_release(void *value, void *userdata)
{
        kube_service_free(value);
}

/* What is in an area for which memory is missing is not known, so its policies are not put to sleep for it: at worst one too few. */
static struct area *area_add(struct controller *controller, const char *namespace, size_t member, void *item)
{
        struct area *area;
        int r = area_get(controller, namespace, &area);

        if (r >= 0)
                r = pointers_add((struct pointers *)((char *)area + member), item);
        if (r < 0)
                log_error("namespace %s: %s", namespace, strerror(-r));
        return r < 0 ? NULL : area;
}

static void area_remove(struct controller *controller, struct area *area, size_t member, const void *item)
{
        pointers_remove((struct pointers *)((char *)area + member), item);
        area_forget_if_empty(controller, area);
}

static void service_added(const char *key, void *value, void *userdata)
{
        const struct kube_service *service = value;
        struct area *area = area_add(userdata, service->metadata.namespace, offsetof(struct area, services), value);

        if (area)
                area_selected_is_due(area, service);
}

static void service_deleted(const char *key, void *value, void *userdata)
{
        const struct kube_service *service = value;
        struct area *area = area_find(userdata, service->metadata.namespace);

        if (!area)
                return;
        area_selected_is_due(area, service);
        area_remove(userdata, area, offsetof(struct area, services), value);
}

static void service_modified(const char *key, void *old, void *value, void *userdata)
{
        service_added(key, value, userdata);
        service_deleted(key, old, userdata);
}

/* EndpointSlices */

static int slice_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *field = NULL;
        int r = log_unreadable(kube_endpoint_slice_read(object, (struct kube_endpoint_slice **)ret_value, &field), "EndpointSlice",
                               key, field);

        /* Whose pods it names is not known, so nothing in its namespace is put to sleep. */
        return r == -EBADMSG ? kube_endpoint_slice_unreadable(key, (struct kube_endpoint_slice **)ret_value) : r;
}

static void slice_release(void *value, void *userdata)
{
        kube_endpoint_slice_free(value);
}

static void slice_is_due(struct area *area, const struct kube_endpoint_slice *slice)
{
        if (slice->unreadable)
                area_is_due(area);
        else if (slice->service)
                area_slice_is_due(area, slice);
}

static void slice_added(const char *key, void *value, void *userdata)
{
        const struct kube_endpoint_slice *slice = value;
        struct area *area = area_add(userdata, slice->metadata.namespace, offsetof(struct area, slices), value);

        if (area)
                slice_is_due(area, slice);
}

static void slice_deleted(const char *key, void *value, void *userdata)
{
        const struct kube_endpoint_slice *slice = value;
        struct area *area = area_find(userdata, slice->metadata.namespace);

        if (!area)
                return;
        slice_is_due(area, slice);
        area_remove(userdata, area, offsetof(struct area, slices), value);
}

static void slice_modified(const char *key, void *old, void *value, void *userdata)
{
        slice_added(key, value, userdata);
        slice_deleted(key, old, userdata);
}

/* NodeActivities */

static int activity_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *field = NULL;

        return log_unreadable(node_activity_read(object, (struct node_activity **)ret_value, &field), "NodeActivity", key, field);
}

static void activity_release(void *value, void *userdata)
{
        node_activity_free(value);
}

static void named_is_due(struct controller *controller, const char *policy, bool first)
{
        struct subject *subject = subject_find(controller, policy);

        if (subject)
                subject_is_due(subject, first);
}

static bool same_demand(const struct node_activity *other, const struct node_demand *demand)
{
        const struct node_demand *was = other ? node_activity_find_demand(other, demand->policy) : NULL;

        return was && was->epoch == demand->epoch;
}

static bool same_workload(const struct node_activity *other, const struct node_workload *workload)
{
        const struct node_workload *was = other ? node_activity_find_workload(other, workload->policy) : NULL;

        return was && was->state == workload->state && was->quiet_epoch == workload->quiet_epoch && was->pods == workload->pods &&
               was->gpu.devices == workload->gpu.devices && was->gpu.would_sleep == workload->gpu.would_sleep;
}

static bool same_process(const struct node_activity *a, const struct node_activity *b)
{
        return strcmp(a->instance ? a->instance : "", b->instance ? b->instance : "") == 0;
}

/* The policies about which @activity says what @other did not. */
static void different_are_due(struct controller *controller, const struct node_activity *activity,
                              const struct node_activity *other)
{
        if (other && activity && !same_process(activity, other))
                other = NULL;
        for (size_t i = 0; activity && i < activity->n_demands; i++)
                if (!same_demand(other, &activity->demands[i]))
                        named_is_due(controller, activity->demands[i].policy, true);
        for (size_t i = 0; activity && i < activity->n_workloads; i++)
                if (!same_workload(other, &activity->workloads[i]))
                        named_is_due(controller, activity->workloads[i].policy, false);
}

static void sleeping_are_due(struct controller *controller)
{
        struct subject *subject, *next;

        HASH_ITER(hh, controller->subjects, subject, next)
                if (subject->machine.phase == PHASE_SLEEPING)
                        subject_is_due(subject, false);
}

static void activity_changed(struct controller *controller, const char *node, const struct node_activity *old,
                             const struct node_activity *activity)
{
        int r = agents_activity(controller->agents, node, activity);

        if (r < 0)
                log_error("NodeActivity %s: %s", node, strerror(-r));
        different_are_due(controller, activity, old);
        different_are_due(controller, old, activity);
        if (!old || !activity || old->programmed != activity->programmed || !same_process(old, activity))
                sleeping_are_due(controller);
}

static void activity_added(const char *key, void *value, void *userdata)
{
        activity_changed(userdata, key, NULL, value);
}

static void activity_modified(const char *key, void *old, void *value, void *userdata)
{
        activity_changed(userdata, key, old, value);
}

static void activity_deleted(const char *key, void *value, void *userdata)
{
        activity_changed(userdata, key, value, NULL);
}

/* Leases of agents */

static int on_agent_silent(sd_event_source *source, uint64_t usec, void *userdata);

/* For the first that could fall silent; most often its Lease has changed by then, and nothing has happened. */
static void arm_agent_timer(struct controller *controller)
{
        uint64_t deadline;
        int enabled;

        if (sd_event_source_get_enabled(controller->agent_timer, &enabled) > 0)
                return;
        deadline = agents_deadline(controller->agents, now_monotonic_ns());
        if (deadline == 0)
                return;
        sd_event_source_set_time(controller->agent_timer, deadline / NSEC_PER_USEC + 1);
        sd_event_source_set_enabled(controller->agent_timer, SD_EVENT_ONESHOT);
}

static int on_agent_silent(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct controller *controller = userdata;

        if (agents_fell_silent(controller->agents, now_monotonic_ns())) {
                subjects_are_due(controller);
                park_nodes_changed(controller);
        }
        arm_agent_timer(controller);
        return 0;
}

static int lease_read(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        const char *field = NULL;

        return log_unreadable(kube_lease_read(object, (struct kube_lease **)ret_value, &field), "Lease", key, field);
}

static void lease_release(void *value, void *userdata)
{
        kube_lease_free(value);
}

static void lease_added(const char *key, void *value, void *userdata)
{
        struct controller *controller = userdata;
        int r = agents_lease(controller->agents, value, now_monotonic_ns());

        if (r < 0)
                log_error("Lease %s: %s", key, strerror(-r));
        if (r > 0) {
                subjects_are_due(controller);
                park_nodes_changed(controller);
        }
        arm_agent_timer(controller);
        gone_nodes_look(controller->gone_nodes);
}

static void lease_modified(const char *key, void *old, void *value, void *userdata)
{
        lease_added(key, value, userdata);
}

static void lease_deleted(const char *key, void *value, void *userdata)
{
        struct controller *controller = userdata;

        agents_lease_gone(controller->agents, value);
        subjects_are_due(controller);
        park_nodes_changed(controller);
}

/* HorizontalPodAutoscalers */

static int autoscaler_read_one(const char *key, const json_t *object, void **ret_value, void *userdata)
{
        struct autoscaler **ret_autoscaler = (struct autoscaler **)ret_value;
        int r = log_unreadable(autoscaler_read(object, ret_autoscaler), "HorizontalPodAutoscaler", key, "spec.scaleTargetRef");

        return r == -EBADMSG ? autoscaler_unreadable(key, ret_autoscaler) : r;
}

static void autoscaler_release(void *value, void *userdata)
{
        autoscaler_free(value);
}

static char *key_namespace(const char *key)
{
        return strndup(key, strcspn(key, "/"));
}

static void autoscaler_is_due(struct area *area, const struct autoscaler *autoscaler)
{
        if (autoscaler->target.name)
                area_target_is_due(area, &autoscaler->target);
        else
                area_is_due(area);
}

static void autoscaler_added(const char *key, void *value, void *userdata)
{
        _cleanup_(freep) char *namespace = key_namespace(key);
        struct area *area = namespace ? area_add(userdata, namespace, offsetof(struct area, autoscalers), value) : NULL;

        if (area)
                autoscaler_is_due(area, value);
}

static void autoscaler_deleted(const char *key, void *value, void *userdata)
{
        _cleanup_(freep) char *namespace = key_namespace(key);
        struct area *area = namespace ? area_find(userdata, namespace) : NULL;

        if (!area)
                return;
        autoscaler_is_due(area, value);
        area_remove(userdata, area, offsetof(struct area, autoscalers), value);
}

static void autoscaler_modified(const char *key, void *old, void *value, void *userdata)
{
        autoscaler_added(key, value, userdata);
        autoscaler_deleted(key, old, userdata);
}

/* All of them */

static void on_synced(void *userdata)
{
        subjects_are_due(userdata);
}

static void on_stale(bool stale, void *userdata)
{
        subjects_are_due(userdata);
}

static void on_activities_broken(bool broken, void *userdata)
{
        struct controller *controller = userdata;

        agents_doubt(controller->agents);
        subjects_are_due(controller);
}

bool views_have_synced(const struct controller *controller, enum view first, enum view last)
{
        for (enum view view = first; view <= last; view++)
                if (!controller->views[view] || !kube_reflector_is_synced(controller->views[view]))
                        return false;
        return true;
}

bool views_are_current(const struct controller *controller)
{
        for (enum view view = 0; view < VIEW_MAX; view++)
                if (!controller->views[view] || kube_reflector_is_stale(controller->views[view]))
                        return false;
        return !targets_are_stale(controller->targets);
}

static const struct kube_reflector_callbacks view_callbacks[VIEW_MAX] = {
        [VIEW_POLICIES] = { policy_read, policy_release, policy_added, policy_modified, policy_deleted, on_synced, on_stale, NULL },
        [VIEW_SERVICES] = { service_read, service_release, service_added, service_modified, service_deleted, on_synced, on_stale,
                            NULL },
        [VIEW_SLICES] = { slice_read, slice_release, slice_added, slice_modified, slice_deleted, on_synced, on_stale, NULL },
        [VIEW_ACTIVITIES] = { activity_read, activity_release, activity_added, activity_modified, activity_deleted, on_synced,
                              on_stale, on_activities_broken },
        [VIEW_LEASES] = { lease_read, lease_release, lease_added, lease_modified, lease_deleted, on_synced, on_stale, NULL },
        [VIEW_AUTOSCALERS] = { autoscaler_read_one, autoscaler_release, autoscaler_added, autoscaler_modified, autoscaler_deleted,
                               on_synced, on_stale, NULL },
};

static int view_start(struct controller *controller, enum view view, const char *path)
{
        const struct kube_reflector_settings settings = { .resource = view_names[view], .path = path };

        return kube_reflector_new(controller->client, &settings, &view_callbacks[view], controller, NULL, &controller->views[view]);
}

int views_start(struct controller *controller)
{
        _cleanup_(freep) char *leases = NULL;
        const char *const paths[VIEW_MAX] = {
                [VIEW_POLICIES] = "/apis/" SCALE_TO_ZERO_API "/" SCALE_TO_ZERO_RESOURCE,
                [VIEW_SERVICES] = "/api/v1/services",
                [VIEW_SLICES] = "/apis/discovery.k8s.io/v1/endpointslices",
                [VIEW_ACTIVITIES] = "/apis/" SCALE_TO_ZERO_API "/" NODE_ACTIVITY_RESOURCE,
                [VIEW_AUTOSCALERS] = "/apis/autoscaling/v2/horizontalpodautoscalers",
        };
        const struct kube_object collection = { "coordination.k8s.io/v1", "leases", controller->options->namespace, NULL, NULL };
        int r = sd_event_add_time(controller->event, &controller->agent_timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_agent_silent,
                                  controller);

        if (r >= 0)
                r = sd_event_source_set_enabled(controller->agent_timer, SD_EVENT_OFF);
        if (r >= 0)
                r = kube_object_path(&collection, &leases);
        for (enum view view = 0; r >= 0 && view < VIEW_MAX; view++)
                r = view_start(controller, view, view == VIEW_LEASES ? leases : paths[view]);
        return r;
}

void views_end(struct controller *controller)
{
        for (enum view view = 0; view < VIEW_MAX; view++)
                controller->views[view] = kube_reflector_free(controller->views[view]);
        sd_event_source_disable_unref(controller->agent_timer);
        controller->agent_timer = NULL;
}
