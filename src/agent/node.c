/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node.h"

#include <assert.h>
#include <string.h>

#include "agent/agent_policy.h"
#include "agent/object.h"
#include "agent/report.h"
#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"

static const char *const wake_step_names[] = {
        [WAKE_STEP_DETECTED] = "detected", [WAKE_STEP_REPORTED] = "reported", [WAKE_STEP_ENDPOINT] = "endpoint",
        [WAKE_STEP_READY] = "ready",       [WAKE_STEP_RELEASED] = "released", [WAKE_STEP_ANSWERED] = "answered",
};
static_assert(ELEMENTSOF(wake_step_names) == WAKE_STEP_MAX, "every step has a name");

const char *wake_step_to_string(enum wake_step step)
{
        return wake_step_names[step];
}

void node_report(struct node *node, bool urgent)
{
        if (node->settled)
                report_changed(node->report, urgent);
}

void node_report_at(struct node *node, uint64_t at_ns)
{
        if (node->settled)
                report_changed_at(node->report, at_ns);
}

/* Up to where the maps reflect the policies. */
static uint64_t programmed_version(const struct node *node)
{
        const struct agent_policy *policy;
        const struct object *object;
        uint64_t version = node->version;

        LIST_FOREACH(policy, &node->unprogrammed, unprogrammed)
        version = MIN(version, policy->unprogrammed_version - 1);
        LIST_FOREACH(object, &node->unreadable, unreadable)
        version = MIN(version, object->unread_version - 1);
        return version;
}

/* It is followed only while a sleep waits for it: otherwise every change of any policy would be a write of every node. */
static uint64_t programmed(struct node *node)
{
        uint64_t version = programmed_version(node);

        if (node->sleeping_version > node->programmed && version > node->programmed) {
                node->programmed = version;
                node->programmed_ns = now_monotonic_ns();
        }
        return node->programmed;
}

static char *problem_of(const struct node *node)
{
        const struct agent_policy *policy = LIST_FIRST(&node->unprogrammed);
        const struct object *object = LIST_FIRST(&node->unreadable);
        char *problem = NULL;
        int r = 0;

        if (policy)
                r = asprintf(&problem, "the frontends of \"%s\" cannot be held on this node; its agent's log says why",
                             policy->name);
        else if (object)
                r = asprintf(&problem, "ScaleToZero \"%s\" cannot be read on this node: see %s; its agent's log says more",
                             object->name, object->unread_field);
        return r < 0 ? NULL : problem;
}

static size_t demands_of(struct node *node, struct node_demand *demands)
{
        struct agent_policy *policy;
        size_t n = 0;

        LIST_FOREACH(policy, &node->demanded, demanded)
        {
                if (n == NODE_ACTIVITY_DEMANDS_MAX)
                        break;
                demands[n++] = policy->demand;
                policy->demand_sent = true;
        }
        return n;
}

static uint32_t open_requests(const struct agent_policy *policy)
{
        const struct agent_pod *pod;
        uint32_t sum = 0;

        LIST_FOREACH(pod, &policy->pods, others)
        sum += pod->snapshot.open_requests;
        return sum;
}

static size_t workloads_of(struct node *node, struct node_workload *workloads)
{
        struct agent_policy *policy;
        size_t n = 0;

        LIST_FOREACH(policy, &node->with_pods, with_pods)
        {
                if (n == NODE_ACTIVITY_WORKLOADS_MAX)
                        break;
                workloads[n++] = (struct node_workload){
                        .policy = policy->name,
                        .state = policy->state,
                        .quiet_epoch = policy->quiet_epoch,
                        .since_realtime_ns = policy->state_since_ns,
                        .pods = policy->n_pods,
                        .open_requests = open_requests(policy),
                        .reason = policy->state == WORKLOAD_IDLE ? NULL : policy->verdict.reason,
                        .gpu = policy->gpu,
                };
        }
        return n;
}

static json_t *node_status(void *userdata)
{
        struct node *node = userdata;
        _cleanup_(freep) char *problem = problem_of(node);
        _cleanup_(freep) struct node_demand *demands = calloc(NODE_ACTIVITY_DEMANDS_MAX, sizeof(*demands));
        _cleanup_(freep) struct node_workload *workloads = calloc(NODE_ACTIVITY_WORKLOADS_MAX, sizeof(*workloads));
        struct node_activity activity;

        if (!demands || !workloads)
                return NULL;
        activity = (struct node_activity){
                .programmed = programmed(node),
                .demands = demands,
                .n_demands = demands_of(node, demands),
                .workloads = workloads,
                .n_workloads = workloads_of(node, workloads),
                .instance = node->instance,
                .problem = problem,
        };
        return node_activity_status_json(&activity);
}

static void on_written(void *userdata)
{
        struct node *node = userdata;
        struct agent_policy *policy;

        LIST_FOREACH(policy, &node->demanded, demanded)
        if (policy->demand_sent)
                agent_policy_on_reported(policy);
}

const struct report_callbacks node_report_callbacks = { .status = node_status, .written = on_written };
