/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/veto.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"

enum { NAMES_TEXT_MAX = 256 };

static bool veto_owner(const struct decide_input *input, struct conditions *conditions)
{
        const struct cluster_settings *cluster = &input->object->policy->cluster;
        size_t before = conditions->n;

        if (input->rival)
                conditions_add(conditions, "Conflict", "SameTarget",
                               "policy \"%s\" has the same target and is older, so this one does nothing; delete one of the two",
                               input->rival);
        if (cluster->scaled_by == SCALED_BY_AUTOSCALER)
                conditions_add(
                        conditions, "Unsupported", "ScaledByAutoscaler",
                        "spec.scaledBy: HorizontalPodAutoscaler is not supported yet, so it stays awake; remove the autoscaler "
                        "and write Lull");
        else if (input->autoscaler)
                conditions_add(
                        conditions, "Autoscaled", "HorizontalPodAutoscaler",
                        "HorizontalPodAutoscaler \"%s\" scales the same target, which has one owner only, so it stays awake; "
                        "delete the autoscaler or this policy",
                        input->autoscaler);
        return conditions->n > before;
}

static bool veto_target(const struct target_state *target)
{
        return target->problem || !target->known || target->stale || !target->exists;
}

static bool veto_resolution(const struct resolution *resolution, struct conditions *conditions)
{
        if (!resolution)
                return true;
        for (size_t i = 0; i < resolution->n_problems; i++)
                conditions_add(conditions, resolution->problems[i].type, resolution->problems[i].reason, "%s",
                               resolution->problems[i].message);
        return !resolution->can_sleep;
}

static void name_nodes(const struct evidence *evidence, char text[static NAMES_TEXT_MAX])
{
        size_t named = MIN(evidence->n_missing, (size_t)EVIDENCE_MISSING_MAX), length = 0;

        text[0] = '\0';
        for (size_t i = 0; i < named && length < NAMES_TEXT_MAX; i++)
                length += (size_t)snprintf(text + length, NAMES_TEXT_MAX - length, "%s%s", i ? ", " : "", evidence->missing[i]);
        if (evidence->n_missing > named && length < NAMES_TEXT_MAX)
                snprintf(text + length, NAMES_TEXT_MAX - length, " and %zu more", evidence->n_missing - named);
}

static bool veto_agents(const struct decide_input *input, struct conditions *conditions)
{
        char names[NAMES_TEXT_MAX];

        if (input->evidence->n_missing == 0 || (input->machine->phase != PHASE_AWAKE && input->machine->phase != PHASE_SLEEPING))
                return false;
        name_nodes(input->evidence, names);
        conditions_add(
                conditions, "AgentsMissing", "NotAlive",
                "its pods run on nodes without a living agent, so nobody knows whether it is idle: %s; see the pods of DaemonSet "
                "lull-agent there",
                names);
        return true;
}

bool veto_conditions(const struct decide_input *input, struct conditions *conditions)
{
        bool vetoed = veto_owner(input, conditions);

        vetoed |= veto_target(input->target);
        vetoed |= veto_resolution(input->resolution, conditions);
        vetoed |= veto_agents(input, conditions);
        return vetoed || !input->current;
}

static void add_blocked(const struct decide_input *input, struct conditions *conditions)
{
        const struct evidence *evidence = input->evidence;
        unsigned seconds = (unsigned)(DECIDE_SLEEPING_MAX_NS / NSEC_PER_SEC);

        if (!evidence->programmed)
                conditions_add(
                        conditions, "SleepBlocked", "NotAcknowledged",
                        "node %s did not acknowledge within %u s that it holds first packets; see its pod of DaemonSet lull-agent",
                        evidence->unprogrammed_node, seconds);
        else if (!evidence->quiet && evidence->unquiet_node && evidence->busy_reason &&
                 strcmp(evidence->busy_node, evidence->unquiet_node) == 0)
                conditions_add(conditions, "SleepBlocked", "NotQuiet", "node %s saw it at work: %s", evidence->unquiet_node,
                               evidence->busy_reason);
        else if (!evidence->quiet && evidence->unquiet_node)
                conditions_add(conditions, "SleepBlocked", "NotQuiet",
                               "node %s saw it at work, or did not say within %u s that it is not", evidence->unquiet_node,
                               seconds);
        else
                conditions_add(conditions, "SleepBlocked", "NotStopped", "its target could not be scaled to zero within %u s",
                               seconds);
}

static void blocked_condition(const struct decide_input *input, struct decision *decision)
{
        enum phase phase = decision->machine.phase;

        if (decision->blocked)
                add_blocked(input, &decision->conditions);
        else if (phase == PHASE_SLEEPING || (phase == PHASE_AWAKE && input->evidence->idle))
                conditions_keep(&decision->conditions, &input->object->status, "SleepBlocked");
}

static void add_wake_failed(const struct decide_input *input, struct decision *decision)
{
        char timeout[DURATION_TEXT_MAX];
        const char *reason = input->diagnosis_reason, *message = input->diagnosis;

        duration_format(input->object->policy->wake.hold_timeout_ns, timeout);
        if (!reason) {
                reason = input->target->failure ? "CannotCreatePods" : "NotReady";
                message = input->target->failure ? input->target->failure : "none of its pods is ready";
        }
        conditions_add(&decision->conditions, "WakeFailed", reason, "not ready within %s: %s", timeout, message);
}

static void failed_condition(const struct decide_input *input, struct decision *decision)
{
        const struct status_condition *before = status_find_condition(&input->object->status, "WakeFailed");

        if (decision->machine.phase == PHASE_AWAKE || decision->machine.phase == PHASE_SLEEPING)
                return;
        if (decision->wake_failed || (before && before->holds && input->diagnosis_reason))
                add_wake_failed(input, decision);
        else
                conditions_keep(&decision->conditions, &input->object->status, "WakeFailed");
}

static void flapping_condition(const struct decide_input *input, struct decision *decision)
{
        const char *source = decision->woken && input->evidence->demand ? input->evidence->demand->source
                                                                        : input->object->status.last_wake.source;
        const char *colon = source ? strrchr(source, ':') : NULL;
        char after[DURATION_TEXT_MAX];

        if (decision->idle_factor <= 1)
                return;
        if (decision->idle_factor == input->object->status.idle_factor &&
            conditions_keep(&decision->conditions, &input->object->status, "Flapping"))
                return;
        duration_format(input->object->policy->idle.after_ns * decision->idle_factor, after);
        conditions_add(
                &decision->conditions, "Flapping", "WokenAtOnce",
                "%.*s wakes it right after it was put to sleep, again and again; so it sleeps after %s without activity, %u times "
                "spec.idle.after",
                colon ? (int)(colon - source) : 0, source ? source : "", after, decision->idle_factor);
}

void gpu_condition(const struct decide_input *input, struct decision *decision)
{
        const struct gpu_settings *gpu = &input->object->policy->idle.gpu;
        char after[DURATION_TEXT_MAX];

        if (decision->machine.phase == PHASE_AWAKE && gpu->on_idle == GPU_ON_IDLE_REPORT && input->evidence->only_gpu_report)
                conditions_add(&decision->conditions, "GpuIdle", "Report",
                               "neither clients nor its GPU have needed it for %s; with idle.gpu.onIdle: Sleep it would sleep",
                               duration_format(gpu->after_ns, after));
}

void lasting_conditions(const struct decide_input *input, struct decision *decision)
{
        blocked_condition(input, decision);
        failed_condition(input, decision);
        flapping_condition(input, decision);
        if (input->parking_message && decision->machine.phase != PHASE_AWAKE)
                conditions_add(&decision->conditions, "NotParked", input->parking_reason ? input->parking_reason : "CannotWrite",
                               "%s", input->parking_message);
        if (input->ignores_too_many)
                conditions_add(
                        &decision->conditions, "IgnoredTruncated", "TooManyPods",
                        "the selectors of spec.ignore mean more than %d addresses, of which only so many are ignored; make them "
                        "narrower, or name networks",
                        STATUS_IGNORED_MAX);
        if (input->object->policy->dry_run && decision->machine.phase == PHASE_AWAKE && input->evidence->idle)
                conditions_add(&decision->conditions, "DryRun", "WouldSleep",
                               "it is idle; without spec.dryRun it would be put to sleep now");
}
