/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/activity.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/families.h"
#include "serve/gpu.h"
#include "serve/metrics.h"
#include "standalone/manager.h"

/* A family with one sample a policy. */
struct policy_family {
        const char *name;
        double (*value)(const struct managed *managed);
};

static double seconds(uint64_t ns)
{
        return (double)ns / NSEC_PER_SEC;
}

static double asleep_seconds(const struct managed *managed)
{
        return seconds(managed_asleep_ns(managed, now_monotonic_ns()));
}

static double wake_failures(const struct managed *managed)
{
        return (double)managed->wake_failures;
}

static double parked(const struct managed *managed)
{
        return (double)holding_parked(managed->holding);
}

static double connections(const struct managed *managed)
{
        return managed->snapshot.connections;
}

static double connections_total(const struct managed *managed)
{
        return (double)managed->snapshot.connections_total;
}

static double open_requests(const struct managed *managed)
{
        return managed->snapshot.open_requests;
}

static double received_bytes(const struct managed *managed)
{
        return (double)managed->snapshot.received_bytes;
}

static double sent_bytes(const struct managed *managed)
{
        return (double)managed->snapshot.sent_bytes;
}

static double idle_seconds(const struct managed *managed)
{
        return seconds(managed->verdict.idle_ns);
}

static double cpu_cores(const struct managed *managed)
{
        return managed->snapshot.cpu_millicores / 1e3;
}

static double idle_unknown(const struct managed *managed)
{
        return managed->verdict.verdict == VERDICT_UNKNOWN;
}

static double gpu_saved(const struct managed *managed)
{
        return managed_gpu_saved_seconds(managed, now_monotonic_ns());
}

static const struct policy_family policy_families[] = {
        { "lull_asleep_seconds_total", asleep_seconds },
        { "lull_wake_failures_total", wake_failures },
        { "lull_parked_packets", parked },
        { "lull_workload_connections", connections },
        { "lull_workload_connections_total", connections_total },
        { "lull_workload_open_requests", open_requests },
        { "lull_workload_received_bytes_total", received_bytes },
        { "lull_workload_sent_bytes_total", sent_bytes },
        { "lull_workload_idle_seconds", idle_seconds },
        { "lull_workload_cpu_cores", cpu_cores },
        { "lull_idle_unknown", idle_unknown },
        { "lull_gpu_saved_seconds_total", gpu_saved },
};

static void write_policy_families(struct metrics_writer *writer, const struct manager *manager)
{
        for (size_t family = 0; family < ELEMENTSOF(policy_families); family++) {
                metrics_family(writer, policy_families[family].name);
                for (size_t i = 0; i < manager->n_policies; i++) {
                        const struct managed *managed = manager->policies[i];
                        const char *labels[] = { "policy", managed->policy->name, NULL };

                        metrics_sample(writer, labels, policy_families[family].value(managed));
                }
        }
}

static void write_phases(struct metrics_writer *writer, const struct manager *manager)
{
        metrics_family(writer, "lull_policies");
        for (int phase = 0; phase < PHASE_MAX; phase++) {
                const char *labels[] = { "phase", phase_to_string(phase), NULL };
                unsigned count = 0;

                for (size_t i = 0; i < manager->n_policies; i++)
                        count += manager->policies[i]->machine.phase == (enum phase)phase;
                metrics_sample(writer, labels, count);
        }

        metrics_family(writer, "lull_policy_phase");
        for (size_t i = 0; i < manager->n_policies; i++)
                for (int phase = 0; phase < PHASE_MAX; phase++) {
                        const struct managed *managed = manager->policies[i];
                        const char *labels[] = { "policy", managed->policy->name, "phase", phase_to_string(phase), NULL };

                        metrics_sample(writer, labels, managed->machine.phase == (enum phase)phase);
                }
}

static void write_conditions(struct metrics_writer *writer, const struct manager *manager)
{
        metrics_family(writer, "lull_policy_condition");
        for (size_t i = 0; i < manager->n_policies; i++)
                for (int type = 0; type < CONDITION_MAX; type++) {
                        const struct managed *managed = manager->policies[i];
                        const char *labels[] = { "policy", managed->policy->name, "type", condition_to_string(type), NULL };

                        if (managed->conditions[type].holds)
                                metrics_sample(writer, labels, 1);
                }
}

static void write_transitions(struct metrics_writer *writer, const struct manager *manager)
{
        metrics_family(writer, "lull_transitions_total");
        for (size_t i = 0; i < manager->n_policies; i++)
                for (int pair = 0; pair < PHASE_MAX * PHASE_MAX; pair++) {
                        const struct managed *managed = manager->policies[i];
                        int from = pair / PHASE_MAX, to = pair % PHASE_MAX;
                        const char *labels[] = { "policy", managed->policy->name, "from", phase_to_string(from),
                                                 "to",     phase_to_string(to),   NULL };

                        if (managed->transitions[from][to])
                                metrics_sample(writer, labels, (double)managed->transitions[from][to]);
                }
}

static void write_wakes(struct metrics_writer *writer, const struct manager *manager)
{
        metrics_family(writer, "lull_wakes_total");
        for (size_t i = 0; i < manager->n_policies; i++)
                for (int cause = CAUSE_PACKET; cause <= CAUSE_STARTED; cause++) {
                        const struct managed *managed = manager->policies[i];
                        const char *labels[] = { "policy", managed->policy->name, "cause", cause_to_string(cause), NULL };

                        metrics_sample(writer, labels, (double)managed->wakes[cause]);
                }

        metrics_family(writer, "lull_wake_phase_seconds");
        for (int phase = 0; phase < WAKE_PHASE_MAX; phase++) {
                const char *labels[] = { "phase", wake_phase_to_string(phase), NULL };

                metrics_histogram(writer, labels, &manager->context.wake_phases[phase]);
        }
}

static void write_programs(struct metrics_writer *writer, const struct manager *manager)
{
        json_t *programs = hold_programs(manager->context.hold), *others = activity_programs(manager->context.activity);

        json_array_extend(programs, others);
        write_program_families(writer, programs);
        json_decref(programs);
        json_decref(others);
}

int manager_metrics_text(struct manager *manager, char **ret_text)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *writer = NULL;
        int r;

        r = metrics_writer_new(&writer);
        if (r < 0)
                return r;

        for (size_t i = 0; i < manager->n_policies; i++)
                if (manager->policies[i]->machine.phase == PHASE_AWAKE)
                        managed_look(manager->policies[i]);

        write_daemon_families(writer, manager->context.events);
        metrics_family(writer, "lull_configuration_errors");
        metrics_sample(writer, NULL, (double)manager->n_configuration_errors);
        write_phases(writer, manager);
        write_conditions(writer, manager);
        write_transitions(writer, manager);
        write_wakes(writer, manager);
        write_policy_families(writer, manager);
        write_gpu_families(writer, manager->context.gpu);
        write_hold_families(writer, manager->context.hold);
        write_programs(writer, manager);
        return metrics_writer_finish(writer, ret_text);
}
