/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The kernel's types, as far as the programs here use them.
 *
 * Kernel structs name only the fields used and are relocated when they are loaded (preserve_access_index: CO-RE), so neither the build
 * machine's kernel nor its headers matter. Structs of the wire (packet headers) are whole and never relocated.
 */
#ifndef VMLINUX_H
#define VMLINUX_H

#include <stdbool.h>

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;

#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */

enum bpf_map_type {
        BPF_MAP_TYPE_HASH = 1,
        BPF_MAP_TYPE_ARRAY = 2,
        BPF_MAP_TYPE_PERCPU_HASH = 5,
        BPF_MAP_TYPE_PERCPU_ARRAY = 6,
        BPF_MAP_TYPE_LRU_HASH = 9,
        BPF_MAP_TYPE_LPM_TRIE = 11,
        BPF_MAP_TYPE_CGROUP_STORAGE = 19,
        BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE = 21,
        BPF_MAP_TYPE_SK_STORAGE = 24,
        BPF_MAP_TYPE_RINGBUF = 27,
        BPF_MAP_TYPE_CGRP_STORAGE = 32,
};

enum {
        BPF_ANY = 0,
        BPF_NOEXIST = 1,
        BPF_EXIST = 2,
};

enum {
        BPF_F_NO_PREALLOC = 1 << 0,
        BPF_F_CLONE = 1 << 9,
        BPF_F_MMAPABLE = 1 << 10,
};

enum {
        BPF_F_INGRESS = 1 << 0,                  /* bpf_clone_redirect() */
        BPF_SK_STORAGE_GET_F_CREATE = 1 << 0,    /* bpf_sk_storage_get() */
        BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0, /* the other storages */
        BPF_RB_NO_WAKEUP = 1 << 0,               /* ring buffer */
        BPF_RB_FORCE_WAKEUP = 1 << 1,
};

enum bpf_hdr_start_off {
        BPF_HDR_START_MAC = 0,
        BPF_HDR_START_NET = 1,
};

enum {
        BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
        BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
        BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
        BPF_SOCK_OPS_STATE_CB = 10,
        BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
};

enum {
        BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
};

enum {
        BPF_TCP_ESTABLISHED = 1,
        BPF_TCP_SYN_SENT = 2,
        BPF_TCP_SYN_RECV = 3,
        BPF_TCP_CLOSE = 7,
        BPF_TCP_CLOSE_WAIT = 8,
        BPF_TCP_LISTEN = 10,
        BPF_TCP_NEW_SYN_RECV = 12,
};

/* include/uapi/linux/{in,if_ether,if,netfilter}.h, include/linux/{socket,skbuff}.h */

enum {
        AF_INET = 2,
        AF_INET6 = 10,
        NFPROTO_IPV4 = 2,
        NFPROTO_IPV6 = 10,
        ETH_P_IP = 0x0800,
        ETH_P_IPV6 = 0x86dd,
        NF_DROP = 0,
        NF_ACCEPT = 1,
        IFF_LOOPBACK = 1 << 3,
        CHECKSUM_PARTIAL = 3,
};

enum {
        SOCK_STREAM = 1,
        SOCK_DGRAM = 2,
};

enum {
        IPPROTO_HOPOPTS = 0,
        IPPROTO_ICMP = 1,
        IPPROTO_TCP = 6,
        IPPROTO_UDP = 17,
        IPPROTO_ROUTING = 43,
        IPPROTO_FRAGMENT = 44,
        IPPROTO_AH = 51,
        IPPROTO_ICMPV6 = 58,
        IPPROTO_DSTOPTS = 60,
};

/* Headers on the wire. Bit fields are spelled as bytes. */

struct iphdr { /* RFC 791 */
        __u8 version_ihl;
        __u8 tos;
        __be16 tot_len;
        __be16 id;
        __be16 frag_off;
        __u8 ttl;
        __u8 protocol;
        __sum16 check;
        __be32 saddr;
        __be32 daddr;
};

struct ipv6hdr { /* RFC 8200 */
        __be32 version_class_label;
        __be16 payload_len;
        __u8 nexthdr;
        __u8 hop_limit;
        __u8 saddr[16];
        __u8 daddr[16];
};

struct ipv6_opt_hdr { /* hop-by-hop and destination options, routing (RFC 8200), authentication (RFC 4302) */
        __u8 nexthdr;
        __u8 hdrlen;
        __u8 type;          /* routing */
        __u8 segments_left; /* routing */
        __u8 rest[4];
};

struct ipv6_frag_hdr {
        __u8 nexthdr;
        __u8 reserved;
        __be16 frag_off; /* 13 bits of offset, 2 reserved, more-fragments */
        __be32 identification;
};

struct tcphdr { /* RFC 9293 */
        __be16 source;
        __be16 dest;
        __be32 seq;
        __be32 ack_seq;
        __u8 doff_reserved; /* the upper 4 bits: words of header */
        __u8 flags;
        __be16 window;
        __sum16 check;
        __be16 urg_ptr;
};

struct udphdr { /* RFC 768 */
        __be16 source;
        __be16 dest;
        __be16 len;
        __sum16 check;
};

/* The kernel's own, relocated when loaded. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net_device {
        unsigned int flags;
        int ifindex;
};

struct skb_shared_info {
        unsigned short gso_size;
};

struct sk_buff {
        unsigned int len;
        __u8 ip_summed : 2;
        __be16 protocol;
        __u16 transport_header;
        __u16 network_header;
        unsigned int end; /* an offset from head on 64-bit machines */
        unsigned char *head;
};

struct nf_hook_state {
        __u8 hook;
        __u8 pf;
        struct net_device *in;
        struct net_device *out;
};

struct bpf_nf_ctx {
        const struct nf_hook_state *state;
        struct sk_buff *skb;
};

/* What programs are given in place of kernel structs. */

struct bpf_sock {
        __u32 bound_dev_if;
        __u32 family;
        __u32 type;
        __u32 protocol;
        __u32 mark;
        __u32 priority;
        __u32 src_ip4;
        __u32 src_ip6[4];
        __u32 src_port; /* host order */
        __be16 dst_port;
        __u32 dst_ip4;
        __u32 dst_ip6[4];
        __u32 state;
};

struct __sk_buff {
        __u32 len;
        __u32 pkt_type;
        __u32 mark;
        __u32 protocol;
        __u32 ifindex;
        __u32 cb[5];
        __u32 data;
        __u32 data_end;
        __u32 family;
        __u32 remote_ip4;
        __u32 local_ip4;
        __u32 remote_ip6[4];
        __u32 local_ip6[4];
        __u32 remote_port; /* network order */
        __u32 local_port;  /* host order */
        __u32 gso_size;
        struct bpf_sock *sk;
};

struct bpf_sock_ops {
        __u32 op;
        __u32 args[4];
        __u32 family;
        __u32 remote_ip4;
        __u32 local_ip4;
        __u32 remote_ip6[4];
        __u32 local_ip6[4];
        __u32 remote_port; /* network order */
        __u32 local_port;  /* host order */
        __u32 is_fullsock;
        __u32 bpf_sock_ops_cb_flags;
        __u32 state;
        __u32 rcv_nxt;
        __u64 bytes_received;
        __u64 bytes_acked;
        struct bpf_sock *sk;
        void *skb_data;
        void *skb_data_end;
        __u32 skb_len; /* from the TCP header on */
};

struct bpf_tcp_sock {
        __u32 snd_cwnd;
        __u32 srtt_us;
        __u32 rtt_min;
        __u32 snd_ssthresh;
        __u32 rcv_nxt;
        __u32 snd_nxt;
};

struct bpf_sock_addr {
        __u32 user_family;
        __u32 user_ip4;
        __u32 user_ip6[4];
        __u32 user_port;
        __u32 family;
        __u32 type;
        __u32 protocol;
        struct bpf_sock *sk;
};

/* include/net/sock.h, include/linux/bpf.h, net/ipv4/tcp_ipv4.c: what an iterator over TCP sockets is given */

struct sock_common {
        volatile unsigned char skc_state;
};

struct tcp_sock;

struct seq_file;

struct bpf_iter_meta {
        struct seq_file *seq;
};

struct bpf_iter__tcp {
        struct bpf_iter_meta *meta;
        struct sock_common *sk_common;
};

#pragma clang attribute pop

struct bpf_dynptr {
        __u64 opaque[2];
} __attribute__((aligned(8)));

#endif
