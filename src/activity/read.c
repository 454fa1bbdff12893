/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"
#include "base/time.h"

static const char *protocol_names[] = {
        [ACTIVITY_PROTOCOL_NEW] = "plain",   [ACTIVITY_PROTOCOL_PLAIN] = "plain",     [ACTIVITY_PROTOCOL_TLS] = "tls",
        [ACTIVITY_PROTOCOL_HTTP2] = "http2", [ACTIVITY_PROTOCOL_UNKNOWN] = "unknown",
};
static_assert(ELEMENTSOF(protocol_names) == ACTIVITY_PROTOCOL_MAX, "a name a protocol");

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
        }
        *ret_totals = sum;
        return 0;
}

typedef void (*record_function)(const struct activity_record *record, void *userdata);

/* Calls @function for every live connection of every workload. The kernel writes whole records only. */
static int for_each_record(const struct activity *activity, record_function function, void *userdata)
{
        _cleanup_(close_fdp) int fd = bpf_iter_create(bpf_link__fd(activity->iterator_link));
        struct activity_record records[128];
        ssize_t bytes;

        if (fd < 0)
                return -errno;

        while ((bytes = read(fd, records, sizeof(records))) != 0) {
                if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (bytes < 0)
                        return -errno;
                if ((size_t)bytes % sizeof(records[0]))
                        return -EBADMSG;
                for (size_t i = 0; i < (size_t)bytes / sizeof(records[0]); i++)
                        function(&records[i], userdata);
        }
        return 0;
}

static struct workload_connection connection_from_record(const struct activity_record *record)
{
        struct workload_connection connection = {
                .remote_port = record->tuple.remote_port,
                .local_port = record->tuple.local_port,
                .request_since_ns = record->request_since_ns,
                .protocol = record->protocol < ACTIVITY_PROTOCOL_MAX ? protocol_names[record->protocol] : "unknown",
        };

        memcpy(connection.remote.bytes, record->tuple.remote, sizeof(connection.remote.bytes));
        return connection;
}

static void count_record(const struct activity_record *record, void *userdata)
{
        struct activity *activity = userdata;
        struct workload *workload;
        struct census *census;

        HASH_FIND(by_cgroup, activity->by_cgroup, &record->cgroup, sizeof(record->cgroup), workload);
        if (!workload)
                return;
        census = &workload->census;
        if (record->class == ACTIVITY_OUTBOUND)
                census->outbound++;
        if (record->class != ACTIVITY_SERVED)
                return;

        census->connections++;
        if (record->request_since_ns == 0 || record->request_last_ns + workload->request_timeout_ns <= census->ns)
                return;
        census->open_requests++;
        census->newest_request_ns = MAX(census->newest_request_ns, record->request_last_ns);
        if (census->oldest_request_ns == 0 || record->request_since_ns < census->oldest_request_ns) {
                census->oldest_request_ns = record->request_since_ns;
                census->oldest_request = connection_from_record(record);
        }
}

/* Most of a walk's time goes into the kernel's table of all connections, so that one walk serves all workloads. */
static int take_census(struct activity *activity)
{
        uint64_t now = now_monotonic_ns();
        struct workload *workload;
        int r;

        LIST_FOREACH(workload, &activity->workloads, others)
        workload->census = (struct census){ .ns = now };
        r = for_each_record(activity, count_record, activity);
        if (r < 0) {
                LIST_FOREACH(workload, &activity->workloads, others)
                workload->census.ns = 0;
        }
        return r;
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
        if (snapshot.last_ns)
                snapshot.last_ns += workload->activity->tick_ns;
        snapshot.received_bytes = totals.received_bytes;
        snapshot.sent_bytes = totals.sent_bytes;
        snapshot.connections_total = totals.connections;
        *ret_snapshot = snapshot;
        return 0;
}

int workload_read(struct workload *workload, uint64_t not_before_ns, struct workload_snapshot *ret_snapshot)
{
        const struct census *census = &workload->census;
        struct workload_snapshot snapshot;
        int r;

        /* Connections before totals: a request answered in between leaves its time behind, one that came in between is payload. */
        if (census->ns == 0 || census->ns < not_before_ns) {
                r = take_census(workload->activity);
                if (r < 0)
                        return r;
        }
        r = workload_read_totals(workload, &snapshot);
        if (r < 0)
                return r;

        snapshot.connections = census->connections;
        snapshot.outbound = census->outbound;
        snapshot.open_requests = census->open_requests;
        snapshot.oldest_request_ns = census->oldest_request_ns;
        snapshot.newest_request_ns = census->newest_request_ns;
        snapshot.oldest_request = census->oldest_request;
        *ret_snapshot = snapshot;
        return 0;
}

struct connection_list {
        uint64_t cgroup;
        struct workload_connection *connections;
        size_t n, max;
};

static void collect_record(const struct activity_record *record, void *userdata)
{
        struct connection_list *list = userdata;

        if (record->cgroup == list->cgroup && record->class == ACTIVITY_SERVED && list->n < list->max)
                list->connections[list->n++] = connection_from_record(record);
}

int workload_connections(struct workload *workload, struct workload_connection *connections, size_t max)
{
        struct connection_list list = { .cgroup = workload->config.cgroup, .connections = connections, .max = max };
        int r = for_each_record(workload->activity, collect_record, &list);

        return r < 0 ? r : (int)list.n;
}
