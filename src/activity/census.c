/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>

#include "activity/workload.h"
#include "base/macros.h"
#include "base/time.h"

enum {
        BATCH = 256,        /* more than ever share a bucket */
        WINDOW_SLOTS = 512, /* mapped at once, and for a moment only: whole pages, also of 64 KiB */
        WINDOW = WINDOW_SLOTS * sizeof(struct activity_socket),
};
static_assert(ACTIVITY_SLOTS % WINDOW_SLOTS == 0 && WINDOW % 4096 == 0, "windows of whole pages");

struct batch {
        __u64 cookies[BATCH];
        struct activity_socket sockets[BATCH];
};

static const char *protocol_names[] = {
        [ACTIVITY_PROTOCOL_NEW] = "plain",   [ACTIVITY_PROTOCOL_PLAIN] = "plain",     [ACTIVITY_PROTOCOL_TLS] = "tls",
        [ACTIVITY_PROTOCOL_HTTP2] = "http2", [ACTIVITY_PROTOCOL_UNKNOWN] = "unknown",
};
static_assert(ELEMENTSOF(protocol_names) == ACTIVITY_PROTOCOL_MAX, "a name a protocol");

static int connections_fd(const struct activity *activity)
{
        return bpf_map__fd(activity->programs->maps.activity_connections);
}

/* Returns whether the connection is to be kept. */
typedef bool (*connection_function)(const struct activity_socket *socket, void *userdata);

static void forget_slot(struct activity_socket *slot)
{
        memset((char *)slot + sizeof(slot->cookie), 0, sizeof(*slot) - sizeof(slot->cookie));
        __atomic_store_n(&slot->cookie, 0, __ATOMIC_RELEASE);
}

static int for_each_slot(const struct activity *activity, connection_function function, void *userdata)
{
        int fd = bpf_map__fd(activity->programs->maps.activity_slots);

        for (size_t window = 0; window < ACTIVITY_SLOTS / WINDOW_SLOTS; window++) {
                struct activity_socket *slots =
                        mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(window * WINDOW));

                if (slots == MAP_FAILED)
                        return -errno;
                for (size_t i = 0; i < WINDOW_SLOTS; i++)
                        if (__atomic_load_n(&slots[i].cookie, __ATOMIC_ACQUIRE) && slots[i].cgroup &&
                            !function(&slots[i], userdata))
                                forget_slot(&slots[i]);
                munmap(slots, WINDOW);
        }
        return 0;
}

/* One that stays meanwhile is never left out: an entry does not change its bucket. */
static int for_each_entry(const struct activity *activity, connection_function function, void *userdata)
{
        _cleanup_(freep) struct batch *batch = malloc(sizeof(*batch));
        __u32 position, *in = NULL, n;
        int r = 0;

        if (!batch)
                return -ENOMEM;
        while (r == 0) {
                n = BATCH;
                if (bpf_map_lookup_batch(connections_fd(activity), in, &position, batch->cookies, batch->sockets, &n, NULL) < 0)
                        r = -errno;
                if (r < 0 && r != -ENOENT) /* there are no more */
                        return r;
                in = &position;
                for (__u32 i = 0; i < n; i++)
                        if (batch->sockets[i].cgroup && !function(&batch->sockets[i], userdata))
                                bpf_map_delete_elem(connections_fd(activity), &batch->cookies[i]);
        }
        return 0;
}

/* Calls @function for every connection. */
static int for_each_connection(const struct activity *activity, connection_function function, void *userdata)
{
        int r = for_each_slot(activity, function, userdata);

        return r < 0 ? r : for_each_entry(activity, function, userdata);
}

static bool has_records(const struct activity_socket *socket)
{
        return socket->protocol == ACTIVITY_PROTOCOL_TLS || socket->protocol == ACTIVITY_PROTOCOL_HTTP2;
}

static bool has_open_question(const struct activity_socket *socket)
{
        if (!(socket->received_flags & ACTIVITY_ASKED))
                return false;
        if (!(socket->sent_flags & ACTIVITY_ANSWERED))
                return true;
        return (int32_t)(socket->asked_seq - socket->answered_seq) > 0 ||
               (socket->received_flags & ACTIVITY_ASKED_FAR && socket->far_answered == socket->answered_seq);
}

/* As the programs see it; a connection that two open streams share is open until its requests time out. */
void socket_request(const struct activity_socket *socket, uint64_t *ret_since_ns, uint64_t *ret_last_ns)
{
        bool streams = socket->protocol == ACTIVITY_PROTOCOL_HTTP2 && (socket->streams[0] || socket->streams[1]);

        if (!has_records(socket) && has_open_question(socket)) {
                *ret_since_ns = MAX(socket->request_since_ns, socket->answered_ns); /* within a tick of each other */
                *ret_last_ns = socket->request_last_ns;
        } else if (has_records(socket) &&
                   (socket->requests != socket->answered || streams || (socket->received_flags & ACTIVITY_H2_CROWDED))) {
                *ret_since_ns = socket->request_since_ns;
                *ret_last_ns = socket->request_last_ns;
        } else {
                *ret_since_ns = *ret_last_ns = socket->doubt_ns;
        }
}

static struct workload_connection connection_of(const struct activity_socket *socket)
{
        struct workload_connection connection = {
                .remote_port = socket->tuple.remote_port,
                .local_port = socket->tuple.local_port,
                .protocol = socket->protocol < ACTIVITY_PROTOCOL_MAX ? protocol_names[socket->protocol] : "unknown",
        };
        uint64_t last_ns;

        memcpy(connection.remote.bytes, socket->tuple.remote, sizeof(connection.remote.bytes));
        socket_request(socket, &connection.request_since_ns, &last_ns);
        return connection;
}

/* Its class by the settings in force: the programs class a socket again only at its next packet. */
static uint8_t class_of(const struct workload *workload, const struct activity_socket *socket)
{
        struct activity_connect_key key = { .cgroup = socket->cgroup, .tuple = socket->tuple };
        uint8_t class = socket->class, own;

        if (socket->generation != workload->config.generation)
                class = keys_classify(&workload->keys, socket);
        if (class == ACTIVITY_OUTBOUND &&
            bpf_map_lookup_elem(bpf_map__fd(workload->activity->programs->maps.activity_connects), &key, &own) == 0 && own)
                class = ACTIVITY_SELF;
        return class;
}

static void count_request(const struct workload *workload, const struct activity_socket *socket, struct census *census)
{
        uint64_t since_ns, last_ns;

        socket_request(socket, &since_ns, &last_ns);
        if (since_ns == 0 || last_ns + workload->request_timeout_ns <= census->ns)
                return;
        census->open_requests++;
        census->newest_request_ns = MAX(census->newest_request_ns, last_ns);
        if (census->oldest_request_ns == 0 || since_ns < census->oldest_request_ns) {
                census->oldest_request_ns = since_ns;
                census->oldest_request = connection_of(socket);
        }
}

/* TLS and HTTP/2 have all of it in the totals. */
static void note_last(const struct activity_socket *socket, struct census *census)
{
        if (has_records(socket))
                return;
        census->last_ns = MAX(census->last_ns, socket->request_last_ns);
        census->last_ns = MAX(census->last_ns, socket->sent_last_ns);
}

static bool count_connection(const struct activity_socket *socket, void *userdata)
{
        struct activity *activity = userdata;
        struct workload *workload;

        /* Normally the kernel tells when it is over. If more of it has to be sent, that makes a new entry. */
        if (socket->closing)
                return false;
        HASH_FIND(by_cgroup, activity->by_cgroup, &socket->cgroup, sizeof(socket->cgroup), workload);
        if (!workload)
                return true;
        switch (class_of(workload, socket)) {
        case ACTIVITY_OUTBOUND:
                workload->census.outbound++;
                break;
        case ACTIVITY_SERVED:
                workload->census.connections++;
                note_last(socket, &workload->census);
                count_request(workload, socket, &workload->census);
                break;
        default: /* to itself, and what counts for nothing */
                break;
        }
        return true;
}

int activity_take_census(struct activity *activity)
{
        uint64_t now = now_monotonic_ns();
        struct workload *workload;
        int r;

        LIST_FOREACH(workload, &activity->workloads, others)
        workload->census = (struct census){ .ns = now };
        r = for_each_connection(activity, count_connection, activity);
        if (r < 0) {
                LIST_FOREACH(workload, &activity->workloads, others)
                workload->census.ns = 0;
        }
        return r;
}

static int tuple_compare(const void *a, const void *b)
{
        return memcmp(a, b, sizeof(struct activity_tuple));
}

void tuples_done(struct tuples *tuples)
{
        free(tuples->tuples);
}

bool tuples_have(const struct tuples *tuples, const struct activity_tuple *tuple)
{
        return tuples->n && bsearch(tuple, tuples->tuples, tuples->n, sizeof(*tuple), tuple_compare);
}

static bool collect_tuple(const struct activity_socket *socket, void *userdata)
{
        struct tuples *tuples = userdata;
        struct activity_tuple *grown;

        if (socket->cgroup != tuples->cgroup || tuples->error < 0)
                return true;
        if (tuples->n == tuples->allocated) {
                tuples->allocated = MAX(2 * tuples->allocated, (size_t)64);
                grown = reallocarray(tuples->tuples, tuples->allocated, sizeof(*grown));
                if (!grown) {
                        tuples->error = -ENOMEM;
                        return true;
                }
                tuples->tuples = grown;
        }
        tuples->tuples[tuples->n++] = socket->tuple;
        return true;
}

int workload_known_tuples(const struct workload *workload, struct tuples *tuples)
{
        int r;

        tuples->cgroup = workload->config.cgroup;
        r = for_each_connection(workload->activity, collect_tuple, tuples);
        if (r < 0 || tuples->error < 0)
                return r < 0 ? r : tuples->error;
        if (tuples->n)
                qsort(tuples->tuples, tuples->n, sizeof(*tuples->tuples), tuple_compare);
        return 0;
}

struct connection_list {
        struct workload *workload;
        struct workload_connection *connections;
        size_t n, max;
};

static bool collect_connection(const struct activity_socket *socket, void *userdata)
{
        struct connection_list *list = userdata;

        if (socket->cgroup == list->workload->config.cgroup && !socket->closing && list->n < list->max &&
            class_of(list->workload, socket) == ACTIVITY_SERVED)
                list->connections[list->n++] = connection_of(socket);
        return true;
}

int workload_connections(struct workload *workload, struct workload_connection *connections, size_t max)
{
        struct connection_list list = { .workload = workload, .connections = connections, .max = max };
        int r = for_each_connection(workload->activity, collect_connection, &list);

        return r < 0 ? r : (int)list.n;
}

struct owner {
        const struct activity *activity;
        uint64_t cgroup;
};

static bool is_somebody_s(const struct activity_socket *socket, void *userdata)
{
        const struct owner *owner = userdata;
        struct workload *workload;

        HASH_FIND(by_cgroup, owner->activity->by_cgroup, &socket->cgroup, sizeof(socket->cgroup), workload);
        return workload;
}

static bool is_another_s(const struct activity_socket *socket, void *userdata)
{
        const struct owner *owner = userdata;

        return socket->cgroup != owner->cgroup;
}

void activity_forget_connections(struct activity *activity, uint64_t cgroup)
{
        struct owner owner = { .activity = activity, .cgroup = cgroup };

        for_each_connection(activity, cgroup ? is_another_s : is_somebody_s, &owner);
}
