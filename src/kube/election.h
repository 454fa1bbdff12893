/* SPDX-License-Identifier: Apache-2.0 */
/* Who of several replicas leads: a coordination.k8s.io/v1 Lease, with client-go's rules of timing.
 *
 * The fencing rule. A leader may act in [A, S + renewDeadline): S is when its last successful write of the Lease was handed to the
 * client, A when the answer to its first one came. A later success moves the end, nothing else does, and reading another's name
 * in the Lease ends it at once. A candidate writes its own name only if the Lease has not changed for the leaseDuration that is
 * written in it, counted from when the candidate last *saw* it change; it saw that after the write had reached the store, so
 * after S. All writes are guarded by resourceVersion, so that one which travels for long and arrives after another does nothing.
 * Times written by others are only compared for equality: clocks may differ by any amount, and in rate by leaseDuration /
 * renewDeadline (1.5 by default), before two may act at once.
 *
 * Time is CLOCK_BOOTTIME, which runs on during suspend. A process that was paused or suspended finds its time to be up before any
 * timer of it has run: kube_election_is_leader() reads the clock. Ask it right before acting. What it cannot cover: an action that
 * was begun in time and reaches its end late (guard writes by resourceVersion), a virtual machine whose clocks its host stops, and
 * people who edit or delete the Lease while it is held.
 *
 * Requests have the priority of wakes, lest a queue of ours cost the lead. Callbacks come from the event loop or from within
 * kube_election_release(), and must not free the election.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct kube_election;

struct kube_election_settings {
        const char *namespace; /* of the Lease */
        const char *name;
        const char *identity; /* this replica's: differs from all others', also from its own after a restart; at most 253 bytes */
        uint64_t lease_duration_ns; /* 0: 15 s; rounded up to seconds, as the API has them */
        uint64_t renew_deadline_ns; /* 0: 10 s; < lease_duration */
        uint64_t retry_period_ns;   /* 0: 2 s; × 1.2 < renew_deadline; a candidate waits that long and up to 1.2 times that more */
};

struct kube_election_callbacks {
        void (*started)(void *userdata);                     /* this one leads */
        void (*stopped)(void *userdata);                     /* it no longer does */
        void (*changed)(const char *holder, void *userdata); /* someone, this one included, leads; "" nobody */
};

struct kube_election_counters {
        uint64_t acquired, lost;             /* what was given back is not lost */
        uint64_t renewals, renewal_failures; /* requests while leading */
        uint64_t conflicts;                  /* writes refused, because someone else had written meanwhile */
};

enum { KUBE_ELECTION_PROBLEM_MAX = 384 };

/* Clocks and chance, for tests. */
struct kube_election_sources {
        uint64_t (*now_ns)(void); /* CLOCK_BOOTTIME */
        double (*chance)(void);   /* uniform in [0, 1) */
};

/* The first request is made from the event loop. Returns 0, -EINVAL for durations or names that break the rules above, or -errno.
 * @sources may be NULL. */
int kube_election_new(struct kube_client *client, const struct kube_election_settings *settings,
                      const struct kube_election_callbacks *callbacks, void *userdata, const struct kube_election_sources *sources,
                      struct kube_election **ret_election);
/* Without stopped(), and without giving the Lease back. */
struct kube_election *kube_election_free(struct kube_election *election);
DEFINE_CLEANUP(struct kube_election, kube_election_free)

/* Stops leading (stopped() is called before anything is sent), then gives the Lease back: the holder emptied and the duration 1
 * s, as client-go does. It is no candidate from then on. @done is called once from the event loop when it is over, whether it
 * worked or not; a single request is given up after half of renewDeadline. A second call does nothing. */
void kube_election_release(struct kube_election *election, void (*done)(void *userdata), void *userdata);

bool kube_election_is_leader(const struct kube_election *election);      /* reads the clock */
const char *kube_election_holder(const struct kube_election *election);  /* as last seen, "" */
const char *kube_election_problem(const struct kube_election *election); /* why the last request failed, for people; "" if not */
const struct kube_election_counters *kube_election_counters(const struct kube_election *election);
