/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From an skb whose data begins at the IP header to the flow it would open.
 *
 * Only the first packet of a flow is of interest: a TCP SYN, or any UDP datagram. Lengths are judged last, so that what is not of
 * interest is never called malformed.
 */
#ifndef PACKET_BPF_H
#define PACKET_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lull_wire.h"

extern int bpf_dynptr_from_skb(struct __sk_buff *skb, __u64 flags, struct bpf_dynptr *ret_data) __weak __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *data, __u32 offset, void *buffer, __u32 size) __weak __ksym;

enum {
        TCP_FIN = 1 << 0,
        TCP_SYN = 1 << 1,
        TCP_RST = 1 << 2,
        TCP_ACK = 1 << 4,
        IPV4_MORE_FRAGMENTS = 0x2000,
        IPV4_FRAGMENT_OFFSET = 0x1fff,
        IPV6_MORE_FRAGMENTS = 0x0001,
        IPV6_FRAGMENT_OFFSET = 0xfff8,
        IPV6_EXTENSIONS_MAX = 8, /* headers looked at; nobody honest sends more */
};

/* What becomes of a packet: an enum lull_counter, or one of these, which are not counted. */
enum {
        VERDICT_FIRST = -1, /* opens a flow: not decided yet */
        VERDICT_OTHER = -2, /* of no interest: passes */
};

struct packet {
        struct lull_flow flow;
        __u32 length;        /* from the IP header on, as that header says */
        __u32 header_length; /* of all headers */
        bool ipv4;
        bool fragment; /* the first of several, not reassembled */
        bool probe;    /* a half-open probe of lull's own, of whichever node */
};

static __always_inline int parse_tcp(struct packet *packet, const struct bpf_dynptr *data, __u32 offset)
{
        struct tcphdr buffer, *tcp = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));
        __u32 header_length;

        if (!tcp)
                return LULL_COUNTER_PASS_MALFORMED;
        if ((tcp->flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) != TCP_SYN)
                return VERDICT_OTHER;

        header_length = tcp->doff_reserved >> 4 << 2;
        if (header_length < sizeof(*tcp))
                return LULL_COUNTER_PASS_MALFORMED;

        packet->flow.source_port = tcp->source;
        packet->flow.destination_port = tcp->dest;
        packet->header_length = offset + header_length;
        packet->probe = header_length == sizeof(*tcp) && tcp->seq == bpf_htonl(LULL_PROBE_SEQUENCE);
        return VERDICT_FIRST;
}

static __always_inline int parse_udp(struct packet *packet, const struct bpf_dynptr *data, __u32 offset)
{
        struct udphdr buffer, *udp = bpf_dynptr_slice(data, offset, &buffer, sizeof(buffer));
        __u32 length;

        if (!udp)
                return LULL_COUNTER_PASS_MALFORMED;

        length = bpf_ntohs(udp->len);
        if (length < sizeof(*udp) || (!packet->fragment && offset + length > packet->length))
                return LULL_COUNTER_PASS_MALFORMED;

        packet->flow.source_port = udp->source;
        packet->flow.destination_port = udp->dest;
        packet->header_length = offset + sizeof(*udp);
        return VERDICT_FIRST;
}

static __always_inline int parse_transport(struct packet *packet, const struct bpf_dynptr *data, __u32 offset, __u32 skb_length)
{
        int verdict = VERDICT_OTHER;

        if (packet->flow.protocol == IPPROTO_TCP)
                verdict = parse_tcp(packet, data, offset);
        else if (packet->flow.protocol == IPPROTO_UDP)
                verdict = parse_udp(packet, data, offset);
        if (verdict != VERDICT_FIRST)
                return verdict;

        if (packet->length > skb_length || packet->header_length > packet->length)
                return LULL_COUNTER_PASS_MALFORMED;
        return VERDICT_FIRST;
}

static __always_inline void map_ipv4(__u8 address[16], __be32 ipv4)
{
        __u32 *words = (__u32 *)address;

        words[0] = 0;
        words[1] = 0;
        words[2] = bpf_htonl(0xffff);
        words[3] = ipv4;
}

static __always_inline bool is_mapped_ipv4(const __u8 address[16])
{
        const __u32 *words = (const __u32 *)address;

        return words[0] == 0 && words[1] == 0 && words[2] == bpf_htonl(0xffff);
}

static __always_inline int parse_ipv4(struct packet *packet, const struct bpf_dynptr *data, __u32 skb_length)
{
        struct iphdr buffer, *ip = bpf_dynptr_slice(data, 0, &buffer, sizeof(buffer));
        __u32 header_length;
        __u16 fragment;

        if (!ip || ip->version_ihl >> 4 != 4)
                return LULL_COUNTER_PASS_MALFORMED;
        if (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP)
                return VERDICT_OTHER;

        header_length = (ip->version_ihl & 15) << 2;
        if (header_length < sizeof(*ip))
                return LULL_COUNTER_PASS_MALFORMED;
        fragment = bpf_ntohs(ip->frag_off);
        if (fragment & IPV4_FRAGMENT_OFFSET)
                return LULL_COUNTER_PASS_FRAGMENT;

        packet->ipv4 = true;
        packet->fragment = fragment & IPV4_MORE_FRAGMENTS;
        packet->length = bpf_ntohs(ip->tot_len);
        packet->flow.protocol = ip->protocol;
        map_ipv4(packet->flow.source, ip->saddr);
        map_ipv4(packet->flow.destination, ip->daddr);
        return parse_transport(packet, data, header_length, skb_length);
}

/* Steps over one extension header. Returns VERDICT_FIRST to go on, or a verdict. */
static __always_inline int skip_extension(struct packet *packet, const struct bpf_dynptr *data, __u32 *offset)
{
        struct ipv6_opt_hdr buffer, *header = bpf_dynptr_slice(data, *offset, &buffer, sizeof(buffer));
        __u8 type = packet->flow.protocol;

        if (!header)
                return LULL_COUNTER_PASS_MALFORMED;

        if (type == IPPROTO_FRAGMENT) {
                __u16 fragment = bpf_ntohs(((struct ipv6_frag_hdr *)header)->frag_off);

                if (fragment & IPV6_FRAGMENT_OFFSET)
                        return LULL_COUNTER_PASS_FRAGMENT;
                packet->fragment = fragment & IPV6_MORE_FRAGMENTS;
                *offset += sizeof(struct ipv6_frag_hdr);
        } else if (type == IPPROTO_AH) {
                *offset += (header->hdrlen + 2) << 2;
        } else {
                if (type == IPPROTO_ROUTING && header->segments_left)
                        return VERDICT_OTHER; /* the destination is only a stop on its way */
                *offset += (header->hdrlen + 1) << 3;
        }

        packet->flow.protocol = header->nexthdr;
        return VERDICT_FIRST;
}

static __always_inline int parse_ipv6(struct packet *packet, const struct bpf_dynptr *data, __u32 skb_length)
{
        struct ipv6hdr buffer, *ip = bpf_dynptr_slice(data, 0, &buffer, sizeof(buffer));
        __u32 offset = sizeof(*ip);

        if (!ip || bpf_ntohl(ip->version_class_label) >> 28 != 6)
                return LULL_COUNTER_PASS_MALFORMED;

        packet->length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
        packet->flow.protocol = ip->nexthdr;
        __builtin_memcpy(packet->flow.source, ip->saddr, sizeof(ip->saddr));
        __builtin_memcpy(packet->flow.destination, ip->daddr, sizeof(ip->daddr));
        /* These would be taken for IPv4, which has no business on the wire in this form (RFC 4291, 2.5.5.2). */
        if (is_mapped_ipv4(packet->flow.source) || is_mapped_ipv4(packet->flow.destination))
                return VERDICT_OTHER;

        for (int i = 0; i < IPV6_EXTENSIONS_MAX; i++) {
                int verdict;

                switch (packet->flow.protocol) {
                case IPPROTO_TCP:
                case IPPROTO_UDP:
                        return parse_transport(packet, data, offset, skb_length);
                case IPPROTO_HOPOPTS:
                case IPPROTO_DSTOPTS:
                case IPPROTO_ROUTING:
                case IPPROTO_FRAGMENT:
                case IPPROTO_AH:
                        verdict = skip_extension(packet, data, &offset);
                        break;
                default:
                        return VERDICT_OTHER;
                }
                if (verdict != VERDICT_FIRST)
                        return verdict;
        }
        return LULL_COUNTER_PASS_MALFORMED;
}

#endif
