/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The live connections of one workload, counted from the sockets themselves: what is open is never a sum of increments.
 *
 * It walks the TCP sockets of the reader's network namespace. An iterator over the socket storage map would not be bound to one, but
 * hardened kernels refuse iterators that could write to map values.
 */
#include "activity_class.bpf.h"
#include "activity_request.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct activity_config wanted; /* set by the daemon before each read */

enum {
        TCP_ESTABLISHED = 1,
        TCP_CLOSE_WAIT = 8, /* the client will send no more; it may still wait for an answer */
};

static __always_inline bool is_open(struct activity_socket *socket)
{
        return has_open_request(socket) || (socket->received_flags & ACTIVITY_H2_CROWDED);
}

SEC("iter/tcp")
int sockets_iter(struct bpf_iter__tcp *ctx)
{
        struct sock_common *common = ctx->sk_common;
        struct activity_record record = {};
        struct activity_socket *socket;
        struct tcp_sock *sk;

        if (!common || (common->skc_state != TCP_ESTABLISHED && common->skc_state != TCP_CLOSE_WAIT))
                return 0;
        sk = bpf_skc_to_tcp_sock(common);
        if (!sk)
                return 0;
        socket = bpf_sk_storage_get(&activity_sockets, sk, NULL, 0);
        if (!socket || socket->cgroup != wanted.cgroup)
                return 0;

        record.tuple = socket->tuple;
        record.class = socket->class;
        record.protocol = socket->protocol;
        if (socket->generation != wanted.generation)
                record.class = classify(&wanted, &record.tuple, socket->accepted);
        if (record.class == ACTIVITY_OUTBOUND && connects_to_itself(socket->cgroup, &record.tuple))
                record.class = ACTIVITY_SELF;
        if (record.class == ACTIVITY_SERVED && is_open(socket)) {
                record.request_since_ns = socket->request_since_ns;
                record.request_last_ns = socket->request_last_ns;
        }
        bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
        return 0;
}
