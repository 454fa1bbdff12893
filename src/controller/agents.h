/* SPDX-License-Identifier: Apache-2.0 */
/* The agents of all nodes: whether each is alive, by its Lease, and what it last said, by its NodeActivity. Pure: time is passed in
 * (CLOCK_MONOTONIC), and what others write as times is compared for equality only.
 *
 * An agent is *fresh* for the duration that its Lease names (at most AGENT_FRESH_MAX_NS) after the Lease was seen to change. One whose
 * Lease was there already when this replica first looked, and has not changed since, is *unproven* for as long: sleeps wait for it,
 * but nothing that it says counts. So is everyone after agents_doubt(): while nobody reached the API server an agent could not take
 * back what it had said, and its Lease, which it renews only once what it has to say is written, may not have run out yet.
 *
 * Each process of an agent names itself in both objects: what one said that is no more is no word of the one that lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "kube/node_activity.h"
#include "kube/resource.h"

#define AGENT_FRESH_MAX_NS (40 * UINT64_C(1000000000))
enum { AGENTS_MAX = 20000 };

enum agent_freshness {
        AGENT_STALE, /* or never heard of */
        AGENT_UNPROVEN,
        AGENT_FRESH,
};

struct agents;

struct agent_view {
        const char *node;
        enum agent_freshness freshness;
        const struct node_activity *activity; /* or NULL */
        bool vouched;                         /* it is of the process that renews the Lease, not of one before */
};

int agents_new(struct agents **ret_agents);
struct agents *agents_free(struct agents *agents);
DEFINE_CLEANUP(struct agents, agents_free)

/* A Lease called AGENT_LEASE_PREFIX and the node's name was seen, for the first time or changed. Others are left alone. Returns whether
 * somebody has become fresh by it, or is another process now, -E2BIG past AGENTS_MAX, or -ENOMEM. */
int agents_lease(struct agents *agents, const struct kube_lease *lease, uint64_t now_ns);
/* All are unproven until their Leases change. */
void agents_doubt(struct agents *agents);
void agents_lease_gone(struct agents *agents, const struct kube_lease *lease);
/* What @node's agent says, from now on; NULL: nothing any more. Not copied. */
int agents_activity(struct agents *agents, const char *node, const struct node_activity *activity);

struct agent_view agents_get(const struct agents *agents, const char *node, uint64_t now_ns);
/* A negative result ends the walk and is returned. */
int agents_each(const struct agents *agents, uint64_t now_ns, int (*each)(const struct agent_view *agent, void *userdata),
                void *userdata);
size_t agents_count(const struct agents *agents, enum agent_freshness wanted, uint64_t now_ns);
/* When the next one falls silent, unless its Lease changes before; 0: never. */
uint64_t agents_deadline(const struct agents *agents, uint64_t now_ns);
/* Of those with a Lease, the node whose agent is next to be asked about: that long after its Lease was seen to change, and not before
 * agents_ask_again() said. NULL: there is none. */
const char *agents_silent_longest(const struct agents *agents, uint64_t silence_ns, uint64_t *ret_due_ns);
void agents_ask_again(struct agents *agents, const char *node, uint64_t at_ns);
/* Whether one has fallen silent since this was last asked. */
bool agents_fell_silent(struct agents *agents, uint64_t now_ns);
