/* SPDX-License-Identifier: Apache-2.0 */
/* What a test does with hold's hooks: fill the maps, run the program, read the ring buffer. */
#pragma once

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "base/time.h"
#include "bpf/hold_hooks.h"
#include "machine.h"

static inline void put_address(uint8_t bytes[16], const char *text)
{
        static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

        if (inet_pton(AF_INET6, text, bytes) == 1)
                return;
        memcpy(bytes, mapped, sizeof(mapped));
        assert_int_equal(inet_pton(AF_INET, text, bytes + 12), 1);
}

static inline void map_put(struct hold_hooks *hooks, enum hold_map map, const void *key, const void *value)
{
        assert_int_equal(bpf_map_update_elem(hold_hooks_map(hooks, map), key, value, BPF_ANY), 0);
}

static inline void add_frontend(struct hold_hooks *hooks, const char *address, uint16_t port, uint8_t protocol, uint32_t slot,
                                uint32_t flags)
{
        struct lull_frontend_key key = { .port = htons(port), .protocol = protocol };
        struct lull_frontend value = { .slot = slot, .flags = flags };

        put_address(key.address, address);
        map_put(hooks, HOLD_MAP_FRONTENDS, &key, &value);
}

static inline void add_rule(struct hold_hooks *hooks, enum hold_map map, uint32_t slot, const char *address, unsigned length)
{
        struct lull_rule_key key = { .prefix_length = 32 + length, .slot = slot };

        put_address(key.address, address);
        map_put(hooks, map, &key, &(uint8_t){ 1 });
}

static inline void add_local(struct hold_hooks *hooks, const char *address, unsigned length)
{
        struct lull_local_key key = { .prefix_length = length };

        put_address(key.address, address);
        map_put(hooks, HOLD_MAP_LOCAL, &key, &(uint8_t){ 1 });
}

static inline void add_pass(struct hold_hooks *hooks, const struct lull_flow *flow, uint64_t expiry_ns)
{
        map_put(hooks, HOLD_MAP_PASS, flow, &expiry_ns);
}

static inline void clear_map(struct hold_hooks *hooks, enum hold_map map)
{
        uint8_t key[64];

        while (bpf_map_get_next_key(hold_hooks_map(hooks, map), NULL, key) == 0)
                assert_int_equal(bpf_map_delete_elem(hold_hooks_map(hooks, map), key), 0);
}

/* The daemon is alive, and may keep @limit packets for @slot. */
static inline void arm(struct hold_hooks *hooks, uint32_t slot, uint64_t limit)
{
        *hold_hooks_demand(hooks, slot) = (struct lull_demand){ .limit = limit };
        hold_hooks_control(hooks)->heartbeat_ns = now_monotonic_ns();
        hold_hooks_control(hooks)->hold_until_ns = 0;
}

static inline struct lull_flow make_flow(const char *source, uint16_t source_port, const char *destination, uint16_t port,
                                         uint8_t protocol)
{
        struct lull_flow flow = { .source_port = htons(source_port), .destination_port = htons(port), .protocol = protocol };

        put_address(flow.source, source);
        put_address(flow.destination, destination);
        return flow;
}

/* The last record of the ring buffer, and how many there were. */
struct doorbell {
        struct ring_buffer *ring;
        unsigned records;
        size_t size;
        struct lull_packet packet;
        uint8_t data[LULL_PACKET_LARGE];
};

static inline int doorbell_take(void *userdata, void *record, size_t size)
{
        struct doorbell *doorbell = userdata;

        doorbell->records++;
        doorbell->size = size;
        memcpy(&doorbell->packet, record, sizeof(doorbell->packet));
        memcpy(doorbell->data, (uint8_t *)record + sizeof(doorbell->packet), doorbell->packet.length);
        return 0;
}

static inline void doorbell_open(struct doorbell *doorbell, struct hold_hooks *hooks)
{
        doorbell->ring = ring_buffer__new(hold_hooks_map(hooks, HOLD_MAP_EVENTS), doorbell_take, doorbell, NULL);
        assert_non_null(doorbell->ring);
}

/* Forgets what was seen, reads what is there. Returns how many records that were. */
static inline unsigned doorbell_read(struct doorbell *doorbell)
{
        doorbell->records = 0;
        ring_buffer__consume(doorbell->ring);
        return doorbell->records;
}

/* Waits for one record. */
static inline void doorbell_wait(struct doorbell *doorbell)
{
        doorbell->records = 0;
        if (ring_buffer__poll(doorbell->ring, 2000) <= 0 || doorbell->records != 1)
                fail_msg("%u records came, not 1", doorbell->records);
}
