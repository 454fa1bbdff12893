/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"

static void on_pods(void *userdata)
{
        struct subject *subject = userdata;

        subject->resolution_is_old = true;
        subject_is_due(subject, true);
}

/* Where the kubelet's Ready alone decides, nobody asks for probes. */
static void follow_pods(struct subject *subject, const struct target_state *target)
{
        const struct controller *controller = subject->controller;
        const struct policy *policy = subject_known(subject)->object->policy;
        bool waits = subject->machine.phase == PHASE_WAKING ||
                     (subject->machine.phase == PHASE_AWAKE && now_monotonic_ns() < subject->endpoints_until_ns);
        bool wanted = waits && controller_leads(controller) && target->known && target->exists && target->selector &&
                      *target->selector && policy->cluster.readiness == READINESS_PROBE;
        int r;

        if (!wanted)
                subject->pods = pods_free(subject->pods);
        if (!wanted || subject->pods)
                return;
        r = pods_new(controller->client, subject->area->namespace, target->selector, on_pods, subject, &subject->pods);
        if (r < 0)
                log_error("policy \"%s\": cannot watch its pods: %s", subject->key, strerror(-r));
}

/* A new resolution, once all it is made of is known; the last one stays where memory is missing. */
static void refresh_resolution(struct subject *subject, const struct target_state *target)
{
        const struct controller *controller = subject->controller;
        struct resolve_probe probes[PODS_PROBES_MAX];
        const struct resolve_input input = {
                .object = subject_known(subject)->object,
                .services = (const struct kube_service *const *)subject->area->services.items,
                .n_services = subject->area->services.n,
                .slices = (const struct kube_endpoint_slice *const *)subject->area->slices.items,
                .n_slices = subject->area->slices.n,
                .target = target,
                .probes = probes,
                .n_probes = pods_probes(subject->pods, probes),
                .leftovers = subject->leftovers_until_ns ? subject->leftovers : NULL, /* at zero it counts that some look alive */
        };
        struct resolution *resolution;
        int r;

        if (!subject->resolution_is_old || (!target->known && !target->problem) ||
            !views_have_synced(controller, VIEW_SERVICES, VIEW_SLICES))
                return;
        r = park_resolve(subject, &input, &resolution);
        if (r < 0) {
                log_error("policy \"%s\": cannot resolve its Services: %s", subject->key, strerror(-r));
                return;
        }
        resolution_free(subject->resolution);
        subject->resolution = resolution;
        subject->resolution_is_old = subject->parking_is_unknown;
}

/* Somebody else has written, or it is the first look: the machine is as the status says. */
static void follow_status(struct subject *subject, uint64_t now_ns)
{
        const struct scale_to_zero *object = subject_known(subject)->object;
        const struct scale_to_zero_status *status = &object->status;

        if (status->phase == PHASE_SLEEPING && (subject->sleeping_version == 0 || status->epoch != subject->epoch))
                subject->sleeping_version = version_number(object->metadata.resource_version);
        if (status->phase != PHASE_SLEEPING)
                subject->sleeping_version = 0;
        if (status->epoch == subject->epoch && status->phase == subject->machine.phase &&
            status->holding == phase_holds(&subject->machine))
                return;

        decide_seed(object, now_ns, now_realtime_ns(), &subject->machine);
        subject->epoch = status->epoch;
        subject->has_been_up = false;
        subject->woke = false;
        subject->scale_again_ns = 0;
        subject->endpoints_until_ns = 0;
        if (status->phase == PHASE_AWAKE && status->n_endpoints > 0)
                subject->endpoints_until_ns = subject->machine.since_ns + ENDPOINTS_KEPT_NS;
}

static void forget_leftovers(struct subject *subject)
{
        subject->leftovers = leftovers_free(subject->leftovers);
        subject->leftovers_until_ns = 0;
        subject->resolution_is_old = true;
}

static void take_leftovers(struct subject *subject)
{
        const struct pointers *slices = &subject->area->slices;
        int r;

        forget_leftovers(subject);
        r = leftovers_take(&subject->reference, (const struct kube_endpoint_slice *const *)slices->items, slices->n,
                           &subject->leftovers);
        if (r < 0)
                log_error("policy \"%s\": cannot remember its pods: %s", subject->key, strerror(-r));
}

static void follow_leftovers(struct subject *subject, const struct target_state *target, uint64_t now_ns)
{
        if (!subject->leftovers)
                return;
        if (subject->leftovers_until_ns == 0 && target->replicas > 0) {
                subject->leftovers_until_ns = now_ns + LEFTOVERS_KEPT_NS;
                subject->resolution_is_old = true;
        } else if (subject->leftovers_until_ns && now_ns >= subject->leftovers_until_ns) {
                forget_leftovers(subject);
        }
}

/* Once all of them are gone before anybody wakes it, there is nothing to remember. */
static void check_leftovers(struct subject *subject)
{
        if (subject->leftovers && subject->leftovers_until_ns == 0 && subject->resolution && !subject->resolution_is_old &&
            subject->resolution->n_ready == 0)
                subject->leftovers = leftovers_free(subject->leftovers);
}

static void follow_replicas(struct subject *subject, const struct target_state *target, uint64_t now_ns)
{
        if (!target->known || !target->exists)
                return;
        if (target->replicas > 0) {
                subject->replicas_seen = target->replicas;
                subject->zero_since_ns = 0;
                subject->has_been_up = true;
        } else if (subject->zero_since_ns == 0) {
                subject->zero_since_ns = now_ns;
                take_leftovers(subject);
        }
        follow_leftovers(subject, target, now_ns);
}

static void gather(struct subject *subject, const struct target_state *target, uint64_t now_ns, struct evidence *ret_evidence)
{
        const struct scale_to_zero *object = subject_known(subject)->object;
        const struct resolution *resolution = subject->resolution;
        const struct evidence_question question = {
                .policy = subject->key,
                .epoch = object->status.epoch,
                .version = subject->sleeping_version,
                .nodes = resolution ? resolution->nodes : NULL,
                .pods = resolution ? resolution->node_pods : NULL,
                .n_nodes = resolution ? resolution->n_nodes : 0,
                .wanted = target->known && target->exists ? target->replicas : 0,
                .running = resolution ? resolution->n_pods : 0,
                .n_ready = resolution ? resolution->n_ready : 0,
                .who_asks = subject->machine.phase != PHASE_AWAKE,
                .who_has_programmed = subject->machine.phase == PHASE_SLEEPING,
        };

        evidence_gather(subject->controller->agents, &question, now_ns, ret_evidence);
        if (!ret_evidence->demand)
                subject->demand_since_ns = 0;
        else if (subject->demand_since_ns == 0)
                subject->demand_since_ns = now_ns;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        subject_is_due(userdata, false);
        return 0;
}

static void look_at(struct subject *subject, uint64_t at_ns)
{
        int r = 0;

        if (at_ns == 0) {
                if (subject->timer)
                        sd_event_source_set_enabled(subject->timer, SD_EVENT_OFF);
                return;
        }
        if (!subject->timer)
                r = sd_event_add_time(subject->controller->event, &subject->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer,
                                      subject);
        if (r >= 0)
                r = sd_event_source_set_time(subject->timer, at_ns / NSEC_PER_USEC + 1);
        if (r >= 0)
                r = sd_event_source_set_enabled(subject->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_error("policy \"%s\": cannot set its timer: %s", subject->key, strerror(-r));
}

static void want_round(struct subject *subject, const struct decision *decision)
{
        struct controller *controller = subject->controller;
        size_t nodes = agents_count(controller->agents, AGENT_FRESH, now_monotonic_ns());
        uint64_t period_ns = (nodes + ROUND_NODES - 1) / ROUND_NODES * NSEC_PER_SEC;
        uint64_t next_ns = controller->round_ns + period_ns;
        int enabled;

        if (decision->wants_round && !subject->wants_round)
                subject->resolution_is_old = true; /* it is to say where it is parked */
        subject->wants_round = decision->wants_round;
        if (!decision->wants_round || sd_event_source_get_enabled(controller->round_timer, &enabled) > 0)
                return;
        sd_event_source_set_time(controller->round_timer, MAX(next_ns, now_monotonic_ns()) / NSEC_PER_USEC);
        sd_event_source_set_enabled(controller->round_timer, SD_EVENT_ONESHOT);
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
        if (a_ns == 0 || b_ns == 0)
                return MAX(a_ns, b_ns);
        return MIN(a_ns, b_ns);
}

static void note_decision(struct subject *subject, const struct decision *decision)
{
        if (!decision->changed)
                subject->machine = decision->machine;
        if (decision->refused && decision->clear_sleep)
                tell(subject, KUBE_EVENT_WARNING, "SleepRefused", "Sleep", "annotation lull.dev/sleep: %s", decision->refused);
}

/* One thing at a time: what has to come first is looked at first. */
static bool carry_out(struct subject *subject, const struct decide_input *input, const struct decision *decision)
{
        bool parked, scales;

        /* Clients wait for what agents read there; what is parked no longer can wait for the answer. */
        if (subject->machine.phase == PHASE_WAKING && decision->scale == SCALE_NOT && decision->write &&
            status_write(subject, input, decision))
                return true;
        parked = park_write(subject, decision);
        scales = decision->scale == SCALE_UP || (decision->scale == SCALE_DOWN && parked);
        /* What agents are to hold once nobody answers, they are told before, and acknowledge. */
        if (decision->scale == SCALE_DOWN && decision->write && status_write(subject, input, decision))
                return true;
        if (scales && !decision->changed && scale_write(subject, decision))
                return true;
        if (decision->write && status_write(subject, input, decision))
                return true;
        return metadata_write(subject, decision);
}

/* What has not gone on for an old view goes on now: not every watch tells all policies that it is current again. */
static bool is_current(struct controller *controller)
{
        bool current = views_are_current(controller);

        if (current && !controller->was_current)
                subjects_are_due(controller);
        controller->was_current = current;
        return current;
}

static const char *parking_message(const struct subject *subject)
{
        const char *problem = parking_keeper_problem(subject->controller->parking, subject->key);

        return problem ? problem : subject->parking_message;
}

static bool ignores_too_many(const struct subject *subject)
{
        struct prefix prefixes[STATUS_IGNORED_MAX];
        size_t n;

        return subject->ignores && ignored_list(subject->ignores, prefixes, &n) == -ENOSPC;
}

/* While a wake has failed, and goes on. One that failed before this replica led is looked at as well. */
static uint64_t diagnose_wake(struct subject *subject, const struct target_state *target, const struct decision *decision,
                              uint64_t now_ns)
{
        bool fails = decision->from == PHASE_WAKING && decision->machine.phase == PHASE_WAKING && decision->machine.failures > 0;

        if (!fails || !controller_leads(subject->controller))
                subject->diagnosis = diagnosis_free(subject->diagnosis);
        else if (decision->wake_failed || !subject->diagnosis)
                diagnosis_begin(subject, now_ns);
        return diagnosis_go_on(subject, target, now_ns);
}

static void decide_and_act(struct subject *subject, const struct target_state *target, uint64_t now_ns)
{
        struct controller *controller = subject->controller;
        struct decision decision;
        struct evidence evidence;
        uint64_t again_ns;

        gather(subject, target, now_ns, &evidence);
        const struct decide_input input = {
                .object = subject_known(subject)->object,
                .machine = &subject->machine,
                .resolution = subject->resolution,
                .target = target,
                .evidence = &evidence,
                .rival = area_rival(subject),
                .autoscaler = area_autoscaler(subject),
                .parking_reason = subject->parking_reason,
                .parking_message = parking_message(subject),
                .diagnosis_reason = diagnosis_reason(subject->diagnosis),
                .diagnosis = diagnosis_message(subject->diagnosis),
                .now_ns = now_ns,
                .now_realtime_ns = now_realtime_ns(),
                .demand_since_ns = subject->demand_since_ns,
                .zero_since_ns = subject->zero_since_ns,
                .blocked_until_ns = subject->blocked_until_ns,
                .replicas_seen = subject->replicas_seen,
                .ignores_too_many = ignores_too_many(subject),
                .leader = controller_leads(controller),
                .current = is_current(controller),
                .round = controller->round && subject->wants_round,
                .has_been_up = subject->has_been_up,
                .woke = subject->woke,
        };

        decide(&input, &decision);
        note_decision(subject, &decision);
        again_ns = sooner(decision.again_ns, subject->endpoints_until_ns > now_ns ? subject->endpoints_until_ns : 0);
        again_ns = sooner(again_ns, subject->leftovers_until_ns);
        if (subject->scale_again_ns > now_ns && decision.scale != SCALE_NOT)
                again_ns = sooner(again_ns, subject->scale_again_ns);
        if (!carry_out(subject, &input, &decision))
                want_round(subject, &decision);
        look_at(subject, sooner(again_ns, diagnose_wake(subject, target, &decision, now_ns)));
}

void subject_look(struct subject *subject)
{
        const struct scale_to_zero *object = subject_known(subject)->object;
        uint64_t now_ns = now_monotonic_ns();
        struct target_state target;

        if (subject->busy)
                return; /* it is looked at again when the request is over */
        if (subject->controller->stopping || !views_have_synced(subject->controller, VIEW_POLICIES, VIEW_POLICIES))
                return;
        if (subject->retry_ns > now_ns) {
                look_at(subject, subject->retry_ns);
                return;
        }
        if (!object->policy || !subject->target) {
                status_write_invalid(subject);
                return;
        }
        target_read(subject->target, &target);
        follow_status(subject, now_ns);
        follow_replicas(subject, &target, now_ns);
        follow_pods(subject, &target);
        park_release(subject);
        refresh_resolution(subject, &target);
        check_leftovers(subject);
        decide_and_act(subject, &target, now_ns);
}
