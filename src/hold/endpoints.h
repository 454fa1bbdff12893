/* SPDX-License-Identifier: Apache-2.0 */
/* A translated frontend's endpoints, and how fast flows may be given to each.
 *
 * An endpoint that has just begun to listen has a short accept queue, and nobody here can see it. So each has a window, opened by
 * answers and halved by silence, and beyond a first burst the flows to it are spaced. One that refuses flows, or answers none, rests
 * for a while that doubles with each failure; after that one flow tries it again.
 *
 * Pure: time is passed in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "hold/hold.h"
#include "hold/pacing.h"

enum {
        ENDPOINTS_MAX = 64, /* of one frontend; those past it are not used */
        ENDPOINT_WINDOW_FIRST = 4,
        ENDPOINT_WINDOW_MAX = 64,
        ENDPOINT_BURST = 4,
};

#define ENDPOINT_SPACING_NS (500 * NSEC_PER_USEC)
#define ENDPOINT_REST_NS (25 * NSEC_PER_MSEC)
#define ENDPOINT_REST_MAX_NS NSEC_PER_SEC

struct endpoint {
        struct holding_endpoint at;
        struct pacing pacing; /* the flows in flight to it */
        uint32_t window;
        uint64_t rest_ns;     /* how long it rested last; 0: it answered since */
        uint64_t paced_ns;    /* up to when the spacing is used up */
        uint64_t given_ns;    /* when it last got a flow */
        uint64_t answered_ns; /* when it last answered one */
        uint64_t resting_ns;  /* until when it gets none */
        bool wanted;          /* while endpoints are replaced */
        TAILQ_ENTRY(endpoint) link;
};
TAILQ_HEAD(endpoints, endpoint);

void endpoint_init(struct endpoint *endpoint, const struct holding_endpoint *at);

/* When @endpoint may be given one more flow; @now_ns or earlier: now; UINT64_MAX: after an answer. */
uint64_t endpoint_free_ns(const struct endpoint *endpoint);
void endpoint_given(struct endpoint *endpoint, uint64_t now_ns);
void endpoint_answered(struct endpoint *endpoint, uint64_t now_ns);
void endpoint_silent(struct endpoint *endpoint);
void endpoint_failed(struct endpoint *endpoint, uint64_t now_ns);
void endpoint_rest(struct endpoint *endpoint, uint64_t now_ns); /* once, for ENDPOINT_REST_NS, whatever came before */

/* Makes @endpoints those of @at. Those that are no longer among them are moved to @gone, for the caller to empty and free. Returns 0 or
 * -ENOMEM, and then nothing has changed. */
int endpoints_replace(struct endpoints *endpoints, const struct holding_endpoint *at, size_t n_at, struct endpoints *gone);
void endpoints_free(struct endpoints *endpoints); /* nothing may be in flight */

struct endpoint *endpoints_find(const struct endpoints *endpoints, const struct address *address, uint16_t port); /* or NULL */
/* Whether any is usable: of the family, and on this node where only those count. */
bool endpoints_usable(const struct endpoints *endpoints, bool ipv4, bool local);
/* The one for the next flow: of those that may be given one now, the least busy, and of these the one that waited longest. NULL: none
 * now, and *ret_free_ns is when one is (UINT64_MAX: after an answer, or never). */
struct endpoint *endpoints_choose(const struct endpoints *endpoints, bool ipv4, bool local, uint64_t now_ns, uint64_t *ret_free_ns);
