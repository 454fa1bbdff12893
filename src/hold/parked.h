/* SPDX-License-Identifier: Apache-2.0 */
/* The store of parked packets: bounded, in order, and without a clock.
 *
 * A TCP flow keeps one SYN: a retransmission replaces the copy (its TCP timestamp is the newer one) and keeps the flow's place and the
 * time of its first packet. A UDP flow keeps a short queue in order. Flows wait in the queue of their frontend, first come first
 * served. Every bound has an outcome of its own; a packet that is refused is not copied.
 *
 * The structs of a policy and a frontend are embedded in their owners, who must take all flows out (parked_remove()) before they go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A failed allocation in uthash would end the process; this way it leaves the element out and says so in hh.tbl. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/address.h"
#include "hold/pacing.h"
#include "lull_wire.h"

enum {
        PARKED_FLOW_DATAGRAMS = 16,
        PARKED_FLOW_BYTES = 64 * 1024,
        PARKED_POLICY_BYTES = 4 * 1024 * 1024,
        PARKED_TOTAL_BYTES = 16 * 1024 * 1024,
        PARKED_SOURCE_MIN = 64, /* packets that one source prefix may always have, within its policy's bound */
};

struct parked_packet {
        TAILQ_ENTRY(parked_packet) link;
        uint64_t time_ns;
        uint32_t ifindex;
        uint32_t length;
        uint16_t gso_size;
        uint16_t flags; /* enum lull_packet_flags */
        uint8_t data[];
};

struct endpoint;
struct parked_source;
struct parked_queue;

struct parked_flow {
        struct lull_flow key;
        uint64_t first_ns;
        struct parked_queue *queue;
        struct parked_source *source;
        TAILQ_HEAD(, parked_packet) packets;
        uint32_t n_packets;
        uint32_t bytes;  /* of packets */
        uint32_t memory; /* what the bounds in bytes count: the packets with their bookkeeping */
        bool waiting;    /* in its queue; else its owner has taken it out to release it and keeps the copy */
        bool was_released;
        struct pacing_flow pacing;
        struct endpoint *endpoint; /* where it is in flight to, where frontends are translated */
        struct lull_flow answer;   /* how answers from there arrive */
        TAILQ_ENTRY(parked_flow) in_queue;
        TAILQ_ENTRY(parked_flow) by_age;
        UT_hash_handle hh;
};
TAILQ_HEAD(parked_flows, parked_flow);

struct parked_policy {
        uint32_t max_packets;
        uint64_t timeout_ns;
        uint32_t n_packets;
        uint32_t memory;
        struct parked_flows by_age; /* all its flows, the oldest first */
        TAILQ_ENTRY(parked_policy) link;
};
TAILQ_HEAD(parked_policies, parked_policy);

struct parked_queue { /* one a frontend */
        struct parked_policy *policy;
        struct parked_flows waiting;
        uint32_t n_waiting; /* flows */
};

enum parked_outcome {
        PARKED_FIRST,    /* of a flow that was not known */
        PARKED_ANOTHER,  /* the next datagram of a flow */
        PARKED_REPLACED, /* took the place of an earlier copy */
        PARKED_FLOW_FULL,
        PARKED_SOURCE_FULL,
        PARKED_POLICY_FULL,
        PARKED_STORE_FULL,
        PARKED_NO_MEMORY,
};

struct parked;

int parked_new(struct parked **ret_parked);
struct parked *parked_free(struct parked *parked); /* accepts NULL, returns NULL; all flows must be gone */
DEFINE_CLEANUP(struct parked, parked_free)

void parked_policy_init(struct parked_policy *policy, uint32_t max_packets, uint64_t timeout_ns);
void parked_queue_init(struct parked_queue *queue, struct parked_policy *policy);

/* Copies @packet (its length is within what was received). *ret_flow is the packet's flow, or NULL when it was refused. */
enum parked_outcome parked_add(struct parked *parked, struct parked_queue *queue, const struct lull_packet *packet,
                               struct parked_flow **ret_flow);
struct parked_flow *parked_find(const struct parked *parked, const struct lull_flow *key); /* or NULL */
/* Takes @flow out of its queue or puts it back to where its age belongs; it stays in the store either way. */
void parked_take(struct parked_flow *flow);
void parked_put_back(struct parked_flow *flow);
void parked_remove(struct parked *parked, struct parked_flow *flow);
/* Moves @flow to @queue of another policy, where its age belongs; to be called for the oldest first. Returns 0, or -ENOSPC past that
 * policy's packets, or -ENOMEM: then it stays where it is. */
int parked_move(struct parked *parked, struct parked_flow *flow, struct parked_queue *queue);

/* A flow whose time is up, the oldest of its policy, or NULL. */
struct parked_flow *parked_expired(struct parked *parked, uint64_t now_ns);
/* When the next one's is; 0: never. */
uint64_t parked_deadline(const struct parked *parked);

size_t parked_packets(const struct parked *parked);
size_t parked_memory(const struct parked *parked);
/* All policies that have something parked. */
const struct parked_policies *parked_policies(const struct parked *parked);

struct flow flow_from_wire(const struct lull_flow *wire);
struct lull_flow flow_to_wire(const struct flow *flow);
