/* SPDX-License-Identifier: Apache-2.0 */
/* Frontends as the BPF maps have them: keys, demand slots, and the rules about who may wake them.
 *
 * A slot is an index into map "demand" and names the frontend's owner in user space; [::] is two keys with one slot. Slots that an
 * earlier daemon left programmed are found again by their key, so that its frontends stay held without a gap; frontends_sweep() lets
 * go what nobody took over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "bpf/hold_hooks.h"

struct frontends;

enum frontends_list {
        FRONTENDS_IGNORED,
        FRONTENDS_ALLOWED,
};

/* Reads what an earlier daemon left; what it had published counts as consumed. Returns 0 or -errno. */
int frontends_new(struct hold_hooks *hooks, struct frontends **ret_frontends);
struct frontends *frontends_free(struct frontends *frontends); /* leaves the maps alone */
DEFINE_CLEANUP(struct frontends, frontends_free)

/* Finds a slot for @frontend and makes @owner its owner. *ret_adopted: an earlier daemon held it. Returns 0 or -ENOSPC. */
int frontends_claim(struct frontends *frontends, const struct frontend *frontend, void *owner, uint32_t *ret_slot,
                    bool *ret_adopted);
void frontends_disclaim(struct frontends *frontends, uint32_t slot);
void *frontends_owner(const struct frontends *frontends, uint32_t slot); /* or NULL */

/* The keys of @frontend: two for [::], unless @without_ipv4. Returns how many. */
unsigned frontends_keys(const struct frontend *frontend, bool without_ipv4, struct lull_frontend_key ret_keys[static 2]);

int frontends_program(struct frontends *frontends, const struct frontend *frontend, bool without_ipv4, uint32_t slot,
                      uint32_t flags);
/* Keys that another slot has taken over meanwhile stay. */
void frontends_withdraw(struct frontends *frontends, const struct frontend *frontend, bool without_ipv4, uint32_t slot);

int frontends_add_rule(struct frontends *frontends, enum frontends_list list, uint32_t slot, const struct prefix *prefix);
void frontends_remove_rule(struct frontends *frontends, enum frontends_list list, uint32_t slot, const struct prefix *prefix);

struct frontends_sweep {
        /* Whether @owner wants this key, or rule, to stay. */
        bool (*wants_key)(const void *owner, const struct lull_frontend_key *key);
        bool (*wants_rule)(const void *owner, enum frontends_list list, const struct prefix *prefix);
};
/* Removes every key and rule of the maps that has no owner or that its owner does not want. */
void frontends_sweep(struct frontends *frontends, const struct frontends_sweep *sweep);
