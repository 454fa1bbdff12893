/* SPDX-License-Identifier: Apache-2.0 */
/* Flows of translated frontends under way: each is given to an endpoint, or to the data plane as if it were one, and its copy is kept
 * until an answer is seen in connection tracking. A flow that stays silent is sent again; one that is refused, or silent for too long,
 * loses its entry and waits for another endpoint. A datagram is sent once, and kept that long only for a refusal.
 */
#pragma once

#include <stdint.h>

#include "hold/parked.h"

struct conntrack_entry;
struct endpoint;
struct hold;
struct held_frontend;
struct lull_packet;

/* Makes @flow's entry to @endpoint and sends it; an entry that leads to another live endpoint of its frontend is used instead. Returns 0,
 * or -errno for a refused entry: then @flow still waits. */
int direct_give(struct hold *hold, struct parked_flow *flow, struct endpoint *endpoint, uint64_t now_ns);
/* Sends @flow unchanged. */
void direct_pass(struct hold *hold, struct parked_flow *flow, uint64_t now_ns);

/* What has become of @flow, which is in flight. @entry: what connection tracking has just told, or NULL to ask it. */
void direct_observe(struct hold *hold, struct parked_flow *flow, const struct conntrack_entry *entry, uint64_t now_ns);
/* @packet says that a flow in flight was refused. */
void direct_refused(struct hold *hold, const struct lull_packet *packet);

/* @endpoint gets no more flows: those in flight to it wait again, without an entry. */
void direct_abandon(struct hold *hold, struct endpoint *endpoint);
/* @flow is about to leave the store: forgets where it was in flight to, and what could still come from there. */
void direct_leave(struct hold *hold, struct parked_flow *flow);
/* Deletes its entry, unless that is answered. */
void direct_delete_entry(struct hold *hold, const struct parked_flow *flow);
