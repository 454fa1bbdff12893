/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"
#include "base/time.h"

static int read_totals(const struct workload *workload, struct activity_totals *ret_totals)
{
        _cleanup_(freep) struct activity_totals *totals = calloc((size_t)workload->activity->n_cpus, sizeof(*totals));
        struct activity_totals sum = {};

        if (!totals)
                return -ENOMEM;
        if (bpf_map_lookup_elem(bpf_map__fd(workload->activity->programs->maps.activity_totals), &workload->config.cgroup, totals) <
            0)
                return -errno;

        for (int i = 0; i < workload->activity->n_cpus; i++) {
                sum.last_ns = MAX(sum.last_ns, totals[i].last_ns);
                sum.outbound_last_ns = MAX(sum.outbound_last_ns, totals[i].outbound_last_ns);
                sum.received_bytes += totals[i].received_bytes;
                sum.sent_bytes += totals[i].sent_bytes;
                sum.connections += totals[i].connections;
                sum.untracked_ns = MAX(sum.untracked_ns, totals[i].untracked_ns);
        }
        *ret_totals = sum;
        return 0;
}

int workload_read_totals(struct workload *workload, struct workload_snapshot *ret_snapshot)
{
        struct workload_snapshot snapshot = { .read_ns = now_monotonic_ns() };
        struct activity_totals totals = {};
        uint64_t usage;
        int r;

        r = cpu_read_usage(workload->cgroup_fd, &usage);
        if (r < 0)
                return r;
        cpu_history_add(&workload->cpu, usage, workload->after_ns, snapshot.read_ns, &snapshot.cpu_millicores,
                        &snapshot.cpu_window_ns);
        r = read_totals(workload, &totals);
        if (r < 0)
                return r;

        snapshot.last_ns = MAX(totals.last_ns, workload->outbound_counts ? totals.outbound_last_ns : 0);
        snapshot.last_ns = MAX(snapshot.last_ns, totals.untracked_ns);
        if (snapshot.last_ns)
                snapshot.last_ns += workload->activity->tick_ns;
        snapshot.received_bytes = totals.received_bytes;
        snapshot.sent_bytes = totals.sent_bytes;
        snapshot.connections_total = totals.connections;
        snapshot.untracked_ns = totals.untracked_ns;
        *ret_snapshot = snapshot;
        return 0;
}

/* What has a request that nobody knows of is as good as unanswered. */
static int add_earlier(struct workload *workload, struct workload_snapshot *snapshot)
{
        uint32_t count;
        int r;

        if (!workload->earlier)
                return 0;
        r = workload_count_earlier(workload, &count);
        if (r < 0)
                return r;
        workload->earlier = count > 0;
        snapshot->connections += count;
        if (count)
                snapshot->untracked_ns = MAX(snapshot->untracked_ns, workload->attached_ns);
        return 0;
}

int workload_read(struct workload *workload, uint64_t not_before_ns, struct workload_snapshot *ret_snapshot)
{
        const struct census *census = &workload->census;
        struct workload_snapshot snapshot;
        int r;

        /* Connections before totals: a request answered in between leaves its time behind, one that came in between is payload. */
        if (census->ns == 0 || census->ns < not_before_ns) {
                r = activity_take_census(workload->activity);
                if (r < 0)
                        return r;
        }
        r = workload_read_totals(workload, &snapshot);
        if (r < 0)
                return r;

        if (census->last_ns)
                snapshot.last_ns = MAX(snapshot.last_ns, census->last_ns + workload->activity->tick_ns);
        snapshot.connections = census->connections;
        snapshot.outbound = census->outbound;
        snapshot.open_requests = census->open_requests;
        snapshot.oldest_request_ns = census->oldest_request_ns;
        snapshot.newest_request_ns = census->newest_request_ns;
        snapshot.oldest_request = census->oldest_request;
        r = add_earlier(workload, &snapshot);
        if (r < 0)
                return r;
        *ret_snapshot = snapshot;
        return 0;
}
