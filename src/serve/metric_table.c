/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metric_table.h"

#include <assert.h>
#include <string.h>

#include "base/macros.h"

/* A label's values are bounded: by the number of policies, or by a table in the code. Never an address, a port or a process. */
const struct metric metric_table[] = {
        { "lull_build_info", METRIC_GAUGE, { "version" }, "Always 1; the label has the version of lulld." },
        { "lull_configuration_errors", METRIC_GAUGE, {}, "Policies left out because of an error when policies were last read." },
        { "lull_events_lost_total", METRIC_COUNTER, {}, "Events of the event log lost for want of memory." },

        { "lull_policies", METRIC_GAUGE, { "phase" }, "Policies in each phase." },
        { "lull_policy_phase", METRIC_GAUGE, { "policy", "phase" }, "1 for the phase that the policy is in, 0 for the others." },
        { "lull_policy_condition", METRIC_GAUGE, { "policy", "type" }, "1 for each condition that the policy has." },
        { "lull_transitions_total", METRIC_COUNTER, { "policy", "from", "to" }, "Changes of phase." },
        { "lull_asleep_seconds_total", METRIC_COUNTER, { "policy" }, "Time asleep: the replica-seconds saved." },

        { "lull_saved_replica_seconds_total",
          METRIC_COUNTER,
          { "policy" },
          "Time asleep times the replicas before, on Kubernetes, over all controllers that ever were." },

        { "lull_wakes_total",
          METRIC_COUNTER,
          { "policy", "cause" },
          "Wakes begun, by cause: packet, operator, started or deleted." },
        { "lull_wake_failures_total", METRIC_COUNTER, { "policy" }, "Wakes that were not ready within the hold timeout." },
        { "lull_wake_phase_seconds",
          METRIC_HISTOGRAM,
          { "phase" },
          "Time from the first packet of a wake until it was detected, requested, started, ready, released and answered." },

        { "lull_leader", METRIC_GAUGE, {}, "1 while this controller leads, else 0." },
        { "lull_agents", METRIC_GAUGE, { "state" }, "Agents by what their Leases say: fresh, unproven or silent." },
        { "lull_watch_stale", METRIC_GAUGE, { "resource" }, "1 while the view of a resource may be old, else 0." },
        { "lull_api_requests_total",
          METRIC_COUNTER,
          { "verb", "resource", "code" },
          "Requests to the API server; code 0 is for those without an answer." },

        { "lull_node_wake_seconds",
          METRIC_HISTOGRAM,
          { "step" },
          "Time from the first packet held on this node until it was detected and reported, an endpoint was known and ready, and the "
          "packet was released and answered." },
        { "lull_demands_total", METRIC_COUNTER, { "policy" }, "Demands that this node reported to the controllers." },
        { "lull_demands_passed_on_total",
          METRIC_COUNTER,
          {},
          "Demands during a sleep that no controller answered in time: their packets went on to the pods." },
        { "lull_votes_total", METRIC_COUNTER, { "vote" }, "Quiet votes of this node for a sleep, and those it took back." },
        { "lull_probes_total", METRIC_COUNTER, { "result" }, "Readiness probes that passed, and that could not be run." },
        { "lull_node_writes_total", METRIC_COUNTER, { "result" }, "Writes of this node's NodeActivity." },
        { "lull_lease_renewals_total", METRIC_COUNTER, { "result" }, "Renewals of this agent's Lease." },

        { "lull_hold_attached", METRIC_GAUGE, {}, "1 while the holding hooks are attached, else 0." },
        { "lull_hold_packets_total", METRIC_COUNTER, { "verdict", "reason" }, "First packets by what was done with them and why." },
        { "lull_parked_packets", METRIC_GAUGE, { "policy" }, "Packets parked now." },

        { "lull_workload_connections", METRIC_GAUGE, { "policy" }, "Served connections open now." },
        { "lull_workload_connections_total", METRIC_COUNTER, { "policy" }, "Served connections accepted." },
        { "lull_workload_open_requests", METRIC_GAUGE, { "policy" }, "Unanswered requests younger than the request timeout." },
        { "lull_workload_received_bytes_total", METRIC_COUNTER, { "policy" }, "Payload received on served connections." },
        { "lull_workload_sent_bytes_total", METRIC_COUNTER, { "policy" }, "Payload sent on served connections." },
        { "lull_workload_idle_seconds",
          METRIC_GAUGE,
          { "policy" },
          "How long the workload has been idle; 0 when busy or unknown." },
        { "lull_workload_cpu_cores", METRIC_GAUGE, { "policy" }, "CPU use over the last minute, in cores." },
        { "lull_idle_unknown", METRIC_GAUGE, { "policy" }, "1 while it cannot be known whether the workload is idle, else 0." },

        { "lull_gpu_utilization_ratio", METRIC_GAUGE, { "device" }, "The most that NVML saw a device used since the look before." },
        { "lull_gpu_memory_used_bytes", METRIC_GAUGE, { "device" }, "Memory in use on a device, as NVML says." },
        { "lull_gpu_power_watts", METRIC_GAUGE, { "device" }, "What a device draws, as NVML says." },
        { "lull_gpu_state",
          METRIC_GAUGE,
          { "workload", "state" },
          "1 for the state that the workload's GPUs are in together, 0 for the others." },
        { "lull_gpu_devices", METRIC_GAUGE, { "workload" }, "Devices that the workload has open." },
        { "lull_gpu_allocated_devices",
          METRIC_GAUGE,
          { "workload" },
          "Devices that Kubernetes allocated to the workload; none where that is not known." },
        { "lull_gpu_sources",
          METRIC_GAUGE,
          { "workload" },
          "Independent sources that speak of the workload's GPUs now; with fewer than two its idleness is unknown." },
        { "lull_gpu_idle_for_seconds",
          METRIC_GAUGE,
          { "workload" },
          "How long nothing has run for the workload, as far as two sources know; 0 when active or unknown." },
        { "lull_gpu_submissions_total",
          METRIC_COUNTER,
          { "workload" },
          "Launches, copies and the like that probes saw submitted; of a busy workload only samples are seen." },
        { "lull_gpu_allocated_seconds_total",
          METRIC_COUNTER,
          { "workload" },
          "GPU-seconds that the workload had devices open, or allocated to it." },
        { "lull_gpu_active_seconds_total",
          METRIC_COUNTER,
          { "workload" },
          "GPU-seconds of that in which they worked or began to." },
        { "lull_gpu_idle_seconds_total",
          METRIC_COUNTER,
          { "workload" },
          "GPU-seconds of that in which nothing had run for half a minute or longer, or that were not opened at all." },
        { "lull_gpu_unknown_seconds_total",
          METRIC_COUNTER,
          { "workload" },
          "GPU-seconds of that of which nothing certain is known." },
        { "lull_gpu_saved_seconds_total",
          METRIC_COUNTER,
          { "policy" },
          "GPU-seconds saved: time asleep times the devices that it had before. Of several controllers only the leader tells." },

        { "lull_bpf_program_runs_total",
          METRIC_COUNTER,
          { "program" },
          "Runs of each BPF program, while kernel.bpf_stats_enabled is 1." },
        { "lull_bpf_program_run_seconds_total",
          METRIC_COUNTER,
          { "program" },
          "Time spent in each BPF program, while kernel.bpf_stats_enabled is 1." },
};
const size_t metric_table_size = ELEMENTSOF(metric_table);

static_assert(ELEMENTSOF(metric_table) <= 64, "struct metrics_writer remembers the families written in 64 bits");

const struct metric *metric_find(const char *name)
{
        for (size_t i = 0; i < metric_table_size; i++)
                if (strcmp(metric_table[i].name, name) == 0)
                        return &metric_table[i];
        return NULL;
}

const char *metric_type_to_string(enum metric_type type)
{
        switch (type) {
        case METRIC_COUNTER:
                return "counter";
        case METRIC_GAUGE:
                return "gauge";
        case METRIC_HISTOGRAM:
                return "histogram";
        }
        return "untyped";
}
