/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the programs on a workload's cgroup and the daemon say to each other: map values, iterator and ring buffer records.
 *
 * Fixed-width fields, explicit padding, sizes asserted. The sizes are the layout's version: pinned maps of another shape are replaced.
 * Addresses are 16 bytes in network order, IPv4 as ::ffff:a.b.c.d; ports are in host order; times are bpf_ktime_get_coarse_ns(),
 * CLOCK_MONOTONIC_COARSE: CLOCK_MONOTONIC, up to a tick behind. A workload is named by its cgroup2 id, which the kernel never uses twice.
 */
#ifndef ACTIVITY_WIRE_H
#define ACTIVITY_WIRE_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#elif !defined(static_assert)
#define static_assert _Static_assert
#endif

enum {
        ACTIVITY_PORTS_MAX = 65536,    /* ports of all workloads */
        ACTIVITY_RULES_MAX = 65536,    /* ignore rules of all workloads */
        ACTIVITY_CONNECTS_MAX = 16384, /* own outgoing connections known at once; a forgotten one's other end counts as served */
        ACTIVITY_PROBES_MAX = 8192,    /* connections that the kubelet has open; a forgotten one counts as served */
        ACTIVITY_SLOTS = 8192,         /* connections found without a search; a power of two */
        ACTIVITY_CONNECTIONS_MAX = 262144, /* besides, of all workloads; one past that is taken for an unanswered request */
        ACTIVITY_RING_BYTES = 64 * 1024,   /* doorbells; a lost one costs a hint */
        ACTIVITY_RECORDS_MAX = 64,    /* TLS records or HTTP/2 frames looked at in one packet; past that the stream is in doubt */
        ACTIVITY_PENDING_MAX = 65536, /* bytes of one direction of a connection that the totals may lack */
};

/* How far the totals may be behind a busy connection in a plain protocol. */
#define ACTIVITY_BEHIND_NS 50000000ull

/* Map "activity_config", one a cgroup: written by the daemon. */
struct activity_config {
        __u64 cgroup;     /* 0: not written yet, nothing counts */
        __u32 generation; /* of ports and rules; a new one has each socket classed again at its next packet */
        __u32 has_rules;  /* whether there are ignore rules */
};
static_assert(sizeof(struct activity_config) == 16, "wire");

/* Map "activity_totals", one a cgroup and CPU; packets touch the first 64 bytes. The counts never decrease. */
struct activity_totals {
        __u64 epoch; /* the programs' variable of that name when config was copied: the daemon raises it after each change */
        struct activity_config config;
        __u64 last_ns;          /* payload of a served connection or datagram */
        __u64 outbound_last_ns; /* payload of an outbound one */
        __u64 received_bytes;   /* served payload */
        __u64 sent_bytes;
        __u64 connections; /* served, accepted */

        __u64 untracked_ns; /* when there last was no room in "activity_connections"; 0: never */
};
static_assert(sizeof(struct activity_totals) == 72, "wire");

/* Map "activity_ports": the policy's ports. */
struct activity_port_key {
        __u64 cgroup;
        __u32 generation;
        __u16 port;
        __u8 transport; /* IPPROTO_TCP, IPPROTO_UDP */
        __u8 padding;
};
static_assert(sizeof(struct activity_port_key) == 16, "wire");

/* Map "activity_rules": longest prefix match. The prefix length counts the bits before the address too; port 0 is every port. */
struct activity_rule_key {
        __u32 prefix_length;
        __u32 generation;
        __u64 cgroup;
        __u32 port;
        __u8 address[16];
        __u32 padding;
};
enum { ACTIVITY_RULE_PREFIX = 128 };
static_assert(sizeof(struct activity_rule_key) == 40, "wire");

struct activity_tuple {
        __u8 local[16];
        __u8 remote[16];
        __u16 local_port;
        __u16 remote_port;
        __u32 transport;
};
static_assert(sizeof(struct activity_tuple) == 40, "wire");

enum activity_class {
        ACTIVITY_OTHER,    /* accepted on a port that is not the policy's */
        ACTIVITY_SERVED,   /* accepted on one of the policy's ports, or a UDP socket bound to one */
        ACTIVITY_SELF,     /* both ends are in the workload's cgroup */
        ACTIVITY_OUTBOUND, /* made by the workload */
        ACTIVITY_IGNORED,  /* the policy ignores the peer */
        ACTIVITY_PROBE,    /* the kubelet made it */
};

enum activity_protocol {
        ACTIVITY_PROTOCOL_NEW, /* no payload seen yet */
        ACTIVITY_PROTOCOL_PLAIN,
        ACTIVITY_PROTOCOL_TLS,
        ACTIVITY_PROTOCOL_HTTP2,
        ACTIVITY_PROTOCOL_UNKNOWN, /* the connection's begin was not seen */
        ACTIVITY_PROTOCOL_MAX,
};

/* One direction of a connection, cut into records (TLS) or frames (HTTP/2). */
struct activity_stream {
        __u32 skip;      /* bytes of the current record still to come */
        __u8 protocol;   /* that it is cut for */
        __u8 synced;     /* 0: record boundaries are not known */
        __u8 counts;     /* whether the current record is activity */
        __u8 have;       /* bytes of the next header known */
        __u8 header[20]; /* of the next record; longer than any, so that the verifier sees that no load can leave it */
};
static_assert(sizeof(struct activity_stream) == 28, "wire");

enum activity_received_flags {                                        /* written by the receiving side only */
                               ACTIVITY_TLS_CLIENT_DATA = 1 << 0,     /* the client has sent an application data record */
                               ACTIVITY_TLS_CLIENT_FINISHED = 1 << 1, /* TLS 1.3: one of a Finished message's size was among them */
                               ACTIVITY_TLS_H2_OFFERED = 1 << 2,      /* the client offered HTTP/2 */
                               ACTIVITY_TLS_H2_DOUBT = 1 << 3,        /* its offer could not be read */
                               ACTIVITY_TLS_H2_SETTLED = 1 << 5,      /* the client has acknowledged the server's SETTINGS */
                               ACTIVITY_NOT_HTTP1 = 1 << 7,           /* plain, and what the client said first is no HTTP/1 */
                               ACTIVITY_TLS_H2_PREFACE = 1 << 6,      /* what an HTTP/2 client says first has come */
                               ACTIVITY_H2_CROWDED = 1 << 4,          /* two open streams share a bit: busy until requestTimeout */
                               ACTIVITY_ASKED = 1 << 8,               /* plain: asked_seq is set */
                               ACTIVITY_ASKED_FAR = 1 << 9, /* plain: so much is unanswered that sequence numbers may wrap */
};

enum activity_sent_flags { /* written by the sending side only */
                           ACTIVITY_TLS_13 = 1 << 0,
                           ACTIVITY_TLS_CIPHER_CHANGED = 1 << 5, /* the server has sent a ChangeCipherSpec */
                           ACTIVITY_TLS_12 = 1 << 6,             /* and a handshake message after it */
                           ACTIVITY_TLS_TICKETS_OVER = 1 << 1,   /* no more session tickets are expected */
                           ACTIVITY_TLS_FINISHED = 1 << 4,       /* TLS 1.3: one of a Finished message's size was sent */
                           ACTIVITY_TLS_H2_SETTINGS = 1 << 2,    /* what an HTTP/2 server says first was sent */
                           ACTIVITY_UPGRADED = 1 << 3,           /* HTTP/1.1 101 was sent: WebSocket frames may follow */
                           ACTIVITY_ANSWERED = 1 << 7,           /* plain: answered_seq is set */
                           ACTIVITY_ANSWERS_UNREAD = 1 << 8,     /* plain: it is no HTTP/1, whose answers are looked into */
};

/* Map "activity_slots", of TCP connections: each has the one at its socket's cookie modulo the number of slots, unless another has it;
 * map "activity_connections", of those by their cookie; and map "activity_sockets", storage of UDP sockets.
 *
 * Packets come in on one CPU while answers go out on another, so what each writes has a cache line of its own. Fields are written by the
 * receiving or by the sending side, never by both, but for the two times of the last close look: either side may ask for another. In
 * plain protocols a request is open while what was asked goes further than what was acknowledged when an answer was sent last;
 * in TLS and HTTP/2 while requests != answered or a stream's bit is set. */
struct activity_socket {
        __u64 cookie;             /* 0: the slot is free */
        __u64 request_since_ns;   /* receiving side: when the first unanswered request came */
        __u64 request_last_ns;    /* when the last one came */
        __u64 received_looked;    /* jiffies when a packet was looked at closely; 0: the next one is to be, too */
        __u64 received_looked_ns; /* the same time */
        __u32 received_next;      /* sequence number expected */
        __u32 received_pending;   /* bytes that are not in the totals yet */
        __u32 received_flags;
        __u32 asked_seq;    /* plain: sequence number after the last payload that asks */
        __u32 far_answered; /* plain: value of answered_seq when what is unanswered had become that much */
        __u32 payloads;     /* plain: how many were looked into */

        __u64 sent_cookie; /* sending side: a copy */
        __u64 answered_ns; /* plain: when answered_seq was set */
        __u64 sent_looked; /* likewise */
        __u64 sent_looked_ns;
        __u64 sent_last_ns; /* plain: when the last payload was sent */
        __u32 sent_next;    /* sequence number expected */
        __u32 sent_pending;
        __u32 sent_flags;
        __u32 answered_seq; /* plain: what the last answer acknowledged */
        __u32 answered;     /* TLS, HTTP/2: value of requests that was answered last */
        __u32 small_bytes;  /* sent since small_since, too little to be an answer */

        __u64 cgroup;                /* both: 0 until the rest of this line is known */
        struct activity_tuple tuple; /* of UDP only the local port */
        __u32 generation;
        __u8 class;
        __u8 accepted;
        __u8 protocol;
        __u8 peer_checked; /* outbound: whether the other end was looked for in this cgroup */
        __u8 closing;      /* it has left ESTABLISHED and CLOSE_WAIT: what is still to be sent counts, the connection does not */
        __u8 padding[7];

        __u64 streams[2];      /* HTTP/2: open streams by (id / 2) modulo 128; cleared by both sides, atomically */
        __u64 client_data_ns;  /* receiving side: when the client's first application data record came */
        __u32 requests;        /* TLS, HTTP/2: counts what asks for an answer */
        __u32 data_requests;   /* TLS: value of requests when the last one came that was not the handshake's */
        __u32 joined_requests; /* HTTP/2 over TLS: its value when one came last while another was open */
        __u32 preface_request; /* HTTP/2 over TLS: the one that is open for what may be the client's preface alone */
        __u32 ping_request;    /* HTTP/2 over TLS: the one that is open for what looks like a PING, if data_requests is the same */
        __u32 pings_received;  /* what looked like a PING or its acknowledgement */
        __u32 last_stream;     /* HTTP/2 */
        struct activity_stream received;

        struct activity_stream sent; /* sending side */
        __u16 ticket_bytes;          /* size of the first session ticket */
        __u16 tickets;
        __u64 doubt_ns;    /* until when requests came of which only some may have been answered; 0: none */
        __u32 small_since; /* what was acknowledged when small_bytes began */
        __u32 pings_sent;
};
static_assert(sizeof(struct activity_socket) == 320, "wire");
static_assert(__builtin_offsetof(struct activity_socket, sent_cookie) == 64, "the sending side's cache line");
static_assert(__builtin_offsetof(struct activity_socket, cgroup) == 128, "both sides' cache line");

/* Map "activity_connects": the workload's own outgoing connections, as the connecting end sees them → whether the other end is its own
 * too. Map "activity_probes": likewise the kubelet's, with cgroup 0 → nothing. */
struct activity_connect_key {
        __u64 cgroup;
        struct activity_tuple tuple;
};
static_assert(sizeof(struct activity_connect_key) == 48, "wire");

/* Ring buffer "activity_events": somebody listens now. */
struct activity_event {
        __u64 cgroup;
        __u16 port;
        __u8 transport;
        __u8 padding[5];
};
static_assert(sizeof(struct activity_event) == 16, "wire");

#endif
