/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The life of a TCP connection's entry in activity_slots or activity_connections, but for its begin and its end, of which sock_ops tells.
 * A slot is zeroed before it is given back, so that whoever takes it has little to write. */
#ifndef ACTIVITY_CONNECTION_BPF_H
#define ACTIVITY_CONNECTION_BPF_H

#include "activity_class.bpf.h"
#include "activity_request.bpf.h"

/* The client may still wait for an answer though it will send no more: CLOSE_WAIT. */
static __always_inline bool is_open_state(__u32 state)
{
        return state == BPF_TCP_ESTABLISHED || state == BPF_TCP_SYN_RECV || state == BPF_TCP_CLOSE_WAIT;
}

static __always_inline struct activity_socket *connection_slot(__u64 cookie)
{
        __u32 index = cookie % ACTIVITY_SLOTS;

        return bpf_map_lookup_elem(&activity_slots, &index);
}

struct connection { /* a new one */
        __u64 cookie;
        struct activity_tuple tuple;
        __u8 accepted;
        __u8 class;
        __u8 protocol;
};

/* What two packets of a new connection, on two CPUs, both write is the same, but for what sock_ops knows better. */
static __always_inline void connection_describe(struct activity_socket *socket, const struct connection *new,
                                                const struct activity_config *config)
{
        socket->tuple = new->tuple;
        socket->generation = config->generation;
        socket->class = new->class;
        socket->accepted = new->accepted;
        if (new->protocol)
                socket->protocol = new->protocol;
        WRITE_ONCE(socket->sent_cookie, new->cookie);
        __sync_val_compare_and_swap(&socket->cgroup, 0, config->cgroup); /* as a barrier */
}

const struct activity_socket nothing = {};

/* NULL: there is no room. */
static __always_inline struct activity_socket *connection_add(const struct connection *new, const struct activity_config *config)
{
        __u64 cookie = new->cookie, owner;
        struct activity_socket *socket = connection_slot(cookie);

        owner = socket ? __sync_val_compare_and_swap(&socket->cookie, 0, cookie) : ~0ull;
        if (owner != 0 && owner != cookie) {
                bpf_map_update_elem(&activity_connections, &cookie, &nothing, BPF_NOEXIST);
                socket = bpf_map_lookup_elem(&activity_connections, &cookie);
        }
        if (socket && !READ_ONCE(socket->cgroup))
                connection_describe(socket, new, config);
        return socket;
}

static __always_inline struct activity_socket *connection_find(__u64 cookie)
{
        struct activity_socket *socket = connection_slot(cookie);

        if (!socket || READ_ONCE(socket->cookie) != cookie)
                socket = bpf_map_lookup_elem(&activity_connections, &cookie);
        return socket && READ_ONCE(socket->cgroup) ? socket : NULL;
}

static __always_inline void connection_remove(__u64 cookie)
{
        struct activity_socket *slot = connection_slot(cookie);

        if (slot && slot->cookie == cookie) {
                __builtin_memset((char *)slot + sizeof(cookie), 0, sizeof(*slot) - sizeof(cookie));
                __sync_lock_test_and_set(&slot->cookie, 0);
        } else {
                bpf_map_delete_elem(&activity_connections, &cookie);
        }
}

/* The daemon may forget it from now on: nothing stays pending. */
static __always_inline void connection_is_closing(struct activity_socket *socket)
{
        socket->closing = 1;
        WRITE_ONCE(socket->received_looked, 0);
        WRITE_ONCE(socket->sent_looked, 0);
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
        struct connection new = { .cookie = skb ? bpf_get_socket_cookie(skb) : 0, .protocol = ACTIVITY_PROTOCOL_UNKNOWN };
        struct activity_socket *socket;
        struct bpf_sock *sk = skb ? skb->sk : NULL;

        if (!sk || !config)
                return NULL;
        sk = bpf_sk_fullsock(sk);
        if (!sk || sk->protocol != IPPROTO_TCP || sk->state == BPF_TCP_LISTEN || sk->state == BPF_TCP_SYN_SENT)
                return NULL;
        if (packet_tuple(skb, IPPROTO_TCP, received, &new.tuple) < 0)
                return NULL;

        new.accepted = is_policy_port(config, new.tuple.local_port, IPPROTO_TCP);
        new.class = classify(config, &new.tuple, new.accepted);
        socket = connection_add(&new, config);
        if (!socket)
                connection_untracked();
        else if (!is_open_state(sk->state)) /* only now: an end that was told before the entry was there has changed the state */
                connection_is_closing(socket);
        return socket;
}

/* The end of a connection whose state changes nobody tells: it was there before the programs were, or another program took the flag
 * away. The kernel itself believes a reset only with the sequence number that is due (RFC 5961 section 3). */
static __noinline int connection_closes(struct __sk_buff *skb, const struct payload *payload, bool received)
{
        struct activity_socket *socket = skb ? connection_find(bpf_get_socket_cookie(skb)) : NULL;
        struct bpf_sock *sk = skb ? skb->sk : NULL;
        struct bpf_tcp_sock *tcp;

        if (!socket || !payload || !sk)
                return 0;
        if (received) {
                tcp = bpf_tcp_sock(sk);
                if (!(payload->flags & TCP_FLAG_RST) || !tcp || tcp->rcv_nxt != payload->seq)
                        return 0;
        }
        connection_is_closing(socket);
        return 0;
}

#endif
