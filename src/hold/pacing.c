/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/pacing.h"

#include "base/macros.h"

void pacing_init(struct pacing *pacing)
{
        *pacing = (struct pacing){ 0 };
        TAILQ_INIT(&pacing->in_flight);
}

/* A flow that stayed silent twice was most likely answered to a client that is gone (its RST ends the handshake before anybody looks)
 * or is filtered. It does not go on taking a place in the accept queue from those that are there. */
static uint32_t expected_in_queue(const struct pacing *pacing)
{
        const struct pacing_flow *flow;
        uint32_t expected = 0;

        TAILQ_FOREACH(flow, &pacing->in_flight, link)
                expected += flow->repeats < 2;
        return expected;
}

bool pacing_may_send(const struct pacing *pacing, uint32_t queued, uint32_t backlog)
{
        if (pacing->n_in_flight >= PACING_IN_FLIGHT_MAX)
                return false;

        /* The kernel's queue is full when it is longer than the backlog (sk_acceptq_is_full() in include/net/sock.h): one place
         * more than is used here is left to clients who do not come through lull. A backlog of 0 still takes one. */
        return (uint64_t)queued + expected_in_queue(pacing) + 1 <= MAX(backlog, 1U);
}

bool pacing_may_send_bytes(uint32_t queued, uint32_t limit, uint64_t cost)
{
        return queued == 0 || queued + cost <= limit;
}

void pacing_sent(struct pacing *pacing, struct pacing_flow *flow, uint64_t now_ns)
{
        if (flow->in_flight) {
                flow->repeats++;
        } else {
                *flow = (struct pacing_flow){ .sent_ns = now_ns, .in_flight = true };
                TAILQ_INSERT_TAIL(&pacing->in_flight, flow, link);
                pacing->n_in_flight++;
        }
        flow->due_ns = now_ns + (PACING_SILENCE_NS << flow->repeats);
}

void pacing_remove(struct pacing *pacing, struct pacing_flow *flow)
{
        if (!flow->in_flight)
                return;

        TAILQ_REMOVE(&pacing->in_flight, flow, link);
        pacing->n_in_flight--;
        flow->in_flight = false;
}

enum pacing_advice pacing_judge(struct pacing_flow *flow, enum connection_state state, bool room, uint64_t now_ns)
{
        switch (state) {
        case CONNECTION_ESTABLISHED:
                return PACING_ANSWERED;
        case CONNECTION_HANDSHAKE:
                return now_ns - flow->sent_ns >= PACING_HANDSHAKE_NS ? PACING_HANDED_OVER : PACING_WAIT;
        case CONNECTION_NONE:
                break;
        }

        if (now_ns < flow->due_ns || !room)
                return PACING_WAIT;
        return flow->repeats < PACING_REPEATS_MAX ? PACING_REPEAT : PACING_GIVE_UP;
}
