/* SPDX-License-Identifier: Apache-2.0 */
/* What a reflector does next, as a function of what came of its last request. Pure: time and chance are passed in.
 *
 * As client-go's reflector does, with three differences. Where that lists again after any broken watch, this resumes the watch at
 * the last resourceVersion, and lists only when the server says that this version is gone. And that answer shows the server to
 * be well again: what was waited for while it was not adds nothing to the wait before the list, if it is the first in a while.
 * And where nobody answered at all, the wait ends when another request of the same client has been answered: after a minute's
 * outage client-go's back-off may leave its view old for the better part of another.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/status.h"

enum reflector_action {
        REFLECTOR_WATCH_LIST, /* one watch that begins with the objects there are (sendInitialEvents) */
        REFLECTOR_LIST,       /* all pages */
        REFLECTOR_WATCH,      /* from the last resourceVersion on */
};

/* The resourceVersion to ask with. */
enum reflector_version {
        REFLECTOR_VERSION_ANY,    /* "0": what the server has in its cache */
        REFLECTOR_VERSION_LAST,   /* not older than what was seen last */
        REFLECTOR_VERSION_NEWEST, /* none: the newest, if need be read from etcd */
};

struct reflector_step {
        enum reflector_action action;
        enum reflector_version version;
        bool paged;        /* a list: with a limit */
        uint64_t delay_ns; /* to wait before */
};

enum reflector_end {
        REFLECTOR_SYNCED,  /* a list is complete; or a watch list has its initial events, and goes on */
        REFLECTOR_CLOSED,  /* the server has ended a watch in good order */
        REFLECTOR_REFUSED, /* no answer came: refused, unreachable, timed out before the first byte */
        REFLECTOR_BROKEN,  /* an answer began and did not end well: reset, silent, cut off, not JSON */
        REFLECTOR_STATUS,  /* the server answered with, or sent in a watch, a Status that is a failure */
};

struct reflector_outcome {
        enum reflector_end end;
        struct kube_status status; /* of REFLECTOR_STATUS */
        bool in_stream;            /* it was an ERROR event of a watch */
        bool continued;            /* it was a page after the first */
        uint64_t lasted_ns;        /* from the request to its end */
        uint64_t events;           /* received by it */
};

struct reflector_policy {
        bool watch_list;            /* worth trying */
        bool synced;                /* a last resourceVersion is known */
        bool version_gone;          /* ... and the server does not have it */
        unsigned watch_list_failed; /* in a row */
        unsigned watch_broken;      /* without any event, in a row */
        unsigned pages_expired;     /* lists in a row whose continue token expired: the next is not paged */
        uint64_t backoff_ns;        /* the next one's, before jitter */
        uint64_t backoff_used_ns;   /* when it was last used; 0: never */
        uint64_t relisted_ns;       /* when a watch's version last was gone; 0: never */
        struct reflector_step current;
};

#define REFLECTOR_BACKOFF_MIN_NS (800 * UINT64_C(1000000))
#define REFLECTOR_BACKOFF_MAX_NS (30 * UINT64_C(1000000000))
#define REFLECTOR_BACKOFF_QUIET_NS (120 * UINT64_C(1000000000)) /* after that long without one it starts over */
#define REFLECTOR_WATCH_SHORT_NS (UINT64_C(1000000000))

enum { REFLECTOR_WATCH_LIST_TRIES = 3 };

/* Begins; *ret_step is the first thing to do. */
void reflector_policy_init(struct reflector_policy *policy, bool watch_list, struct reflector_step *ret_step);
/* The server has answered somebody after it answered nobody: what of the last step's wait was for that is over. *ret_step is the last
 * step with what is to be waited now, which keeps those apart that have waited together. */
void reflector_policy_reachable(struct reflector_policy *policy, double chance, struct reflector_step *ret_step);
/* @chance is uniform in [0, 1). */
void reflector_policy_next(struct reflector_policy *policy, const struct reflector_outcome *outcome, uint64_t now_ns, double chance,
                           struct reflector_step *ret_step);
