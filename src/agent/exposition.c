/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/activity.h"
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "agent/lease.h"
#include "agent/report.h"
#include "kube/reflector.h"
#include "serve/families.h"
#include "serve/gpu.h"

static void write_phases(struct metrics_writer *writer, const struct node *node)
{
        const struct agent_policy *policy, *next;
        unsigned counts[PHASE_MAX] = { 0 };

        HASH_ITER(by_name, node->policies, policy, next)
                counts[policy->phase]++;
        metrics_family(writer, "lull_policies");
        for (int phase = 0; phase < PHASE_MAX; phase++) {
                const char *labels[] = { "phase", phase_to_string(phase), NULL };

                metrics_sample(writer, labels, counts[phase]);
        }
}

static void write_wakes(struct metrics_writer *writer, const struct node *node)
{
        metrics_family(writer, "lull_node_wake_seconds");
        for (int step = 0; step < WAKE_STEP_MAX; step++) {
                const char *labels[] = { "step", wake_step_to_string(step), NULL };

                metrics_histogram(writer, labels, &node->wake_steps[step]);
        }
}

static void write_count(struct metrics_writer *writer, const char *family, const char *label, const char *value, uint64_t count)
{
        const char *labels[] = { label, value, NULL };

        if (family)
                metrics_family(writer, family);
        metrics_sample(writer, labels, (double)count);
}

static void write_counters(struct metrics_writer *writer, const struct agent *agent)
{
        const struct node_counters *counters = &agent->node.counters;
        const struct report_counters *report = report_counters(agent->node.report);
        const struct lease_counters *lease = lease_counters(agent->lease);

        write_count(writer, "lull_probes_total", "result", "passed", counters->probes_passed);
        write_count(writer, NULL, "result", "refused", counters->probes_refused);
        write_count(writer, "lull_votes_total", "vote", "quiet", counters->votes);
        write_count(writer, NULL, "vote", "withdrawn", counters->votes_withdrawn);
        write_count(writer, "lull_node_writes_total", "result", "written", report->writes);
        write_count(writer, NULL, "result", "failed", report->failures);
        write_count(writer, "lull_lease_renewals_total", "result", "renewed", lease->renewals);
        write_count(writer, NULL, "result", "failed", lease->failures);
        metrics_family(writer, "lull_demands_passed_on_total");
        metrics_sample(writer, NULL, (double)counters->passed_on);
}

struct policy_family {
        const char *name;
        double (*value)(const struct agent_policy *policy, const struct workload_snapshot *sum);
};

static double parked(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return policy->holding ? (double)holding_parked(policy->holding) : 0;
}

static double demands(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return (double)policy->n_demands;
}

static const struct policy_family policy_families[] = {
        { "lull_parked_packets", parked },
        { "lull_demands_total", demands },
};

static double connections(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return sum->connections;
}

static double connections_total(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return (double)sum->connections_total;
}

static double requests(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return sum->open_requests;
}

static double received_bytes(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return (double)sum->received_bytes;
}

static double sent_bytes(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return (double)sum->sent_bytes;
}

static double idle_seconds(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return (double)policy->verdict.idle_ns / 1e9;
}

static double cpu_cores(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return sum->cpu_millicores / 1e3;
}

static double idle_unknown(const struct agent_policy *policy, const struct workload_snapshot *sum)
{
        return policy->state == WORKLOAD_UNKNOWN;
}

static const struct policy_family workload_families[] = {
        /* of policies with pods here */
        { "lull_workload_connections", connections },     { "lull_workload_connections_total", connections_total },
        { "lull_workload_open_requests", requests },      { "lull_workload_received_bytes_total", received_bytes },
        { "lull_workload_sent_bytes_total", sent_bytes }, { "lull_workload_idle_seconds", idle_seconds },
        { "lull_workload_cpu_cores", cpu_cores },         { "lull_idle_unknown", idle_unknown },
};

static void write_sample(struct metrics_writer *writer, const struct policy_family *family, const struct agent_policy *policy)
{
        const char *labels[] = { "policy", policy->name, NULL };
        struct workload_snapshot sum;

        agent_policy_add_up(policy, &sum);
        metrics_sample(writer, labels, family->value(policy, &sum));
}

static void write_policies(struct metrics_writer *writer, const struct node *node)
{
        const struct agent_policy *policy, *next;

        for (size_t i = 0; i < ELEMENTSOF(policy_families); i++) {
                metrics_family(writer, policy_families[i].name);
                HASH_ITER(by_name, node->policies, policy, next)
                        write_sample(writer, &policy_families[i], policy);
        }
        for (size_t i = 0; i < ELEMENTSOF(workload_families); i++) {
                metrics_family(writer, workload_families[i].name);
                LIST_FOREACH(policy, &node->with_pods, with_pods)
                write_sample(writer, &workload_families[i], policy);
        }
}

static void write_watches(struct metrics_writer *writer, const struct node *node)
{
        metrics_family(writer, "lull_watch_stale");
        write_count(writer, NULL, "resource", "scaletozeros", kube_reflector_is_stale(node->objects));
        write_count(writer, NULL, "resource", "pods", kube_reflector_is_stale(node->pods));
}

static void write_programs(struct metrics_writer *writer, const struct node *node)
{
        json_t *programs = hold_programs(node->hold), *others = activity_programs(node->activity);

        json_array_extend(programs, others);
        write_program_families(writer, programs);
        json_decref(programs);
        json_decref(others);
}

int agent_metrics_text(struct agent *agent, char **ret_text)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *writer = NULL;
        struct node *node = &agent->node;
        struct agent_policy *policy;
        int r = metrics_writer_new(&writer);

        if (r < 0)
                return r;
        LIST_FOREACH(policy, &node->with_pods, with_pods)
        agent_policy_look(policy);

        write_daemon_families(writer, node->events);
        write_phases(writer, node);
        write_wakes(writer, node);
        write_counters(writer, agent);
        write_watches(writer, node);
        write_request_families(writer, agent->client);
        write_policies(writer, node);
        write_hold_families(writer, node->hold);
        write_programs(writer, node);
        if (node->gpu)
                write_gpu_families(writer, node->gpu);
        return metrics_writer_finish(writer, ret_text);
}
