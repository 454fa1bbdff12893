/* SPDX-License-Identifier: Apache-2.0 */
/* Pacing: how fast released flows may reach a server that has only just begun to listen.
 *
 * A server with a backlog of 5 that gets 200 SYNs at once drops most of them, and their clients wait for the retransmission timer. So
 * there is a window a frontend: what was released and not yet answered, plus what waits for accept(), stays within the backlog, and
 * never above PACING_IN_FLIGHT_MAX. A flow that nobody answers is released again after PACING_SILENCE_NS, then after twice that, and
 * so on, PACING_REPEATS_MAX times; then it is given up.
 *
 * Pure: what the kernel's tables say and the time are passed in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/time.h"
#include "hold/sockets.h"

enum {
        PACING_IN_FLIGHT_MAX = 64,
        PACING_REPEATS_MAX = 5,
};

#define PACING_SILENCE_NS (30 * NSEC_PER_MSEC)
/* A handshake that takes longer is that of a client far away or gone, and the kernel's own retransmissions look after it. */
#define PACING_HANDSHAKE_NS (1000 * NSEC_PER_MSEC)

struct pacing_flow { /* embedded in what it paces; zero before its first release */
        TAILQ_ENTRY(pacing_flow) link;
        uint64_t sent_ns; /* the first release */
        uint64_t due_ns;
        uint8_t repeats;
        bool in_flight;
        bool look; /* for its user: look at it before it is due */
};

struct pacing { /* one a frontend */
        TAILQ_HEAD(pacing_flows, pacing_flow) in_flight;
        uint32_t n_in_flight;
};

void pacing_init(struct pacing *pacing);

/* Whether one more TCP flow may be released to a listener with @queued connections waiting for accept() and a limit of @backlog. */
bool pacing_may_send(const struct pacing *pacing, uint32_t queued, uint32_t backlog);

/* The same for UDP: @cost bytes into a receive buffer. What is larger than an empty buffer goes all the same. */
bool pacing_may_send_bytes(uint32_t queued, uint32_t limit, uint64_t cost);

/* @flow was released just now, for the first time or again. */
void pacing_sent(struct pacing *pacing, struct pacing_flow *flow, uint64_t now_ns);
void pacing_remove(struct pacing *pacing, struct pacing_flow *flow); /* does nothing for a flow that is not in flight */

enum pacing_advice {
        PACING_WAIT,
        PACING_REPEAT,      /* release it again; pacing_sent() follows */
        PACING_ANSWERED,    /* established */
        PACING_HANDED_OVER, /* the server answers, the client does not: the kernel's now */
        PACING_GIVE_UP,
};

/* What to do about a flow in flight whose connection is in @state. @room: the listener's queue has room, so that a repetition can
 * help; without room the flow waits for it. */
enum pacing_advice pacing_judge(struct pacing_flow *flow, enum connection_state state, bool room, uint64_t now_ns);
