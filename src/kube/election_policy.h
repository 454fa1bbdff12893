/* SPDX-License-Identifier: Apache-2.0 */
/* What a candidate or leader does next, as a function of what happened and when. Pure: clocks and chance are passed in.
 *
 * Client-go's rules, with these differences, none of which lets anybody take a Lease earlier: the time that a leader may act is
 * measured from when its write was sent (there: from when the attempt ended); a candidate tries again as soon as the Lease runs
 * out if that is before its next turn; a Lease that vanishes while its holder may still act is not made anew before that time is
 * over, by those who have seen it.
 *
 * One request at a time. Each update is guarded by the version that came with the last RECORD or WRITTEN; keeping it is the
 * caller's part, as is ending requests after election_policy_patience_ns() with FAILED.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/micro_time.h"

enum {
        ELECTION_IDENTITY_MAX = 253, /* bytes */
        ELECTION_HOLDER_MAX = 256,   /* others' names are cut to it; so none that was cut is ever taken for an own one */
        ELECTION_RELEASE_TRIES = 3,
};

#define ELECTION_JITTER 1.2 /* client-go's JitterFactor: a candidate waits for retry × (1 + 1.2 × chance) */

struct election_record {
        char holder[ELECTION_HOLDER_MAX]; /* "": nobody */
        uint32_t duration_seconds;
        uint32_t transitions;
        char acquire_time[MICRO_TIME_TEXT_MAX], renew_time[MICRO_TIME_TEXT_MAX]; /* of others only compared for equality */
};

struct election_rules {
        char identity[ELECTION_HOLDER_MAX];
        uint64_t lease_ns, renew_ns, retry_ns; /* lease: whole seconds */
};

struct election_moment {
        uint64_t now_ns; /* a clock that runs on during suspend, read before whatever follows from it */
        uint64_t realtime_us;
        double chance; /* uniform in [0, 1) */
};

enum election_event {
        ELECTION_TIMER,    /* election_policy_due_ns() is reached */
        ELECTION_RECORD,   /* it was read */
        ELECTION_ABSENT,   /* there is no Lease to read or to update, or no namespace to create it in */
        ELECTION_WRITTEN,  /* election_policy.writing is in the store now */
        ELECTION_CONFLICT, /* not written, because someone else wrote meanwhile */
        ELECTION_FAILED,   /* whether it was written is not known */
};

enum election_action {
        ELECTION_WAIT,
        ELECTION_READ,
        ELECTION_CREATE, /* election_policy.writing */
        ELECTION_UPDATE, /* likewise */
        ELECTION_DONE,   /* released; nothing follows */
};

struct election_policy {
        struct election_rules rules;
        struct election_record observed; /* last read or written */
        uint64_t observed_ns;            /* since when it is what it is, as seen from here */
        bool current;                    /* no write of ours with an unknown end came after it */
        bool may_hold;                   /* a write of ours may have put our name there */
        struct election_record writing;
        enum election_action in_flight; /* WAIT: none */
        uint64_t sent_ns;
        uint64_t attempt_ns;    /* an attempt is all that one timer sets off */
        bool attempt_has_read;  /* so a refused write ends it */
        uint64_t next_ns;       /* the next attempt */
        uint64_t until_ns;      /* may act before; 0: not at all */
        uint64_t written_us;    /* the last renewTime, so that no two are the same */
        unsigned release_tries; /* 0: not releasing */
};

/* The first attempt is due at once. */
void election_policy_init(struct election_policy *policy, const struct election_rules *rules);

/* @record is that of a RECORD, else NULL. */
enum election_action election_policy_step(struct election_policy *policy, enum election_event event,
                                          const struct election_record *record, const struct election_moment *moment);
/* Leads no longer and never again; a request in flight has been abandoned. Further steps end with DONE. */
enum election_action election_policy_release(struct election_policy *policy, const struct election_moment *moment);

bool election_policy_may_act(const struct election_policy *policy, uint64_t now_ns);
/* When to step with TIMER, or UINT64_MAX; the end of leading is such a time too. */
uint64_t election_policy_due_ns(const struct election_policy *policy, uint64_t now_ns);
uint64_t election_policy_patience_ns(const struct election_policy *policy);
