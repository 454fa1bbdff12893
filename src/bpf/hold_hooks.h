/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel side of holding: its programs, maps and pins, without any policy.
 *
 * Maps are pinned in the given bpffs directory and adopted from there when their layout is this daemon's; otherwise they are replaced
 * (the new hooks are attached before the old pins go, so that nobody slips through). Attaching pins the links, so that they outlive
 * the daemon; detaching unpins them.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "lull_wire.h"

struct hold_hooks;

enum hold_map {
        HOLD_MAP_FRONTENDS, /* lull_frontend_key → lull_frontend, hash */
        HOLD_MAP_DEMAND,    /* slot → lull_demand, mmapable array */
        HOLD_MAP_PASS,      /* lull_flow → expiry in ns (__u64), LRU hash */
        HOLD_MAP_ANSWERS,   /* lull_flow → lull_answer, LRU hash; not adopted */
        HOLD_MAP_IGNORED,   /* lull_rule_key → __u8, LPM trie */
        HOLD_MAP_ALLOWED,   /* likewise */
        HOLD_MAP_LOCAL,     /* lull_local_key → __u8, LPM trie */
        HOLD_MAP_CONTROL,   /* one lull_control, mmapable array */
        HOLD_MAP_COUNTERS,  /* enum lull_counter → per-CPU __u64 */
        HOLD_MAP_EVENTS,    /* ring buffer of lull_packet; not adopted: each daemon starts with its own or drains the old one */
        HOLD_MAP_MAX,
};

/* @translated: frontends are not this host's own, so that what it sends to them is held too. Returns 0, or -errno after logging which
 * step failed (the libbpf log goes to the debug level). */
int hold_hooks_new(const char *bpffs, bool translated, struct hold_hooks **ret_hooks);
/* With @keep_pins everything attached stays attached. Accepts NULL, returns NULL. */
struct hold_hooks *hold_hooks_free(struct hold_hooks *hooks, bool keep_pins);

/* Idempotent both. Links left by an earlier daemon are replaced without a gap; what that daemon had not consumed is then consumed, since
 * its ring buffer is gone. When attaching fails nothing stays attached. Detaching also removes links left by an earlier daemon. */
int hold_hooks_attach(struct hold_hooks *hooks);
void hold_hooks_detach(struct hold_hooks *hooks);
bool hold_hooks_attached(const struct hold_hooks *hooks);
/* Whether maps of an earlier daemon were taken over. */
bool hold_hooks_adopted(const struct hold_hooks *hooks);

int hold_hooks_map(const struct hold_hooks *hooks, enum hold_map map); /* its fd, owned by @hooks */
struct lull_control *hold_hooks_control(const struct hold_hooks *hooks);
struct lull_demand *hold_hooks_demand(struct hold_hooks *hooks, uint32_t slot);         /* never NULL; slot < LULL_FRONTENDS_MAX */
uint64_t hold_hooks_counter(const struct hold_hooks *hooks, enum lull_counter counter); /* summed over the CPUs */

/* Lets an Ethernet frame enter through the interface @ifindex once more, as if it had just arrived there. The destination MAC must be
 * the device's own, the source MAC some unicast address (a bridge takes nothing from the zero address); a device without MAC addresses
 * ignores both. The checksums must be complete. Returns 0, -EMSGSIZE for a frame that TEST_RUN does not take (on 4 KiB pages, more
 * than about 3,700 bytes), or -errno. It enters when the kernel's backlog is worked off, shortly after. */
int hold_hooks_inject(struct hold_hooks *hooks, uint32_t ifindex, const void *frame, size_t length);

json_t *hold_hooks_programs(const struct hold_hooks *hooks); /* [{name, type, attach, attached, id, run_count, run_time_seconds}] */
json_t *hold_hooks_maps(const struct hold_hooks *hooks);     /* [{name, type, entries, max_entries}] */
