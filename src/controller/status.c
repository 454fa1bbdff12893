/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "controller/controller_private.h"

/* A status to be written. It borrows from the object, the resolution and the decision. */
struct draft {
        struct scale_to_zero_status status;
        struct status_condition conditions[STATUS_CONDITIONS_MAX];
        struct status_frontend frontends[STATUS_FRONTENDS_MAX];
        struct prefix ignored[STATUS_IGNORED_MAX];
};

/* Those where it is parked are for policies that are not awake, or have just been woken. */
static void draft_frontends(struct draft *draft, const struct subject *subject, const struct resolution *resolution, bool parked)
{
        const struct scale_to_zero_status *before = &subject_known(subject)->object->status;
        size_t n = 0;

        for (size_t i = 0; i < resolution->n_frontends && n < STATUS_FRONTENDS_MAX; i++)
                if (parked || resolution->frontends[i].origin != FRONTEND_PARKING)
                        draft->frontends[n++] = resolution->frontends[i];
        for (size_t i = 0; subject->parking_is_unknown && i < before->n_frontends && n < STATUS_FRONTENDS_MAX; i++)
                if (before->frontends[i].origin == FRONTEND_PARKING)
                        draft->frontends[n++] = before->frontends[i];
        draft->status.frontends = draft->frontends;
        draft->status.n_frontends = n;
}

static bool has_endpoints(const struct subject *subject, const struct decide_input *input, const struct decision *decision)
{
        enum phase phase = decision->machine.phase;

        if (input->target->known && input->target->replicas == 0)
                return false; /* what is left of them goes */
        if (phase == PHASE_WAKING)
                return true;
        return phase == PHASE_AWAKE && (decision->from != PHASE_AWAKE || input->now_ns < subject->endpoints_until_ns);
}

static void draft_resolution(struct draft *draft, const struct subject *subject, const struct decide_input *input,
                             const struct decision *decision)
{
        const struct resolution *resolution = input->resolution;

        if (input->target->known && input->target->exists && input->target->selector)
                draft->status.selector = (char *)input->target->selector;
        if (!resolution)
                return;
        draft_frontends(draft, subject, resolution,
                        decision->machine.phase != PHASE_AWAKE || has_endpoints(subject, input, decision));
        draft->status.ports = resolution->ports;
        draft->status.n_ports = resolution->n_ports;
        draft->status.endpoints = NULL;
        draft->status.n_endpoints = 0;
        if (has_endpoints(subject, input, decision)) {
                draft->status.endpoints = resolution->endpoints;
                draft->status.n_endpoints = resolution->n_endpoints;
        }
}

static void draft_ignored(struct draft *draft, const struct subject *subject)
{
        size_t n;

        if (ignored_list(subject->ignores, draft->ignored, &n) == -EAGAIN)
                return;
        draft->status.ignored = draft->ignored;
        draft->status.n_ignored = n;
}

static void draft_wake(struct draft *draft, const struct decide_input *input, const struct decision *decision)
{
        const struct evidence *evidence = input->evidence;

        draft->status.last_wake = (struct status_wake){
                .realtime_ns = input->now_realtime_ns,
                .cause = (char *)wake_cause_to_string(decision->cause),
        };
        if (decision->cause == WAKE_PACKET) {
                draft->status.last_wake.source = evidence->demand->source;
                draft->status.last_wake.node = (char *)evidence->demand_node;
        }
}

static void draft_phase(struct draft *draft, const struct decide_input *input, const struct decision *decision)
{
        struct scale_to_zero_status *status = &draft->status;
        enum phase phase = decision->machine.phase;

        if (decision->from == PHASE_ASLEEP && phase != PHASE_ASLEEP && status->since_realtime_ns &&
            input->now_realtime_ns > status->since_realtime_ns) {
                double slept = (double)(input->now_realtime_ns - status->since_realtime_ns) / NSEC_PER_SEC;

                status->saved_replica_seconds += slept * MAX(status->replicas_before, 1u);
                status->saved_gpu_seconds += slept * status->gpus_before;
        }
        if (decision->from != phase)
                status->since_realtime_ns = input->now_realtime_ns;
        else if (status->since_realtime_ns == 0)
                status->since_realtime_ns = input->now_realtime_ns - (input->now_ns - decision->from_since_ns);
        status->phase = phase;
        status->holding = phase_holds(&decision->machine);
        status->epoch += decision->fresh_sleep;
        status->replicas_before = decision->replicas_before;
        status->gpus_before = decision->gpus_before;
        status->idle_factor = decision->idle_factor;
        if (decision->woken)
                draft_wake(draft, input, decision);
        if (decision->slept)
                status->last_sleep_reason = (char *)sleep_reason_to_string(decision->reason);
        if (decision->slept || (phase == PHASE_ASLEEP && decision->from != PHASE_ASLEEP))
                status->last_sleep_realtime_ns = input->now_realtime_ns;
}

static void draft_fill(struct draft *draft, const struct subject *subject, const struct decide_input *input,
                       const struct decision *decision)
{
        draft->status = input->object->status;
        draft_phase(draft, input, decision);
        draft_resolution(draft, subject, input, decision);
        draft_ignored(draft, subject);
        conditions_to_status(&decision->conditions, input->object, input->now_realtime_ns, draft->conditions);
        draft->status.conditions = draft->conditions;
        draft->status.n_conditions = decision->conditions.n;
        draft->status.observed_generation = input->object->metadata.generation;
}

/* How the written status is then the policy's. */
static void adopt(struct subject *subject, const struct decision *decision)
{
        uint64_t now_ns = now_monotonic_ns();

        if (decision->machine.phase == PHASE_SLEEPING)
                subject->sleeping_version = 0; /* agents are to have this, too */
        if (decision->changed) {
                subject->machine = decision->machine;
                subject->epoch += decision->fresh_sleep;
                subject->woke = decision->machine.phase == PHASE_WAKING && decision->from != PHASE_WAKING;
                subject->scale_again_ns = 0;
        }
        if (decision->from != decision->machine.phase) {
                subject->transitions[decision->from][decision->machine.phase]++;
                subject->has_been_up = false;
                subject->diagnosis = diagnosis_free(subject->diagnosis);
                if (decision->machine.phase == PHASE_AWAKE)
                        subject->endpoints_until_ns = now_ns + ENDPOINTS_KEPT_NS;
        }
        if (decision->woken)
                subject->wakes[decision->cause]++;
        if (decision->wake_failed)
                subject->wake_failures++;
        if (decision->blocked)
                subject->blocked_until_ns = now_ns + DECIDE_BLOCKED_NS;
}

static void on_written(const struct kube_reply *reply, void *userdata)
{
        struct subject *subject = userdata;
        _cleanup_(freep) struct decision *decision = TAKE_PTR(subject->pending);

        bool written = kube_reply_is_ok(reply) && decision;

        if (written)
                adopt(subject, decision);
        request_ended(subject, reply, "write its status");
        if (written)
                tell_written(subject, decision);
}

static json_t *patch_new(const struct scale_to_zero *object, const struct scale_to_zero_status *status)
{
        json_t *now = scale_to_zero_status_json(&object->status), *next = scale_to_zero_status_json(status), *patch = NULL;

        if (now && next && !json_equal(now, next))
                patch = json_pack("{s:{s:s}, s:O}", "metadata", "resourceVersion", object->metadata.resource_version, "status",
                                  next);
        json_decref(now);
        json_decref(next);
        return patch;
}

static bool patch_send(struct subject *subject, const json_t *patch, enum kube_priority priority)
{
        static const struct kube_request_callbacks callbacks = { .done = on_written };
        const struct kube_metadata *metadata = &subject_known(subject)->object->metadata;
        const struct kube_object address = { SCALE_TO_ZERO_API, SCALE_TO_ZERO_RESOURCE, metadata->namespace, metadata->name,
                                             "status" };
        const struct kube_change change = { .priority = priority };
        int r = kube_patch(subject->controller->client, &address, KUBE_PATCH_MERGE, patch, &change, &callbacks, subject,
                           &subject->request);

        if (r < 0)
                request_failed(subject, r, "write its status");
        else
                request_begun(subject);
        return true;
}

bool status_write(struct subject *subject, const struct decide_input *input, const struct decision *decision)
{
        _cleanup_(json_decrefp) json_t *patch = NULL;
        /* While it wakes, clients wait for the endpoints. */
        bool urgent = decision->machine.phase == PHASE_WAKING || (decision->changed && decision->machine.phase == PHASE_AWAKE);
        struct draft draft;

        draft_fill(&draft, subject, input, decision);
        patch = patch_new(input->object, &draft.status);
        if (!patch)
                return false;
        if (!request_may_begin(subject, urgent))
                return true;
        free(subject->pending);
        subject->pending = malloc(sizeof(*subject->pending));
        if (!subject->pending) {
                request_failed(subject, -ENOMEM, "write its status");
                return true;
        }
        *subject->pending = *decision;
        return patch_send(subject, patch, urgent ? KUBE_PRIORITY_WAKE : KUBE_PRIORITY_NORMAL);
}

static bool remove_invalid(struct subject *subject, const struct scale_to_zero *object)
{
        struct target_state target;
        struct decision decision;

        if (subject->target)
                target_read(subject->target, &target);
        decide_unreadable(object, subject->target ? &target : NULL, &decision);
        return decision.scale == SCALE_UP ? scale_write(subject, &decision) : metadata_write(subject, &decision);
}

/* Whatever its phase was, it stays so until the spec can be read. */
bool status_write_invalid(struct subject *subject)
{
        const struct scale_to_zero *object = subject_known(subject)->object;
        _cleanup_(json_decrefp) json_t *patch = NULL;
        struct conditions conditions = { .n = 0 };
        struct draft draft = { .status = object->status };

        if (!controller_leads(subject->controller))
                return false;
        if (object->metadata.deleting)
                return remove_invalid(subject, object);
        conditions_add(&conditions, "Invalid", "Spec", "%s",
                       object->policy_problem ? object->policy_problem : "its target is not known");
        conditions_to_status(&conditions, object, now_realtime_ns(), draft.conditions);
        draft.status.conditions = draft.conditions;
        draft.status.n_conditions = conditions.n;
        draft.status.observed_generation = object->metadata.generation;
        patch = patch_new(object, &draft.status);
        return patch && request_may_begin(subject, false) && patch_send(subject, patch, KUBE_PRIORITY_NORMAL);
}
