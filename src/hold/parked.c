/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/parked.h"

#include <netinet/in.h>
#include <string.h>

struct source_key {
        const struct parked_policy *policy;
        uint8_t prefix[16];
};

struct parked_source {
        struct source_key key;
        uint32_t n_packets;
        UT_hash_handle hh;
};

struct parked {
        struct parked_flow *flows;     /* by key */
        struct parked_source *sources; /* by policy and prefix */
        struct parked_policies policies;
        size_t n_packets;
        size_t memory;
};

int parked_new(struct parked **ret_parked)
{
        struct parked *parked = calloc(1, sizeof(*parked));

        if (!parked)
                return -ENOMEM;

        TAILQ_INIT(&parked->policies);
        *ret_parked = parked;
        return 0;
}

struct parked *parked_free(struct parked *parked)
{
        free(parked);
        return NULL;
}

void parked_policy_init(struct parked_policy *policy, uint32_t max_packets, uint64_t timeout_ns)
{
        *policy = (struct parked_policy){ .max_packets = max_packets, .timeout_ns = timeout_ns };
        TAILQ_INIT(&policy->by_age);
}

void parked_queue_init(struct parked_queue *queue, struct parked_policy *policy)
{
        *queue = (struct parked_queue){ .policy = policy };
        TAILQ_INIT(&queue->waiting);
}

static struct source_key source_key(const struct parked_policy *policy, const struct lull_flow *flow)
{
        struct address source = address_from_bytes(AF_INET6, flow->source);
        struct source_key key;

        memset(&key, 0, sizeof(key)); /* hashed as bytes, padding included */
        key.policy = policy;
        memcpy(key.prefix, flow->source, address_is_ipv4(&source) ? 16 : 8);
        return key;
}

static struct parked_source *source_get(struct parked *parked, const struct source_key *key)
{
        struct parked_source *source;

        HASH_FIND(hh, parked->sources, key, sizeof(*key), source);
        if (source)
                return source;

        source = calloc(1, sizeof(*source));
        if (!source)
                return NULL;

        source->key = *key;
        HASH_ADD(hh, parked->sources, key, sizeof(source->key), source);
        if (!source->hh.tbl) {
                free(source);
                return NULL;
        }
        return source;
}

static void source_put(struct parked *parked, struct parked_source *source)
{
        if (source->n_packets > 0)
                return;

        HASH_DEL(parked->sources, source);
        free(source);
}

static uint32_t packet_memory(uint32_t length)
{
        return (uint32_t)sizeof(struct parked_packet) + length;
}

/* Whether @memory more bytes (and a packet, unless it replaces one) fit. */
static enum parked_outcome check_bounds(const struct parked *parked, const struct parked_policy *policy,
                                        const struct parked_source *source, uint32_t memory, bool replaces)
{
        uint32_t source_max = MAX(policy->max_packets / 4, (uint32_t)PARKED_SOURCE_MIN);

        if (parked->memory + memory > PARKED_TOTAL_BYTES)
                return PARKED_STORE_FULL;
        if (policy->memory + memory > PARKED_POLICY_BYTES)
                return PARKED_POLICY_FULL;
        if (replaces)
                return PARKED_REPLACED;
        if (source->n_packets >= source_max)
                return PARKED_SOURCE_FULL;
        if (policy->n_packets >= policy->max_packets)
                return PARKED_POLICY_FULL;
        return PARKED_ANOTHER;
}

static struct parked_packet *packet_copy(const struct lull_packet *packet)
{
        struct parked_packet *copy = malloc(packet_memory(packet->length));

        if (!copy)
                return NULL;

        *copy = (struct parked_packet){
                .time_ns = packet->time_ns,
                .ifindex = packet->ifindex,
                .length = packet->length,
                .gso_size = packet->gso_size,
                .flags = packet->flags,
        };
        memcpy(copy->data, packet->data, packet->length);
        return copy;
}

static void flow_attach(struct parked *parked, struct parked_flow *flow, struct parked_packet *packet)
{
        struct parked_policy *policy = flow->queue->policy;
        uint32_t memory = packet_memory(packet->length);

        if (TAILQ_EMPTY(&policy->by_age))
                TAILQ_INSERT_TAIL(&parked->policies, policy, link);
        if (flow->n_packets == 0)
                TAILQ_INSERT_TAIL(&policy->by_age, flow, by_age);

        TAILQ_INSERT_TAIL(&flow->packets, packet, link);
        flow->n_packets++;
        flow->bytes += packet->length;
        flow->memory += memory;
        flow->source->n_packets++;
        policy->n_packets++;
        policy->memory += memory;
        parked->n_packets++;
        parked->memory += memory;
}

static void flow_detach(struct parked *parked, struct parked_flow *flow, struct parked_packet *packet)
{
        struct parked_policy *policy = flow->queue->policy;
        uint32_t memory = packet_memory(packet->length);

        TAILQ_REMOVE(&flow->packets, packet, link);
        flow->n_packets--;
        flow->bytes -= packet->length;
        flow->memory -= memory;
        flow->source->n_packets--;
        policy->n_packets--;
        policy->memory -= memory;
        parked->n_packets--;
        parked->memory -= memory;
        free(packet);
}

static void flow_forget(struct parked *parked, struct parked_flow *flow)
{
        struct parked_policy *policy = flow->queue->policy;

        TAILQ_REMOVE(&policy->by_age, flow, by_age);
        if (TAILQ_EMPTY(&policy->by_age))
                TAILQ_REMOVE(&parked->policies, policy, link);
}

/* The new copy goes in before the old one goes out, so that the flow never looks empty. */
static enum parked_outcome replace_packet(struct parked *parked, struct parked_flow *flow, const struct lull_packet *packet)
{
        struct parked_packet *old = TAILQ_FIRST(&flow->packets), *copy;
        uint32_t growth = packet->length > old->length ? packet->length - old->length : 0;
        enum parked_outcome outcome = check_bounds(parked, flow->queue->policy, flow->source, growth, true);

        if (outcome != PARKED_REPLACED)
                return outcome;

        copy = packet_copy(packet);
        if (!copy)
                return PARKED_NO_MEMORY;

        flow_attach(parked, flow, copy);
        flow_detach(parked, flow, old);
        return PARKED_REPLACED;
}

static enum parked_outcome append_packet(struct parked *parked, struct parked_flow *flow, const struct lull_packet *packet)
{
        enum parked_outcome outcome;
        struct parked_packet *copy;

        if (flow->n_packets >= PARKED_FLOW_DATAGRAMS || flow->bytes + packet->length > PARKED_FLOW_BYTES)
                return PARKED_FLOW_FULL;
        outcome = check_bounds(parked, flow->queue->policy, flow->source, packet_memory(packet->length), false);
        if (outcome != PARKED_ANOTHER)
                return outcome;

        copy = packet_copy(packet);
        if (!copy)
                return PARKED_NO_MEMORY;

        flow_attach(parked, flow, copy);
        return PARKED_ANOTHER;
}

static struct parked_flow *flow_add(struct parked *parked, struct parked_queue *queue, struct parked_source *source,
                                    const struct lull_packet *packet)
{
        struct parked_flow *flow = calloc(1, sizeof(*flow));

        if (!flow)
                return NULL;

        flow->key = packet->flow;
        flow->first_ns = packet->time_ns;
        flow->queue = queue;
        flow->source = source;
        TAILQ_INIT(&flow->packets);
        HASH_ADD(hh, parked->flows, key, sizeof(flow->key), flow);
        if (!flow->hh.tbl) {
                free(flow);
                return NULL;
        }
        return flow;
}

static enum parked_outcome add_first(struct parked *parked, struct parked_queue *queue, const struct lull_packet *packet,
                                     struct parked_flow **ret_flow)
{
        struct source_key key = source_key(queue->policy, &packet->flow);
        struct parked_source *source = source_get(parked, &key);
        struct parked_flow *flow = NULL;
        enum parked_outcome outcome;

        if (!source)
                return PARKED_NO_MEMORY;

        outcome = check_bounds(parked, queue->policy, source, packet_memory(packet->length), false);
        if (outcome == PARKED_ANOTHER) {
                flow = flow_add(parked, queue, source, packet);
                outcome = flow ? append_packet(parked, flow, packet) : PARKED_NO_MEMORY;
        }
        if (outcome != PARKED_ANOTHER) {
                if (flow) {
                        HASH_DEL(parked->flows, flow);
                        free(flow);
                }
                source_put(parked, source);
                return outcome;
        }

        flow->waiting = true;
        TAILQ_INSERT_TAIL(&queue->waiting, flow, in_queue);
        queue->n_waiting++;
        *ret_flow = flow;
        return PARKED_FIRST;
}

enum parked_outcome parked_add(struct parked *parked, struct parked_queue *queue, const struct lull_packet *packet,
                               struct parked_flow **ret_flow)
{
        enum parked_outcome outcome;
        struct parked_flow *flow;

        *ret_flow = NULL;
        HASH_FIND(hh, parked->flows, &packet->flow, sizeof(packet->flow), flow);
        if (!flow)
                return add_first(parked, queue, packet, ret_flow);

        outcome = packet->flow.protocol == IPPROTO_TCP ? replace_packet(parked, flow, packet) : append_packet(parked, flow, packet);
        if (outcome <= PARKED_REPLACED)
                *ret_flow = flow;
        return outcome;
}

void parked_take(struct parked_flow *flow)
{
        if (!flow->waiting)
                return;

        TAILQ_REMOVE(&flow->queue->waiting, flow, in_queue);
        flow->queue->n_waiting--;
        flow->waiting = false;
}

void parked_put_back(struct parked_flow *flow)
{
        struct parked_queue *queue = flow->queue;
        struct parked_flow *later;

        if (flow->waiting)
                return;

        TAILQ_FOREACH(later, &queue->waiting, in_queue)
                if (later->first_ns > flow->first_ns)
                        break;
        if (later)
                TAILQ_INSERT_BEFORE(later, flow, in_queue);
        else
                TAILQ_INSERT_TAIL(&queue->waiting, flow, in_queue);
        queue->n_waiting++;
        flow->waiting = true;
}

void parked_remove(struct parked *parked, struct parked_flow *flow)
{
        struct parked_source *source = flow->source;
        struct parked_packet *packet;

        parked_take(flow);
        while ((packet = TAILQ_FIRST(&flow->packets)))
                flow_detach(parked, flow, packet);
        flow_forget(parked, flow);
        source_put(parked, source);
        HASH_DEL(parked->flows, flow);
        free(flow);
}

int parked_move(struct parked *parked, struct parked_flow *flow, struct parked_queue *queue)
{
        struct parked_policy *from = flow->queue->policy, *to = queue->policy;
        struct source_key key = source_key(to, &flow->key);
        struct parked_source *source;

        if (to->n_packets + flow->n_packets > to->max_packets)
                return -ENOSPC;
        source = source_get(parked, &key);
        if (!source)
                return -ENOMEM;

        parked_take(flow);
        flow_forget(parked, flow);
        from->n_packets -= flow->n_packets;
        from->memory -= flow->memory;
        flow->source->n_packets -= flow->n_packets;
        source_put(parked, flow->source);

        flow->queue = queue;
        flow->source = source;
        source->n_packets += flow->n_packets;
        to->n_packets += flow->n_packets;
        to->memory += flow->memory;
        if (TAILQ_EMPTY(&to->by_age))
                TAILQ_INSERT_TAIL(&parked->policies, to, link);
        TAILQ_INSERT_TAIL(&to->by_age, flow, by_age);
        parked_put_back(flow);
        return 0;
}

/* Each policy's flows are in the order of their deadlines, because they have its timeout in common; only policies with something
 * parked are looked at. */
static struct parked_flow *first_due(const struct parked *parked, uint64_t *ret_deadline)
{
        struct parked_flow *first = NULL;
        struct parked_policy *policy;

        *ret_deadline = 0;
        TAILQ_FOREACH(policy, &parked->policies, link) {
                struct parked_flow *oldest = TAILQ_FIRST(&policy->by_age);
                uint64_t deadline = oldest->first_ns + policy->timeout_ns;

                if (first && deadline >= *ret_deadline)
                        continue;
                first = oldest;
                *ret_deadline = deadline;
        }
        return first;
}

struct parked_flow *parked_expired(struct parked *parked, uint64_t now_ns)
{
        uint64_t deadline;
        struct parked_flow *flow = first_due(parked, &deadline);

        return flow && deadline <= now_ns ? flow : NULL;
}

uint64_t parked_deadline(const struct parked *parked)
{
        uint64_t deadline;

        first_due(parked, &deadline);
        return deadline;
}

size_t parked_packets(const struct parked *parked)
{
        return parked->n_packets;
}

size_t parked_memory(const struct parked *parked)
{
        return parked->memory;
}

const struct parked_policies *parked_policies(const struct parked *parked)
{
        return &parked->policies;
}

struct parked_flow *parked_find(const struct parked *parked, const struct lull_flow *key)
{
        struct parked_flow *flow;

        HASH_FIND(hh, parked->flows, key, sizeof(*key), flow);
        return flow;
}

struct flow flow_from_wire(const struct lull_flow *wire)
{
        return (struct flow){
                .source = address_from_bytes(AF_INET6, wire->source),
                .destination = address_from_bytes(AF_INET6, wire->destination),
                .source_port = ntohs(wire->source_port),
                .destination_port = ntohs(wire->destination_port),
                .protocol = wire->protocol,
        };
}

struct lull_flow flow_to_wire(const struct flow *flow)
{
        struct lull_flow wire = {
                .source_port = htons(flow->source_port),
                .destination_port = htons(flow->destination_port),
                .protocol = flow->protocol,
        };

        memcpy(wire.source, flow->source.bytes, sizeof(wire.source));
        memcpy(wire.destination, flow->destination.bytes, sizeof(wire.destination));
        return wire;
}
