/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/evidence.h"

#include <string.h>

struct gathering {
        const struct evidence_question *question;
        struct evidence *evidence;
};

static void name_busy(struct evidence *evidence, const char *node, const char *reason, bool unknown)
{
        evidence->idle = false;
        if (evidence->busy_node)
                return;
        evidence->busy_node = node;
        evidence->busy_reason = reason;
        evidence->busy_is_unknown = unknown;
}

static void say_busy(struct evidence *evidence, const char *node, const char *reason, bool unknown)
{
        evidence->only_gpu_report = false;
        name_busy(evidence, node, reason, unknown);
}

/* What a vouched agent says that is not Idle. */
static void say_not_idle(struct evidence *evidence, const char *node, const struct node_workload *workload)
{
        if (workload->state == WORKLOAD_ACTIVE && workload->gpu.would_sleep)
                name_busy(evidence, node, workload->reason, false);
        else
                say_busy(evidence, node, workload->reason, workload->state == WORKLOAD_UNKNOWN);
}

static void say_unquiet(struct evidence *evidence, const char *node)
{
        evidence->quiet = false;
        if (!evidence->unquiet_node)
                evidence->unquiet_node = node;
}

/* What is written is a process's that is no more: its successor is yet to speak, and may hold nothing yet. */
static void say_anew(struct evidence *evidence, const char *node)
{
        say_busy(evidence, node, "its agent has started anew, and has not said anything yet", true);
        say_unquiet(evidence, node);
}

static const struct node_workload *workload_of(const struct gathering *gathering, const struct agent_view *agent)
{
        return agent->activity ? node_activity_find_workload(agent->activity, gathering->question->policy) : NULL;
}

static void read_workload(struct gathering *gathering, const struct agent_view *agent, uint32_t pods)
{
        struct evidence *evidence = gathering->evidence;
        const struct node_workload *workload = workload_of(gathering, agent);

        if (agent->freshness == AGENT_STALE) {
                if (evidence->n_missing < EVIDENCE_MISSING_MAX)
                        evidence->missing[evidence->n_missing] = agent->node;
                evidence->n_missing++;
        }
        if (agent->freshness != AGENT_FRESH) {
                say_busy(evidence, agent->node, "its agent has not been heard of lately", true);
                say_unquiet(evidence, agent->node);
                return;
        }
        if (workload && !agent->vouched) {
                say_anew(evidence, agent->node);
                return;
        }
        evidence->gpus += workload ? workload->gpu.devices : 0;
        if (!workload)
                say_busy(evidence, agent->node, NULL, true);
        else if (workload->state != WORKLOAD_IDLE)
                say_not_idle(evidence, agent->node, workload);
        if (workload && workload->pods < pods)
                say_busy(evidence, agent->node, "its agent has not seen all of the pods there yet", true);
        if (!workload || workload->pods < pods || workload->quiet_epoch != gathering->question->epoch)
                say_unquiet(evidence, agent->node);
}

/* EndpointSlices may be late, or leave out pods that are not to be had by any Service: their agents see those as well. */
static int read_elsewhere(const struct agent_view *agent, void *userdata)
{
        struct gathering *gathering = userdata;
        const struct node_workload *workload = workload_of(gathering, agent);

        if (!workload || agent->freshness == AGENT_STALE)
                return 0;
        if (!agent->vouched) {
                say_anew(gathering->evidence, agent->node);
                return 0;
        }
        if (workload->state != WORKLOAD_IDLE)
                say_not_idle(gathering->evidence, agent->node, workload);
        if (workload->quiet_epoch != gathering->question->epoch)
                say_unquiet(gathering->evidence, agent->node);
        return 0;
}

static void read_demand(struct gathering *gathering, const struct agent_view *agent)
{
        struct evidence *evidence = gathering->evidence;
        const struct node_demand *demand = node_activity_find_demand(agent->activity, gathering->question->policy);

        if (!demand || demand->epoch != gathering->question->epoch)
                return;
        if (evidence->demand && evidence->demand->first_realtime_ns <= demand->first_realtime_ns)
                return;
        evidence->demand = demand;
        evidence->demand_node = agent->node;
}

static void read_programmed(struct gathering *gathering, const struct agent_view *agent)
{
        struct evidence *evidence = gathering->evidence;

        if (agent->freshness == AGENT_STALE)
                return;
        if (agent->vouched && agent->activity && agent->activity->programmed >= gathering->question->version)
                return;
        evidence->programmed = false;
        if (!evidence->unprogrammed_node)
                evidence->unprogrammed_node = agent->node;
}

static int read_agent(const struct agent_view *agent, void *userdata)
{
        struct gathering *gathering = userdata;

        if (gathering->question->who_asks && agent->activity)
                read_demand(gathering, agent);
        if (gathering->question->who_has_programmed)
                read_programmed(gathering, agent);
        return 0;
}

void evidence_gather(const struct agents *agents, const struct evidence_question *question, uint64_t now_ns,
                     struct evidence *ret_evidence)
{
        bool any = question->n_nodes > 0;
        struct evidence evidence = { .idle = any, .only_gpu_report = any, .quiet = any, .programmed = true };
        struct gathering gathering = { question, &evidence };

        evidence.pods_are_missing = question->running < question->wanted;
        evidence.none_is_ready = question->wanted > 0 && question->n_ready == 0;
        if (evidence.pods_are_missing || evidence.none_is_ready)
                evidence.idle = evidence.only_gpu_report = false;
        for (size_t i = 0; i < question->n_nodes; i++) {
                const struct agent_view agent = agents_get(agents, question->nodes[i], now_ns);

                read_workload(&gathering, &agent, question->pods[i]);
        }
        if (evidence.idle || evidence.only_gpu_report || evidence.quiet) /* else nobody could change it */
                agents_each(agents, now_ns, read_elsewhere, &gathering);
        evidence.only_gpu_report = evidence.only_gpu_report && !evidence.idle;
        if (question->who_asks || question->who_has_programmed)
                agents_each(agents, now_ns, read_agent, &gathering);
        *ret_evidence = evidence;
}
