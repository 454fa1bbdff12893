/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/agent_policy.h"
#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/event_log.h"

/* A demand that is no longer meant is taken out of the status by then. */
#define DROP_NS (500 * NSEC_PER_MSEC)

bool agent_policy_reports(const struct agent_policy *policy)
{
        return policy->phase == PHASE_SLEEPING || policy->phase == PHASE_ASLEEP ||
               (policy->phase == PHASE_WAKING && policy->failed);
}

void agent_policy_reach(struct agent_policy *policy, enum wake_step step, uint64_t at_ns)
{
        struct wake_story *wake = &policy->wake;

        if (wake->zero_ns == 0 || wake->reached_ns[step])
                return;
        wake->reached_ns[step] = at_ns;
        histogram_add(&policy->node->wake_steps[step], (double)(at_ns - MIN(wake->zero_ns, at_ns)) / NSEC_PER_SEC);
}

/* Without memory for its source a demand is one all the same. */
static void set_demand(struct agent_policy *policy)
{
        const struct flow *flow = &policy->wake.flow;
        char source[ENDPOINT_TEXT_MAX], *copy = NULL;

        if (flow->source_port)
                copy = strdup(endpoint_format(&flow->source, flow->source_port, source));
        free(policy->demand.source);
        policy->demand = (struct node_demand){
                .policy = policy->name,
                .epoch = policy->epoch,
                .first_realtime_ns = policy->wake.realtime_ns,
                .held = (uint32_t)holding_parked(policy->holding),
                .source = copy,
        };
}

/* Somebody wants it, and the controllers are to know. */
static void demand(struct agent_policy *policy)
{
        struct node *node = policy->node;

        set_demand(policy);
        if (!policy->has_demand)
                LIST_INSERT_HEAD(&node->demanded, policy, demanded);
        policy->has_demand = true;
        policy->demand_sent = false;
        policy->n_demands++;
        if (policy->phase == PHASE_SLEEPING && !policy->passed_on)
                policy->pass_on_ns = now_monotonic_ns() + PASS_ON_NS;
        agent_policy_withdraw(policy, "a first packet is held");
        node_report(node, true);
        agent_policy_arm_timer(policy);
}

static void drop_demand(struct agent_policy *policy)
{
        policy->has_demand = false;
        LIST_REMOVE(policy, demanded);
        node_report_at(policy->node, now_monotonic_ns() + DROP_NS);
}

static void begin_story(struct agent_policy *policy, const struct hold_demand *hold_demand)
{
        uint64_t now = now_monotonic_ns();

        policy->wake = (struct wake_story){
                .realtime_ns = now_realtime_ns() - (now - MIN(hold_demand->first_ns, now)),
                .zero_ns = hold_demand->first_ns,
                .flow = hold_demand->flow,
                .from_this_host = hold_demand->from_this_host,
        };
        agent_policy_reach(policy, WAKE_STEP_DETECTED, now);
}

static void tell_demand(struct agent_policy *policy, const struct hold_demand *hold_demand)
{
        char source[ENDPOINT_TEXT_MAX], frontend[FRONTEND_TEXT_MAX];

        event_log_add(policy->node->events, policy->name, "Demand", "a packet from %s to %s is held",
                      endpoint_format(&hold_demand->flow.source, hold_demand->flow.source_port, source),
                      frontend_format(&policy->plan->frontends[hold_demand->frontend], frontend));
}

void agent_policy_on_demand(struct agent_policy *policy, const struct hold_demand *hold_demand)
{
        policy->armed = false;
        if (!agent_policy_reports(policy)) {
                /* Woken from elsewhere: now this node has packets to release, too. */
                if (policy->phase == PHASE_WAKING && (policy->wake.zero_ns == 0 || policy->wake.reached_ns[WAKE_STEP_RELEASED]))
                        begin_story(policy, hold_demand);
                agent_policy_follow_endpoints(policy);
                return;
        }
        begin_story(policy, hold_demand);
        demand(policy);
        tell_demand(policy, hold_demand); /* after the request is on its way */
}

void agent_policy_follow_demand(struct agent_policy *policy)
{
        bool reports = agent_policy_reports(policy);

        if (policy->has_demand && (!reports || policy->demand.epoch != policy->epoch))
                drop_demand(policy);
        if (!policy->holding || !holding_is_started(policy->holding))
                return;
        if (!policy->armed) {
                holding_rearm(policy->holding);
                policy->armed = true;
        }
        /* What still waits from before has not been told for this. */
        if (reports && !policy->has_demand && holding_parked(policy->holding) > 0)
                demand(policy);
}

void agent_policy_on_reported(struct agent_policy *policy)
{
        agent_policy_reach(policy, WAKE_STEP_REPORTED, now_monotonic_ns());
}

void agent_policy_on_released(struct agent_policy *policy, uint64_t at_ns)
{
        agent_policy_reach(policy, WAKE_STEP_RELEASED, at_ns);
}

void agent_policy_on_answered(struct agent_policy *policy, uint64_t at_ns)
{
        if (policy->wake.zero_ns == 0 || policy->wake.reached_ns[WAKE_STEP_ANSWERED])
                return;
        agent_policy_reach(policy, WAKE_STEP_ANSWERED, at_ns);
        event_log_add(policy->node->events, policy->name, "Answered", "the first held connection was answered after %.1f ms",
                      (double)(at_ns - policy->wake.zero_ns) / NSEC_PER_MSEC);
}

void agent_policy_on_drained(struct agent_policy *policy)
{
        policy->drained = true;
        policy->expecting = false;
        policy->give_up_ns = 0;
        agent_policy_forget_endpoints(policy);
        agent_policy_arm_timer(policy);
}
