/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The life of a TCP connection's entry in activity_connections, but for its begin and its end, of which sock_ops tells. */
#ifndef ACTIVITY_CONNECTION_BPF_H
#define ACTIVITY_CONNECTION_BPF_H

#include "activity_class.bpf.h"
#include "activity_request.bpf.h"

/* The client may still wait for an answer though it will send no more: CLOSE_WAIT. */
static __always_inline bool is_open_state(__u32 state)
{
        return state == BPF_TCP_ESTABLISHED || state == BPF_TCP_SYN_RECV || state == BPF_TCP_CLOSE_WAIT;
}

/* NULL: there is no room. */
static __always_inline struct activity_socket *connection_add(__u64 cookie, const struct activity_socket *new)
{
        bpf_map_update_elem(&activity_connections, &cookie, new, BPF_NOEXIST);
        return bpf_map_lookup_elem(&activity_connections, &cookie);
}

static __always_inline void connection_untracked(void)
{
        struct activity_totals *totals = bpf_get_local_storage(&activity_totals, 0);

        WRITE_ONCE(totals->untracked_ns, bpf_ktime_get_coarse_ns());
}

/* A connection that is not known was there before the programs were. Listeners carry the packets of handshakes: payload that came with
 * one is seen when the connection is established. */
static __noinline struct activity_socket *connection_adopt(struct __sk_buff *skb, const struct activity_config *config,
                                                           bool received)
{
        struct activity_socket *socket, new = { .protocol = ACTIVITY_PROTOCOL_UNKNOWN };
        struct bpf_sock *sk = skb ? skb->sk : NULL;

        if (!sk || !config)
                return NULL;
        sk = bpf_sk_fullsock(sk);
        if (!sk || sk->protocol != IPPROTO_TCP || sk->state == BPF_TCP_LISTEN || sk->state == BPF_TCP_SYN_SENT)
                return NULL;
        if (packet_tuple(skb, IPPROTO_TCP, received, &new.tuple) < 0)
                return NULL;

        new.cgroup = config->cgroup;
        new.accepted = is_policy_port(config, new.tuple.local_port, IPPROTO_TCP);
        socket_class(&new, config);
        socket = connection_add(bpf_get_socket_cookie(skb), &new);
        if (!socket)
                connection_untracked();
        else if (!is_open_state(sk->state)) /* only now: an end that was told before the entry was there has changed the state */
                socket->closing = 1;
        return socket;
}

static __always_inline struct activity_socket *connection_of(struct __sk_buff *skb)
{
        __u64 cookie = bpf_get_socket_cookie(skb);

        return bpf_map_lookup_elem(&activity_connections, &cookie);
}

/* The end of a connection whose state changes nobody tells: it was there before the programs were, or another program took the flag
 * away. The kernel itself believes a reset only with the sequence number that is due (RFC 5961 section 3). */
static __noinline int connection_closes(struct __sk_buff *skb, const struct payload *payload, bool received)
{
        struct activity_socket *socket = skb ? connection_of(skb) : NULL;
        struct bpf_sock *sk = skb ? skb->sk : NULL;
        struct bpf_tcp_sock *tcp;

        if (!socket || !payload || !sk)
                return 0;
        if (received) {
                tcp = bpf_tcp_sock(sk);
                if (!(payload->flags & TCP_FLAG_RST) || !tcp || tcp->rcv_nxt != payload->seq)
                        return 0;
        }
        socket->closing = 1;
        return 0;
}

#endif
