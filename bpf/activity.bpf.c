/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Activity of one workload: programs on its cgroup, and on no other. */
#include "activity_class.bpf.h"
#include "activity_connection.bpf.h"
#include "activity_plain.bpf.h"
#include "activity_sock_ops.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Raised by the daemon once it has changed a configuration, and greater than any earlier daemon's. */
__u64 epoch;

static __always_inline struct activity_config *workload_config(void)
{
        struct activity_config *config = bpf_get_local_storage(&activity_config, 0);

        return config->cgroup ? config : NULL;
}

static __noinline void copy_config(struct activity_totals *totals)
{
        __u64 now = __sync_fetch_and_add(&epoch, 0); /* as a barrier: what is copied is at least as new */
        struct activity_config *config = bpf_get_local_storage(&activity_config, 0);

        if (!totals)
                return;
        totals->config = *config;
        barrier();
        WRITE_ONCE(totals->epoch, now);
}

/* With a copy of the configuration: one lookup does for both. */
static __always_inline struct activity_totals *workload_totals(void)
{
        struct activity_totals *totals = bpf_get_local_storage(&activity_totals, 0);

        if (totals->epoch != READ_ONCE(epoch))
                copy_config(totals);
        return totals;
}

static __always_inline void ring_doorbell(__u64 cgroup, __u32 port, __u8 transport)
{
        struct activity_event event = { .cgroup = cgroup, .port = (__u16)port, .transport = transport };

        bpf_ringbuf_output(&activity_events, &event, sizeof(event), 0);
}

/* A UDP socket at its first datagram. */
static __noinline struct activity_socket *socket_adopt(struct __sk_buff *skb, const struct activity_config *config, bool received)
{
        struct bpf_sock *sk = skb ? skb->sk : NULL;
        struct activity_socket *socket;
        struct activity_tuple tuple = {};

        if (!sk || !config)
                return NULL;
        sk = bpf_sk_fullsock(sk);
        if (!sk || sk->protocol != IPPROTO_UDP || packet_tuple(skb, IPPROTO_UDP, received, &tuple) < 0)
                return NULL;
        socket = bpf_sk_storage_get(&activity_sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
        if (!socket)
                return NULL;

        socket->cgroup = config->cgroup;
        socket->tuple = tuple;
        socket_class(socket, config);
        return socket;
}

static __noinline void socket_class_again(struct activity_socket *socket, const struct activity_config *config)
{
        if (socket && config)
                socket_class(socket, config);
}

/* NULL: another workload's. */
static __always_inline struct activity_socket *own_socket(struct activity_socket *socket, const struct activity_config *config)
{
        if (!socket || socket->cgroup != config->cgroup)
                return NULL;
        if (socket->generation != config->generation)
                socket_class_again(socket, config);
        return socket;
}

static __always_inline struct activity_socket *tcp_socket(struct __sk_buff *skb, const struct activity_config *config,
                                                          bool received)
{
        struct activity_socket *socket = connection_find(bpf_get_socket_cookie(skb));

        return own_socket(socket ? socket : connection_adopt(skb, config, received), config);
}

static __always_inline struct activity_socket *udp_socket(struct __sk_buff *skb, struct bpf_sock *sk,
                                                          const struct activity_config *config, bool received)
{
        struct activity_socket *socket = bpf_sk_storage_get(&activity_sockets, sk, NULL, 0);

        return own_socket(socket ? socket : socket_adopt(skb, config, received), config);
}

/* Atomic though the CPU is this one: a softirq may send while a process does. */
static __always_inline void count_bytes(struct activity_totals *totals, __u32 length, bool received)
{
        __sync_fetch_and_add(received ? &totals->received_bytes : &totals->sent_bytes, length);
}

static __always_inline void count_served(struct activity_totals *totals, __u32 length, bool received, bool activity, __u64 now)
{
        count_bytes(totals, length, received);
        if (activity)
                WRITE_ONCE(totals->last_ns, now);
}

static __always_inline void count_outbound(struct activity_totals *totals, struct activity_socket *socket)
{
        if (!socket->peer_checked) {
                socket->peer_checked = 1;
                if (connects_to_itself(socket->cgroup, &socket->tuple)) {
                        socket->class = ACTIVITY_SELF;
                        return;
                }
        }
        WRITE_ONCE(totals->outbound_last_ns, bpf_ktime_get_coarse_ns());
}

/* Payload that the other end has seen already is a retransmission, a keepalive or a window probe. What is in order is none of these;
 * only otherwise is the kernel's own account asked. */
static __noinline bool is_repeated(struct __sk_buff *skb, const struct payload *payload, bool received)
{
        struct bpf_sock *sk = skb->sk;
        struct bpf_tcp_sock *tcp = sk ? bpf_tcp_sock(sk) : NULL;
        __u32 received_next, sent_next;

        if (!tcp)
                return true;
        received_next = READ_ONCE(tcp->rcv_nxt); /* both, or the compiler chooses between their addresses */
        sent_next = READ_ONCE(tcp->snd_nxt);
        return (__s32)(payload->seq + payload->length - (received ? received_next : sent_next)) <= 0;
}

static __always_inline void tcp_packet(struct __sk_buff *skb, struct activity_totals *totals, struct activity_socket *socket,
                                       const struct payload *payload, bool received)
{
        __u32 *next = received ? &socket->received_next : &socket->sent_next;
        bool activity;
        __u64 now;

        if (socket->class != ACTIVITY_SERVED && socket->class != ACTIVITY_OUTBOUND)
                return;
        if (*next != payload->seq && is_repeated(skb, payload, received))
                return;
        if (socket->class == ACTIVITY_OUTBOUND) {
                *next = payload->seq + payload->length;
                count_outbound(totals, socket);
                return;
        }

        now = bpf_ktime_get_coarse_ns();
        activity = received ? payload_received(skb, socket, payload, now) : payload_sent(skb, socket, payload, now);
        count_served(totals, payload->length + take_pending(socket, received), received, activity, now);
        plain_from_now(socket, received, now);
}

enum { LOOPBACK_IFINDEX = 1 }; /* include/net/flow.h */

/* Datagrams know their peer one by one. */
static __always_inline void udp_datagram(struct __sk_buff *skb, struct activity_totals *totals, struct activity_socket *socket,
                                         bool received)
{
        const struct activity_config *config = &totals->config;
        struct activity_tuple tuple = {};
        __u32 offset;

        if (packet_tuple(skb, IPPROTO_UDP, received, &tuple) < 0 || transport_offset(skb, IPPROTO_UDP, &offset) < 0)
                return;
        if (socket->class == ACTIVITY_OUTBOUND) {
                if (!received && skb->ifindex == LOOPBACK_IFINDEX && is_policy_port(config, tuple.remote_port, IPPROTO_UDP)) {
                        struct activity_connect_key key;
                        __u8 own = 0;

                        connect_key(&key, config->cgroup, &tuple);
                        bpf_map_update_elem(&activity_connects, &key, &own, BPF_ANY);
                }
                if (!is_ignored(config, &tuple))
                        WRITE_ONCE(totals->outbound_last_ns, bpf_ktime_get_coarse_ns());
                return;
        }
        if (is_ignored(config, &tuple) || (skb->ifindex == LOOPBACK_IFINDEX && accepts_from_itself(config->cgroup, &tuple)))
                return;
        count_served(totals, skb->len - offset - sizeof(struct udphdr), received, true, bpf_ktime_get_coarse_ns());
}

static __noinline int udp_packet(struct __sk_buff *skb, bool received)
{
        struct activity_totals *totals = workload_totals();
        struct activity_socket *socket;
        struct bpf_sock *sk = skb->sk;
        int verdict = 1;
        __u32 offset;

        if (sk && totals->config.cgroup && transport_offset(skb, IPPROTO_UDP, &offset) == 0) {
                socket = udp_socket(skb, sk, &totals->config, received);
                if (socket)
                        udp_datagram(skb, totals, socket, received);
        }
        barrier_var(verdict); /* a constant would not be returned, and the verifier minds what is instead */
        return verdict;
}

static __always_inline int tcp_slowly(struct __sk_buff *skb, const struct payload *payload, bool received)
{
        struct activity_totals *totals = workload_totals();
        struct activity_socket *socket;

        if (!payload || !totals->config.cgroup)
                return 0;
        socket = tcp_socket(skb, &totals->config, received);
        if (socket)
                tcp_packet(skb, totals, socket, payload, received);
        return 0;
}

/* Many packets are bare acknowledgements: they end before any helper is called. */
static __always_inline int packet(struct __sk_buff *skb, bool received)
{
        struct payload payload = {};

        if (tcp_payload(skb, &payload) < 0)
                return udp_packet(skb, received);
        if (!skb->sk)
                return 1;
        if (payload.length && !is_plain(skb, &payload, received))
                tcp_slowly(skb, &payload, received);
        if (payload.flags & (TCP_FLAG_FIN | TCP_FLAG_RST))
                connection_closes(skb, &payload, received);
        return 1;
}

SEC("cgroup_skb/ingress")
int activity_ingress(struct __sk_buff *skb)
{
        return packet(skb, true);
}

SEC("cgroup_skb/egress")
int activity_egress(struct __sk_buff *skb)
{
        return packet(skb, false);
}

SEC("cgroup/post_bind4")
int activity_bind4(struct bpf_sock *sk)
{
        struct activity_config *config = workload_config();

        if (config && sk->protocol == IPPROTO_UDP)
                ring_doorbell(config->cgroup, sk->src_port, IPPROTO_UDP);
        return 1;
}

SEC("cgroup/post_bind6")
int activity_bind6(struct bpf_sock *sk)
{
        return activity_bind4(sk);
}

/* The data of TCP Fast Open and of TCP_DEFER_ACCEPT comes with the handshake. */
static __always_inline __u32 handshake_payload(struct bpf_sock_ops *ops)
{
        struct tcphdr *header = ops->skb_data;
        __u32 length;

        if ((void *)(header + 1) > ops->skb_data_end)
                return 0;
        length = (header->doff_reserved >> 4) * 4u;
        return ops->skb_len > length ? ops->skb_len - length : 0;
}

static __always_inline void question_came_with_handshake(struct activity_socket *socket, __u32 end, __u64 now)
{
        ask(socket, end, now);
        open_data_request(socket, now); /* should it turn out to be TLS */
}

static __always_inline void connection_established(struct bpf_sock_ops *ops, const struct activity_config *config, bool accepted)
{
        struct connection new = { .cookie = bpf_get_socket_cookie(ops), .accepted = accepted };
        struct activity_socket *socket;

        sock_ops_tuple(ops, &new.tuple);
        new.class = classify(config, &new.tuple, accepted);
        socket = connection_add(&new, config);
        if (!socket) {
                connection_untracked();
                return;
        }
        if (socket->accepted != accepted || socket->class != new.class) { /* a packet on another CPU came first */
                socket->accepted = accepted;
                socket->class = new.class;
        }
        bpf_sock_ops_cb_flags_set(ops, (int)(ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG));

        if (accepted && socket->class == ACTIVITY_SERVED) {
                struct activity_totals *totals = bpf_get_local_storage(&activity_totals, 0);
                __u32 length = handshake_payload(ops);

                __sync_fetch_and_add(&totals->connections, 1);
                if (length) {
                        question_came_with_handshake(socket, ops->rcv_nxt + length, bpf_ktime_get_coarse_ns());
                        WRITE_ONCE(totals->last_ns, bpf_ktime_get_coarse_ns());
                }
        }
}

static __always_inline void connection_begins(struct bpf_sock_ops *ops, const struct activity_config *config)
{
        struct activity_connect_key key = { .cgroup = config->cgroup };
        __u8 own = 0;

        sock_ops_tuple(ops, &key.tuple);
        bpf_map_update_elem(&activity_connects, &key, &own, BPF_ANY);
        bpf_sock_ops_cb_flags_set(ops, (int)(ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG));
}

/* The next user of the same local port may be somebody else. */
static __always_inline void connection_ends(struct bpf_sock_ops *ops, const struct activity_config *config)
{
        struct activity_connect_key key = { .cgroup = config->cgroup };
        __u64 cookie = bpf_get_socket_cookie(ops);
        struct activity_socket *socket = connection_find(cookie);
        bool accepted = false;

        if (socket) {
                struct activity_totals *totals = bpf_get_local_storage(&activity_totals, 0);

                accepted = socket->accepted;
                count_bytes(totals, take_pending(socket, true), true);
                count_bytes(totals, take_pending(socket, false), false);
        }
        connection_remove(cookie);
        if (accepted)
                return;
        sock_ops_tuple(ops, &key.tuple);
        bpf_map_delete_elem(&activity_connects, &key);
}

static __always_inline void connection_state(struct bpf_sock_ops *ops, const struct activity_config *config)
{
        struct activity_socket *socket;

        if (ops->args[1] == BPF_TCP_CLOSE) {
                connection_ends(ops, config);
        } else if (!is_open_state(ops->args[1])) {
                socket = connection_find(bpf_get_socket_cookie(ops));
                if (socket)
                        connection_is_closing(socket);
        }
}

SEC("sockops")
int activity_sock_ops(struct bpf_sock_ops *ops)
{
        struct activity_config *config;

        if (ops->op < BPF_SOCK_OPS_TCP_CONNECT_CB) /* the kernel asks for its parameters, several times a connection */
                return 1;
        config = workload_config();
        if (!config)
                return 1;
        switch (ops->op) {
        case BPF_SOCK_OPS_TCP_CONNECT_CB:
                connection_begins(ops, config);
                break;
        case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
                connection_established(ops, config, false);
                break;
        case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
                connection_established(ops, config, true);
                break;
        case BPF_SOCK_OPS_STATE_CB:
                connection_state(ops, config);
                break;
        case BPF_SOCK_OPS_TCP_LISTEN_CB:
                ring_doorbell(config->cgroup, ops->local_port, IPPROTO_TCP);
                break;
        }
        return 1;
}
