/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A packet as the cgroup hooks see it: it begins at the IP header and belongs to a socket. */
#ifndef ACTIVITY_PACKET_BPF_H
#define ACTIVITY_PACKET_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "activity_wire.h"

enum { IPV6_EXTENSIONS_MAX = 4, IP_HEADERS_MAX = 4096 };

enum tcp_flags { TCP_FLAG_FIN = 1 << 0, TCP_FLAG_RST = 1 << 2 };

struct payload {
        __u32 offset; /* in the packet */
        __u32 length;
        __u32 seq; /* TCP */
        __u32 acknowledged;
        __u32 flags; /* enum tcp_flags */
};

static __always_inline int ipv6_transport(struct __sk_buff *skb, __u32 protocol, __u32 *ret_offset)
{
        __u8 next;
        __u32 offset = sizeof(struct ipv6hdr);

        if (bpf_skb_load_bytes(skb, __builtin_offsetof(struct ipv6hdr, nexthdr), &next, 1) < 0)
                return -1;
        for (int i = 0; i < IPV6_EXTENSIONS_MAX && next != protocol; i++) {
                __u8 header[2];

                if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
                        return -1;
                if (bpf_skb_load_bytes(skb, offset, header, sizeof(header)) < 0)
                        return -1;
                next = header[0];
                offset += (header[1] + 1u) * 8;
        }
        if (next != protocol)
                return -1;

        *ret_offset = offset;
        return 0;
}

/* Where the transport header is. Headers of local packets are linear, so the common case reads them in place. */
static __always_inline int transport_offset(struct __sk_buff *skb, __u32 protocol, __u32 *ret_offset)
{
        void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

        if (skb->protocol == bpf_htons(ETH_P_IP)) {
                struct iphdr *ip = data;

                if ((void *)(ip + 1) > end || ip->protocol != protocol)
                        return -1;
                *ret_offset = (ip->version_ihl & 0xf) * 4u;
                return 0;
        }
        if (skb->protocol == bpf_htons(ETH_P_IPV6))
                return ipv6_transport(skb, protocol, ret_offset);
        return -1;
}

/* Reads in place: nearly every packet gets no further than this, or little. Fails for what is not TCP. */
static __always_inline int tcp_payload(struct __sk_buff *skb, struct payload *payload)
{
        void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
        struct ipv6hdr *ipv6 = data;
        struct tcphdr *header;
        __u32 offset;

        if (skb->protocol == bpf_htons(ETH_P_IPV6) && (void *)(ipv6 + 1) <= end && ipv6->nexthdr == IPPROTO_TCP)
                offset = sizeof(*ipv6);
        else if (transport_offset(skb, IPPROTO_TCP, &offset) < 0 || offset > IP_HEADERS_MAX)
                return -1;
        header = data + offset;
        if ((void *)(header + 1) > end)
                return -1;

        payload->offset = offset + (header->doff_reserved >> 4) * 4u;
        payload->length = skb->len > payload->offset ? skb->len - payload->offset : 0;
        payload->seq = bpf_ntohl(header->seq);
        payload->acknowledged = bpf_ntohl(header->ack_seq);
        payload->flags = header->flags;
        return 0;
}

static __always_inline void address_from_ipv4(__u8 address[16], __be32 ipv4)
{
        __builtin_memset(address, 0, 10);
        address[10] = address[11] = 0xff;
        __builtin_memcpy(address + 12, &ipv4, 4);
}

/* The two ends, from the headers; @received says which of them is the local one. */
static __always_inline int packet_tuple(struct __sk_buff *skb, __u32 transport, bool received, struct activity_tuple *tuple)
{
        __u8 *source = received ? tuple->remote : tuple->local, *destination = received ? tuple->local : tuple->remote;
        __be16 ports[2];
        __u32 offset;

        if (transport_offset(skb, transport, &offset) < 0 || bpf_skb_load_bytes(skb, offset, ports, sizeof(ports)) < 0)
                return -1;
        if (skb->protocol == bpf_htons(ETH_P_IP)) {
                __be32 addresses[2];

                if (bpf_skb_load_bytes(skb, __builtin_offsetof(struct iphdr, saddr), addresses, sizeof(addresses)) < 0)
                        return -1;
                address_from_ipv4(source, addresses[0]);
                address_from_ipv4(destination, addresses[1]);
        } else if (bpf_skb_load_bytes(skb, __builtin_offsetof(struct ipv6hdr, saddr), source, 16) < 0 ||
                   bpf_skb_load_bytes(skb, __builtin_offsetof(struct ipv6hdr, daddr), destination, 16) < 0) {
                return -1;
        }

        tuple->local_port = bpf_ntohs(received ? ports[1] : ports[0]);
        tuple->remote_port = bpf_ntohs(received ? ports[0] : ports[1]);
        tuple->transport = transport;
        return 0;
}

#endif
