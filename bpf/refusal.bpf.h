/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Refusals that an endpoint, or a router on the way to it, sends in answer to a flow that was given to it: TCP resets and ICMP errors.
 *
 * Its sender must not see them while another endpoint may take the flow. Both are recognised by the flow that answers have: a reset is
 * one, and an ICMP error quotes the packet that it is about.
 */
#ifndef REFUSAL_BPF_H
#define REFUSAL_BPF_H

#include "maps.bpf.h"
#include "packet.bpf.h"

enum {
        ICMP_HEADER = 8,
        ICMP_UNREACHABLE = 3,
        ICMP_TOO_BIG = 4, /* the code: no refusal (RFC 1191) */
        ICMPV6_UNREACHABLE = 1,
};

struct ports {
        __be16 source, destination;
};

static __always_inline bool read_ports(const struct bpf_dynptr *data, __u32 offset, struct lull_flow *flow)
{
        struct ports buffer, *ports = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));

        if (!ports)
                return false;

        flow->source_port = ports->source;
        flow->destination_port = ports->destination;
        return true;
}

/* Of a SYN: its reset has the sequence number 0 and acknowledges it (RFC 9293, 3.5.2). Any other is of a connection that was accepted. */
static __always_inline bool is_reset(const struct bpf_dynptr *data, __u32 offset)
{
        struct tcphdr buffer, *tcp = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));

        return tcp && (tcp->flags & (TCP_RST | TCP_ACK)) == (TCP_RST | TCP_ACK) && tcp->seq == 0;
}

static __always_inline bool is_unreachable(const struct bpf_dynptr *data, __u32 offset, bool ipv4)
{
        __u8 buffer[ICMP_HEADER], *icmp = bpf_dynptr_slice(data, offset, buffer, sizeof(buffer));

        if (!icmp)
                return false;
        return ipv4 ? icmp[0] == ICMP_UNREACHABLE && icmp[1] != ICMP_TOO_BIG : icmp[0] == ICMPV6_UNREACHABLE;
}

/* The flow of the IP header at @offset, and where its transport header begins; 0 for none. */
static __always_inline __u32 read_ipv4(const struct bpf_dynptr *data, __u32 offset, struct lull_flow *flow)
{
        struct iphdr buffer, *ip = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));

        if (!ip || bpf_ntohs(ip->frag_off) & IPV4_FRAGMENT_OFFSET)
                return 0;

        map_ipv4(flow->source, ip->saddr);
        map_ipv4(flow->destination, ip->daddr);
        flow->protocol = ip->protocol;
        return offset + ((ip->version_ihl & 15) << 2);
}

/* Without extension headers: resets and ICMP errors have none. */
static __always_inline __u32 read_ipv6(const struct bpf_dynptr *data, __u32 offset, struct lull_flow *flow)
{
        struct ipv6hdr buffer, *ip = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));

        if (!ip)
                return 0;

        __builtin_memcpy(flow->source, ip->saddr, sizeof(flow->source));
        __builtin_memcpy(flow->destination, ip->daddr, sizeof(flow->destination));
        flow->protocol = ip->nexthdr;
        return offset + sizeof(*ip);
}

static __always_inline __u32 read_ip(const struct bpf_dynptr *data, __u32 offset, bool ipv4, struct lull_flow *flow)
{
        return ipv4 ? read_ipv4(data, offset, flow) : read_ipv6(data, offset, flow);
}

static __always_inline void turn_around(struct lull_flow *flow)
{
        struct lull_flow other = *flow;

        __builtin_memcpy(flow->source, other.destination, sizeof(flow->source));
        __builtin_memcpy(flow->destination, other.source, sizeof(flow->destination));
        flow->source_port = other.destination_port;
        flow->destination_port = other.source_port;
}

/* Whether the packet is a refusal; *ret_answer is then the flow that answers have. */
static __always_inline bool parse_refusal(const struct bpf_dynptr *data, bool ipv4, struct lull_flow *ret_answer)
{
        __u32 transport = read_ip(data, 0, ipv4, ret_answer);

        if (transport == 0)
                return false;
        if (ret_answer->protocol == IPPROTO_TCP)
                return is_reset(data, transport) && read_ports(data, transport, ret_answer);
        if (ret_answer->protocol != (ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) || !is_unreachable(data, transport, ipv4))
                return false;

        transport = read_ip(data, transport + ICMP_HEADER, ipv4, ret_answer);
        if (transport == 0 || (ret_answer->protocol != IPPROTO_TCP && ret_answer->protocol != IPPROTO_UDP) ||
            !read_ports(data, transport, ret_answer))
                return false;
        turn_around(ret_answer);
        return true;
}

/* The daemon learns of it by a record without data; should that be lost, it notices the silence. */
static __always_inline int keep_refusal(const struct lull_flow *flow)
{
        struct lull_answer *answer = bpf_map_lookup_elem(&answers, flow);
        struct lull_packet *record;

        if (!answer || bpf_ktime_get_ns() >= answer->expiry_ns)
                return VERDICT_OTHER;
        if (answer->late)
                return LULL_COUNTER_HELD_REFUSAL;

        record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);
        if (record) {
                __builtin_memset(record, 0, sizeof(*record));
                record->time_ns = bpf_ktime_get_ns();
                record->slot = answer->slot;
                record->flags = LULL_PACKET_REFUSED;
                record->flow = answer->flow;
                bpf_ringbuf_submit(record, 0);
        }
        return LULL_COUNTER_HELD_REFUSAL;
}

#endif
