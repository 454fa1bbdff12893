/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/notices.h"

#include "hold/state.h"

struct notice {
        TAILQ_ENTRY(notice) link;
        enum notice_kind kind;
        struct holding *holding;
        struct flow flow;
        uint64_t at_ns;
};

void notices_add(struct hold *hold, enum notice_kind kind, struct holding *holding, const struct flow *flow, uint64_t at_ns)
{
        struct notice *notice = malloc(sizeof(*notice));

        if (!notice)
                return;

        *notice = (struct notice){ .kind = kind, .holding = holding, .flow = *flow, .at_ns = at_ns };
        TAILQ_INSERT_TAIL(&hold->notices, notice, link);
}

void notices_mark(struct holding *holding)
{
        if (holding->pending)
                return;

        TAILQ_INSERT_TAIL(&holding->hold->pending, holding, pending_link);
        holding->pending = true;
}

static void unmark(struct holding *holding)
{
        if (!holding->pending)
                return;

        TAILQ_REMOVE(&holding->hold->pending, holding, pending_link);
        holding->pending = false;
}

void notices_drop(struct holding *holding)
{
        struct hold *hold = holding->hold;
        struct notice *notice, *next;

        unmark(holding);
        for (notice = TAILQ_FIRST(&hold->notices); notice; notice = next) {
                next = TAILQ_NEXT(notice, link);
                if (notice->holding != holding)
                        continue;
                TAILQ_REMOVE(&hold->notices, notice, link);
                free(notice);
        }
}

static void flush_demand(struct hold *hold)
{
        struct holding *holding, *next;
        struct hold_demand demand;

        for (holding = TAILQ_FIRST(&hold->pending); holding; holding = next) {
                next = TAILQ_NEXT(holding, pending_link);
                if (!holding->demand_pending)
                        continue;

                demand = holding->demand;
                holding->demand_pending = false;
                if (!holding->drained_pending)
                        unmark(holding);
                if (hold->callbacks.demand)
                        hold->callbacks.demand(holding, &demand, hold->userdata);
                next = TAILQ_FIRST(&hold->pending); /* the callback may have freed any of them */
        }
}

static void flush_flows(struct hold *hold)
{
        struct notice *notice;

        while ((notice = TAILQ_FIRST(&hold->notices))) {
                _cleanup_(freep) struct notice *taken = notice;
                void (*callback)(struct holding *, const struct flow *, uint64_t, void *) =
                        taken->kind == NOTICE_RELEASED ? hold->callbacks.released : hold->callbacks.answered;

                TAILQ_REMOVE(&hold->notices, taken, link);
                if (callback)
                        callback(taken->holding, &taken->flow, taken->at_ns, hold->userdata);
        }
}

static void flush_drained(struct hold *hold)
{
        struct holding *holding;

        while ((holding = TAILQ_FIRST(&hold->pending)) && !holding->demand_pending) {
                bool drained = holding->drained_pending;

                holding->drained_pending = false;
                unmark(holding);
                if (drained && hold->callbacks.drained)
                        hold->callbacks.drained(holding, hold->userdata);
        }
}

/* Demand goes first: somebody waits for it. What callbacks cause is noted again, and belongs to the next round. */
void notices_flush(struct hold *hold)
{
        while (!TAILQ_EMPTY(&hold->pending) || !TAILQ_EMPTY(&hold->notices)) {
                flush_demand(hold);
                flush_flows(hold);
                flush_drained(hold);
        }
}
