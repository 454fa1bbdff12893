/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The live connections of the workloads, counted from the sockets themselves: what is open is never a sum of increments.
 *
 * It walks the TCP sockets of the reader's network namespace. An iterator over the socket storage map would not be bound to one, but
 * hardened kernels refuse iterators that could write to map values.
 */
#include "activity_class.bpf.h"
#include "activity_request.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, ACTIVITY_WANTED_MAX);
        __type(key, __u64);
        __type(value, struct activity_config);
} activity_wanted SEC(".maps");

enum {
        TCP_ESTABLISHED = 1,
        TCP_CLOSE_WAIT = 8, /* the client will send no more; it may still wait for an answer */
};

static __always_inline void record_request(struct activity_record *record, struct activity_socket *socket)
{
        if (has_open_request(socket) || (socket->received_flags & ACTIVITY_H2_CROWDED)) {
                record->request_since_ns = socket->request_since_ns;
                record->request_last_ns = socket->request_last_ns;
        } else {
                record->request_since_ns = record->request_last_ns = socket->doubt_ns;
        }
}

SEC("iter/tcp")
int sockets_iter(struct bpf_iter__tcp *ctx)
{
        struct sock_common *common = ctx->sk_common;
        struct activity_record record = {};
        struct activity_socket *socket;
        struct activity_config *wanted;
        struct tcp_sock *sk;

        if (!common || (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT))
                return 0;
        sk = bpf_skc_to_tcp_sock(common);
        if (!sk)
                return 0;
        socket = bpf_sk_storage_get(&activity_sockets, sk, NULL, 0);
        wanted = socket ? bpf_map_lookup_elem(&activity_wanted, &socket->cgroup) : NULL;
        if (!wanted)
                return 0;

        record.cgroup = socket->cgroup;
        record.tuple = socket->tuple;
        record.class = socket->class;
        record.protocol = socket->protocol;
        if (socket->generation != wanted->generation)
                record.class = classify(wanted, &record.tuple, socket->accepted);
        if (record.class == ACTIVITY_OUTBOUND && connects_to_itself(socket->cgroup, &record.tuple))
                record.class = ACTIVITY_SELF;
        if (record.class == ACTIVITY_SERVED)
                record_request(&record, socket);
        bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
        return 0;
}
