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

/* Calls @function for every live connection of the workload. The kernel writes whole records only. */
static int for_each_record(const struct workload *workload, record_function function, void *userdata)
{
        _cleanup_(close_fdp) int fd = -1;
        struct activity_record records[128];
        ssize_t bytes;

        workload->activity->iterator->bss->wanted = workload->config;
        fd = bpf_iter_create(bpf_link__fd(workload->activity->iterator_link));
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

struct census {
        struct workload_snapshot *snapshot;
        uint64_t request_timeout_ns;
};

static void count_record(const struct activity_record *record, void *userdata)
{
        const struct census *census = userdata;
        struct workload_snapshot *snapshot = census->snapshot;

        if (record->class == ACTIVITY_OUTBOUND)
                snapshot->outbound++;
        if (record->class != ACTIVITY_SERVED)
                return;

        snapshot->connections++;
        if (record->request_since_ns == 0 || record->request_last_ns + census->request_timeout_ns <= snapshot->read_ns)
                return;
        snapshot->open_requests++;
        snapshot->newest_request_ns = MAX(snapshot->newest_request_ns, record->request_last_ns);
        if (snapshot->oldest_request_ns == 0 || record->request_since_ns < snapshot->oldest_request_ns) {
                snapshot->oldest_request_ns = record->request_since_ns;
                snapshot->oldest_request = connection_from_record(record);
        }
}

int workload_read(struct workload *workload, struct workload_snapshot *ret_snapshot)
{
        struct workload_snapshot snapshot = { .read_ns = now_monotonic_ns() };
        struct census census = { .snapshot = &snapshot, .request_timeout_ns = workload->request_timeout_ns };
        struct activity_totals totals = {};
        uint64_t usage;
        int r;

        r = cpu_read_usage(workload->cgroup_fd, &usage);
        if (r < 0)
                return r;
        cpu_history_add(&workload->cpu, usage, workload->after_ns, snapshot.read_ns, &snapshot.cpu_millicores,
                        &snapshot.cpu_window_ns);

        /* Connections before totals: a request answered in between leaves its time behind, one that came in between is payload. */
        r = for_each_record(workload, count_record, &census);
        if (r < 0)
                return r;
        r = read_totals(workload, &totals);
        if (r < 0)
                return r;

        snapshot.last_ns = MAX(totals.last_ns, workload->outbound_counts ? totals.outbound_last_ns : 0);
        snapshot.received_bytes = totals.received_bytes;
        snapshot.sent_bytes = totals.sent_bytes;
        snapshot.connections_total = totals.connections;
        *ret_snapshot = snapshot;
        return 0;
}

struct connection_list {
        struct workload_connection *connections;
        size_t n, max;
};

static void collect_record(const struct activity_record *record, void *userdata)
{
        struct connection_list *list = userdata;

        if (record->class == ACTIVITY_SERVED && list->n < list->max)
                list->connections[list->n++] = connection_from_record(record);
}

int workload_connections(struct workload *workload, struct workload_connection *connections, size_t max)
{
        struct connection_list list = { .connections = connections, .max = max };
        int r = for_each_record(workload, collect_record, &list);

        return r < 0 ? r : (int)list.n;
}
