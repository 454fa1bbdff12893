/* SPDX-License-Identifier: Apache-2.0 */
/* The engine that hands parked flows on: paced for frontends that are ready, at once for all other reasons. */
#pragma once

#include <stdint.h>

#include "hold/counters.h"
#include "hold/notices.h"

struct hold;
struct held_frontend;
struct holding;
struct lull_packet;
struct parked_flow;

/* Observes what is in flight, releases as much as the windows allow, stops holdings with nothing left, and sets the timer for the next
 * look where something is in flight or waits: no file descriptor tells when a server calls accept(). */
void release_run(struct hold *hold);

/* @frontend is no longer RELEASING: what is in flight is taken for waiting again. */
void release_abandon(struct held_frontend *frontend);

/* Hands all that @holding has parked on, unpaced, each flow counted as @reason. */
void release_all(struct holding *holding, enum daemon_counter reason);
/* Flows whose time is up go on to their normal refusal, a batch at a time. Returns when to call again, 0 for never. */
uint64_t release_expired(struct hold *hold, uint64_t now_ns);
/* A packet that is not to be parked. */
void release_packet(struct hold *hold, const struct lull_packet *packet, enum daemon_counter reason);
/* Forgets what is parked without handing it on. */
void release_none(struct holding *holding, enum daemon_counter reason);

/* What paced releases have in common. */
/* Exempts @flow, for as long as @reason wants, and sends its packets. */
int release_send(struct hold *hold, const struct parked_flow *flow, enum daemon_counter reason);
/* Counts and tells, once a flow, that it was handed on; a flow that could not be sent is dropped: its sender repeats it. */
void release_account(struct hold *hold, struct parked_flow *flow, enum daemon_counter reason, int error);
void release_notify(struct hold *hold, enum notice_kind kind, const struct parked_flow *flow);
void release_forget(struct hold *hold, struct parked_flow *flow);
