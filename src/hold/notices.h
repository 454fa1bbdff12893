/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks to be made: noted where something happens, made from the event loop, in an order that survives callbacks which start,
 * stop or free holdings. */
#pragma once

#include <stdint.h>

struct flow;
struct hold;
struct holding;

enum notice_kind {
        NOTICE_RELEASED,
        NOTICE_ANSWERED,
};

/* One that cannot be allocated is lost: it is for people and metrics only. */
void notices_add(struct hold *hold, enum notice_kind kind, struct holding *holding, const struct flow *flow, uint64_t at_ns);
/* @holding has demand_pending or drained_pending set. */
void notices_mark(struct holding *holding);
/* Forgets all that concerns @holding. */
void notices_drop(struct holding *holding);

void notices_flush(struct hold *hold);
