/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What becomes of a flow's first packet. */
#ifndef DECIDE_BPF_H
#define DECIDE_BPF_H

#include "maps.bpf.h"
#include "packet.bpf.h"

#define NSEC_PER_MSEC 1000000ULL

static __always_inline bool is_local(const __u8 address[16])
{
        struct lull_local_key key = { .prefix_length = 8 * sizeof(key.address) };

        __builtin_memcpy(key.address, address, sizeof(key.address));
        return bpf_map_lookup_elem(&local, &key);
}

static __always_inline bool rule_matches(void *rules, __u32 slot, const __u8 address[16])
{
        struct lull_rule_key key = { .prefix_length = 8 * (sizeof(key.slot) + sizeof(key.address)), .slot = slot };

        __builtin_memcpy(key.address, address, sizeof(key.address));
        return bpf_map_lookup_elem(rules, &key);
}

/* A wildcard stands for this host's addresses only: what is routed or bridged through to others is not ours. */
static __always_inline int find_frontend(const struct packet *packet, struct lull_frontend *ret_frontend)
{
        struct lull_frontend_key key = { .port = packet->flow.destination_port, .protocol = packet->flow.protocol };
        struct lull_frontend *found;

        __builtin_memcpy(key.address, packet->flow.destination, sizeof(key.address));
        found = bpf_map_lookup_elem(&frontends, &key);
        if (!found) {
                if (packet->ipv4)
                        map_ipv4(key.address, 0);
                else
                        __builtin_memset(key.address, 0, sizeof(key.address));
                found = bpf_map_lookup_elem(&frontends, &key);
                if (!found)
                        return VERDICT_OTHER;
                if (!is_local(packet->flow.destination))
                        return LULL_COUNTER_PASS_NOT_LOCAL;
        }

        *ret_frontend = *found;
        return VERDICT_FIRST;
}

static __always_inline bool is_exempt(const struct lull_flow *flow, __u64 now_ns)
{
        __u64 *expiry_ns = bpf_map_lookup_elem(&pass, flow);

        return expiry_ns && now_ns < *expiry_ns;
}

static __always_inline int check_source(const struct packet *packet, const struct lull_frontend *frontend)
{
        if (frontend->flags & LULL_FRONTEND_IGNORE_LIST && rule_matches(&ignored, frontend->slot, packet->flow.source))
                return LULL_COUNTER_PASS_IGNORED;
        if (frontend->flags & LULL_FRONTEND_ALLOW_LIST && !rule_matches(&allowed, frontend->slot, packet->flow.source))
                return LULL_COUNTER_PASS_NOT_ALLOWED;
        return VERDICT_FIRST;
}

static __always_inline void record_demand(struct lull_demand *entry, const struct lull_flow *flow, __u64 now_ns)
{
        entry->last_ns = now_ns;
        __sync_fetch_and_add(&entry->packets, 1);
        if (entry->first_ns == 0 && __sync_val_compare_and_swap(&entry->first_ns, 0, now_ns) == 0) {
                __builtin_memcpy(entry->source, flow->source, sizeof(entry->source));
                entry->source_port = flow->source_port;
        }
}

/* The map of exempt flows is asked after the frontends, since most packets have no frontend asleep and need no second look. Returns
 * LULL_COUNTER_HELD where the packet is to be published; the demand's entry is known then. */
static __always_inline int decide(const struct packet *packet, __u64 now_ns, __u32 *ret_slot, struct lull_demand **ret_demand)
{
        struct lull_frontend frontend = {};
        struct lull_control *state;
        struct lull_demand *entry;
        bool planned;
        __u32 zero = 0;
        int verdict;

        verdict = find_frontend(packet, &frontend);
        if (verdict != VERDICT_FIRST)
                return verdict;
        if (packet->probe || is_exempt(&packet->flow, now_ns))
                return LULL_COUNTER_PASS_FLOW;

        state = bpf_map_lookup_elem(&control, &zero);
        if (!state)
                return LULL_COUNTER_PASS_STALE;
        planned = now_ns < state->hold_until_ns;
        if (!planned && now_ns > state->heartbeat_ns + LULL_HEARTBEAT_MAX_MS * NSEC_PER_MSEC)
                return LULL_COUNTER_PASS_STALE;

        verdict = check_source(packet, &frontend);
        if (verdict != VERDICT_FIRST)
                return verdict;

        entry = bpf_map_lookup_elem(&demand, &frontend.slot);
        if (!entry)
                return LULL_COUNTER_PASS_QUOTA;
        record_demand(entry, &packet->flow, now_ns);

        *ret_slot = frontend.slot;
        *ret_demand = entry;
        return planned ? LULL_COUNTER_HELD_PLANNED : LULL_COUNTER_HELD;
}

#endif
