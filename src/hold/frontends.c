/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/frontends.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

enum { SLOT_BITS = 32 };

struct frontends {
        struct hold_hooks *hooks; /* not owned */
        uint32_t next;            /* where to look for a free slot: reused as late as possible, since packets name them */
        void *owners[LULL_FRONTENDS_MAX];
        bool left[LULL_FRONTENDS_MAX]; /* programmed by an earlier daemon and not yet taken over */
};

static int map_of(const struct frontends *frontends, enum frontends_list list)
{
        return hold_hooks_map(frontends->hooks, list == FRONTENDS_IGNORED ? HOLD_MAP_IGNORED : HOLD_MAP_ALLOWED);
}

static void consume_all(struct frontends *frontends, uint32_t slot)
{
        struct lull_demand *demand = hold_hooks_demand(frontends->hooks, slot);

        __atomic_store_n(&demand->consumed, __atomic_load_n(&demand->published, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static void read_left_slots(struct frontends *frontends)
{
        int map = hold_hooks_map(frontends->hooks, HOLD_MAP_FRONTENDS);
        struct lull_frontend_key key, *previous = NULL;
        struct lull_frontend value;

        while (bpf_map_get_next_key(map, previous, &key) == 0) {
                previous = &key;
                if (bpf_map_lookup_elem(map, &key, &value) < 0 || value.slot >= LULL_FRONTENDS_MAX)
                        continue;
                frontends->left[value.slot] = true;
                consume_all(frontends, value.slot);
        }
}

int frontends_new(struct hold_hooks *hooks, struct frontends **ret_frontends)
{
        struct frontends *frontends = calloc(1, sizeof(*frontends));

        if (!frontends)
                return -ENOMEM;

        frontends->hooks = hooks;
        if (hold_hooks_adopted(hooks))
                read_left_slots(frontends);
        *ret_frontends = frontends;
        return 0;
}

struct frontends *frontends_free(struct frontends *frontends)
{
        free(frontends);
        return NULL;
}

unsigned frontends_keys(const struct frontend *frontend, bool without_ipv4, struct lull_frontend_key ret_keys[static 2])
{
        struct address any_ipv4 = address_from_ipv4(0);

        ret_keys[0] = (struct lull_frontend_key){ .port = htons(frontend->port), .protocol = frontend->protocol };
        memcpy(ret_keys[0].address, frontend->address.bytes, sizeof(ret_keys[0].address));
        if (without_ipv4 || address_is_ipv4(&frontend->address) || !address_is_wildcard(&frontend->address))
                return 1;

        ret_keys[1] = ret_keys[0];
        memcpy(ret_keys[1].address, any_ipv4.bytes, sizeof(ret_keys[1].address));
        return 2;
}

static bool find_left_slot(const struct frontends *frontends, const struct frontend *frontend, uint32_t *ret_slot)
{
        struct lull_frontend_key keys[2];
        struct lull_frontend value;

        frontends_keys(frontend, true, keys);
        if (bpf_map_lookup_elem(hold_hooks_map(frontends->hooks, HOLD_MAP_FRONTENDS), &keys[0], &value) < 0 ||
            value.slot >= LULL_FRONTENDS_MAX || !frontends->left[value.slot])
                return false;

        *ret_slot = value.slot;
        return true;
}

int frontends_claim(struct frontends *frontends, const struct frontend *frontend, void *owner, uint32_t *ret_slot,
                    bool *ret_adopted)
{
        uint32_t slot = 0;
        bool adopted = find_left_slot(frontends, frontend, &slot);

        for (uint32_t i = 0; !adopted && i < LULL_FRONTENDS_MAX; i++) {
                slot = (frontends->next + i) % LULL_FRONTENDS_MAX;
                if (!frontends->owners[slot] && !frontends->left[slot])
                        break;
        }
        if (!adopted && (frontends->owners[slot] || frontends->left[slot]))
                return -ENOSPC;

        if (!adopted)
                frontends->next = (slot + 1) % LULL_FRONTENDS_MAX;
        frontends->left[slot] = false;
        frontends->owners[slot] = owner;
        consume_all(frontends, slot);
        *ret_slot = slot;
        *ret_adopted = adopted;
        return 0;
}

void frontends_disclaim(struct frontends *frontends, uint32_t slot)
{
        frontends->owners[slot] = NULL;
}

void *frontends_owner(const struct frontends *frontends, uint32_t slot)
{
        return slot < LULL_FRONTENDS_MAX ? frontends->owners[slot] : NULL;
}

int frontends_program(struct frontends *frontends, const struct frontend *frontend, bool without_ipv4, uint32_t slot,
                      uint32_t flags)
{
        int map = hold_hooks_map(frontends->hooks, HOLD_MAP_FRONTENDS), r;
        struct lull_frontend value = { .slot = slot, .flags = flags };
        struct lull_frontend_key keys[2];
        unsigned n = frontends_keys(frontend, without_ipv4, keys);

        for (unsigned i = 0; i < n; i++) {
                r = bpf_map_update_elem(map, &keys[i], &value, BPF_ANY);
                if (r < 0)
                        return r == -E2BIG ? -ENOSPC : r;
        }
        return 0;
}

void frontends_withdraw(struct frontends *frontends, const struct frontend *frontend, bool without_ipv4, uint32_t slot)
{
        int map = hold_hooks_map(frontends->hooks, HOLD_MAP_FRONTENDS);
        struct lull_frontend_key keys[2];
        struct lull_frontend value;
        unsigned n = frontends_keys(frontend, without_ipv4, keys);

        for (unsigned i = 0; i < n; i++)
                if (bpf_map_lookup_elem(map, &keys[i], &value) == 0 && value.slot == slot)
                        (void)bpf_map_delete_elem(map, &keys[i]);
}

static struct lull_rule_key rule_key(uint32_t slot, const struct prefix *prefix)
{
        struct lull_rule_key key = { .prefix_length = SLOT_BITS + prefix->length, .slot = slot };

        memcpy(key.address, prefix->address.bytes, sizeof(key.address));
        return key;
}

int frontends_add_rule(struct frontends *frontends, enum frontends_list list, uint32_t slot, const struct prefix *prefix)
{
        struct lull_rule_key key = rule_key(slot, prefix);
        uint8_t present = 1;

        return bpf_map_update_elem(map_of(frontends, list), &key, &present, BPF_ANY);
}

void frontends_remove_rule(struct frontends *frontends, enum frontends_list list, uint32_t slot, const struct prefix *prefix)
{
        struct lull_rule_key key = rule_key(slot, prefix);

        (void)bpf_map_delete_elem(map_of(frontends, list), &key);
}

static bool wants_key(const struct frontends *frontends, const struct frontends_sweep *sweep, int map,
                      const struct lull_frontend_key *key)
{
        struct lull_frontend value;
        const void *owner;

        if (bpf_map_lookup_elem(map, key, &value) < 0)
                return false;
        owner = frontends_owner(frontends, value.slot);
        return owner && sweep->wants_key(owner, key);
}

static void sweep_keys(struct frontends *frontends, const struct frontends_sweep *sweep)
{
        int map = hold_hooks_map(frontends->hooks, HOLD_MAP_FRONTENDS);
        struct lull_frontend_key key, next, *previous = NULL;

        while (bpf_map_get_next_key(map, previous, &next) == 0) {
                if (!wants_key(frontends, sweep, map, &next)) {
                        (void)bpf_map_delete_elem(map, &next);
                        continue; /* from the same predecessor again */
                }
                key = next;
                previous = &key;
        }
}

static bool wants_rule(const struct frontends *frontends, const struct frontends_sweep *sweep, enum frontends_list list,
                       const struct lull_rule_key *key)
{
        const void *owner = frontends_owner(frontends, key->slot);
        struct prefix prefix = { .length = (uint8_t)(key->prefix_length - SLOT_BITS) };

        if (key->prefix_length < SLOT_BITS)
                return false;
        memcpy(prefix.address.bytes, key->address, sizeof(prefix.address.bytes));
        return owner && sweep->wants_rule(owner, list, &prefix);
}

static void sweep_rules(struct frontends *frontends, const struct frontends_sweep *sweep, enum frontends_list list)
{
        struct lull_rule_key key, next, *previous = NULL;
        int map = map_of(frontends, list);

        while (bpf_map_get_next_key(map, previous, &next) == 0) {
                if (!wants_rule(frontends, sweep, list, &next)) {
                        (void)bpf_map_delete_elem(map, &next);
                        continue;
                }
                key = next;
                previous = &key;
        }
}

void frontends_sweep(struct frontends *frontends, const struct frontends_sweep *sweep)
{
        sweep_keys(frontends, sweep);
        sweep_rules(frontends, sweep, FRONTENDS_IGNORED);
        sweep_rules(frontends, sweep, FRONTENDS_ALLOWED);
        memset(frontends->left, 0, sizeof(frontends->left));
}
