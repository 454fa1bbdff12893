/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the BPF programs and the daemon say to each other: map keys and values, ring buffer records.
 *
 * Fixed-width fields, explicit padding, sizes asserted; changing one changes LULL_WIRE_LAYOUT, and a daemon that finds pinned maps
 * of another layout replaces them. Addresses are 16 bytes in network order, IPv4 as ::ffff:a.b.c.d; ports (__be16) are in network
 * order; times are bpf_ktime_get_ns(), which is CLOCK_MONOTONIC.
 */
#ifndef LULL_WIRE_H
#define LULL_WIRE_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#else
#define static_assert _Static_assert
#endif

#define LULL_WIRE_LAYOUT 2

enum {
        LULL_FRONTENDS_MAX = 16384,    /* frontends held at once, wildcards of both families counted twice */
        LULL_PASS_MAX = 65536,         /* flows exempt at once; past that the least recently used is forgotten */
        LULL_ANSWERS_MAX = 16384,      /* flows on their way to an endpoint, likewise */
        LULL_RULES_MAX = 65536,        /* prefixes in all ignore and wake.from lists */
        LULL_LOCAL_MAX = 4096,         /* local prefixes of this host */
        LULL_RING_BYTES = 1024 * 1024, /* hold's ring buffer; the daemon maps it twice */
        LULL_HEARTBEAT_MAX_MS = 3000,  /* a daemon silent for longer is taken for dead, and traffic passes */
        LULL_PACKET_SMALL = 256,       /* room for data in a record: a SYN fits the first, nearly every datagram the second */
        LULL_PACKET_MEDIUM = 2048,
        LULL_PACKET_LARGE = 65536,
};

/* The sequence number of a half-open probe, whose TCP header has no options either: a SYN that no hook of any node takes for a client's.
 * Translation leaves both as they are, so that a probe is known also where a data plane has led it to another node's parking frontend.
 * A client that says the same gets what it would get without lull. */
#define LULL_PROBE_SEQUENCE 0x6c756c6cU

struct lull_flow {
        __u8 source[16];
        __u8 destination[16];
        __be16 source_port;
        __be16 destination_port;
        __u8 protocol;
        __u8 padding[3];
};
static_assert(sizeof(struct lull_flow) == 40, "wire");

/* Map "frontends": who is asleep. A wildcard has an all-zero address of its family (::ffff:0.0.0.0 or ::). */
struct lull_frontend_key {
        __u8 address[16];
        __be16 port;
        __u8 protocol;
        __u8 padding;
};
static_assert(sizeof(struct lull_frontend_key) == 20, "wire");

enum lull_frontend_flags {
        LULL_FRONTEND_ALLOW_LIST = 1 << 0,  /* only sources in map "allowed" may wake it */
        LULL_FRONTEND_IGNORE_LIST = 1 << 1, /* sources in map "ignored" may not */
};

struct lull_frontend {
        __u32 slot; /* index into map "demand" */
        __u32 flags;
};
static_assert(sizeof(struct lull_frontend) == 8, "wire");

/* Map "demand", an array mapped into the daemon: the truth about who asked, whatever happened to the ring buffer. The first cache
 * line belongs to the kernel side, the second to the daemon. */
struct lull_demand {
        __u64 first_ns; /* 0: nobody since the daemon cleared it */
        __u64 last_ns;
        __u64 packets;   /* never decreases */
        __u64 published; /* packets copied to the ring buffer; never decreases */
        __u8 source[16]; /* of the first packet */
        __be16 source_port;
        __u8 padding[14];

        __u64 consumed; /* published packets the daemon no longer keeps; never above published */
        __u64 limit;    /* packets published and not consumed above which the hook lets packets pass */
        __u8 reserved[48];
};
static_assert(sizeof(struct lull_demand) == 128, "wire");

/* Maps "ignored" and "allowed": longest prefix match on (slot, source). The prefix length counts the 32 bits of the slot too. */
struct lull_rule_key {
        __u32 prefix_length;
        __u32 slot;
        __u8 address[16];
};
static_assert(sizeof(struct lull_rule_key) == 24, "wire");

/* Map "local": the prefixes that this host answers for, as its local routing table has them. */
struct lull_local_key {
        __u32 prefix_length;
        __u8 address[16];
};
static_assert(sizeof(struct lull_local_key) == 20, "wire");

/* Map "answers": from the flow that the answers to a released flow belong to, as they arrive from its endpoint, to what was released. A
 * refusal among them (a reset, an ICMP error) is dropped until then, and told, so that the flow can go to another endpoint. */
struct lull_answer {
        struct lull_flow flow; /* as its sender sent it */
        __u32 slot;
        __u32 late; /* it has gone to another endpoint already, or waits: what still comes is dropped only */
        __u64 expiry_ns;
};
static_assert(sizeof(struct lull_answer) == 56, "wire");

/* Map "control", one entry, mapped into the daemon. */
struct lull_control {
        __u64 heartbeat_ns;
        __u64 hold_until_ns; /* until then packets are dropped and not published: their retransmissions find the next daemon */
        __u32 layout;        /* LULL_WIRE_LAYOUT */
        __u32 padding;
};
static_assert(sizeof(struct lull_control) == 24, "wire");

/* Map "counters": one per-CPU __u64 a verdict. The names for people are in src/hold/counters.c. */
enum lull_counter {
        LULL_COUNTER_HELD,            /* dropped here, copied to the daemon */
        LULL_COUNTER_HELD_PLANNED,    /* dropped during a planned restart */
        LULL_COUNTER_HELD_RING_FULL,  /* dropped, no room for the copy: its retransmission is the queue */
        LULL_COUNTER_HELD_UNREADABLE, /* dropped, the copy failed */
        LULL_COUNTER_HELD_REFUSAL,    /* an endpoint's refusal of a released flow: dropped, the flow goes elsewhere */
        LULL_COUNTER_PASS_FLOW,       /* to a sleeping frontend, but in map "pass", or a probe of lull's own */
        LULL_COUNTER_PASS_STALE,      /* the daemon is dead or hung */
        LULL_COUNTER_PASS_IGNORED,
        LULL_COUNTER_PASS_NOT_ALLOWED,
        LULL_COUNTER_PASS_QUOTA,
        LULL_COUNTER_PASS_NOT_LOCAL, /* a wildcard frontend's port, but another host's address */
        LULL_COUNTER_PASS_FRAGMENT,  /* a fragment without its ports, not reassembled */
        LULL_COUNTER_PASS_MALFORMED, /* headers that end early or make no sense */
        LULL_COUNTER_PASS_TOO_LARGE, /* cannot be re-injected; counted as demand */
        LULL_COUNTER_MAX,
};

/* Ring buffer "events". */
enum lull_packet_flags {
        LULL_PACKET_CHECKSUM_PARTIAL = 1 << 0, /* the checksum covers the pseudo header only */
        LULL_PACKET_LOOPBACK = 1 << 1,         /* came in on a loopback interface: from this host */
        LULL_PACKET_LOCAL_OUT = 1 << 2,        /* about to leave this host, by whichever interface: there is no ifindex */
        LULL_PACKET_REFUSED = 1 << 3,          /* no packet: the flow was refused by its endpoint */
};

struct lull_packet {
        __u64 time_ns;
        __u32 slot;
        __u32 ifindex;
        __u32 length;   /* bytes of data, from the IP header on */
        __u16 gso_size; /* 0, or the payload of one datagram of a UDP GSO packet */
        __u16 flags;
        struct lull_flow flow;
        __u8 data[];
};
static_assert(sizeof(struct lull_packet) == 64, "wire");

#endif
