/* SPDX-License-Identifier: Apache-2.0 */
/* Who of several replicas leads: a coordination.k8s.io/v1 Lease, with client-go's rules of timing.
 *
 * A candidate takes a Lease whose holder has not renewed it for leaseDuration since this candidate last saw it change: times
 * written by others are only compared for equality, so that clocks may differ. A leader renews every retryPeriod and counts as
 * leader only until renewDeadline after the *start* of its last successful renewal, on its own clock, which runs on during
 * suspend. All writes are guarded by resourceVersion.
 *
 * Since renewDeadline < leaseDuration, no two count as leaders at once, unless a clock's rate is off by more than their ratio. A
 * process that was paused finds by kube_election_is_leader() that its time is up, before its timers have run: ask it right
 * before acting.
 *
 * Callbacks come from the event loop and must not free the election.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct kube_election;

struct kube_election_settings {
        const char *namespace; /* of the Lease */
        const char *name;
        const char *identity;       /* this replica's: differs from all others', also from its own after a restart */
        uint64_t lease_duration_ns; /* 0: 15 s; rounded up to seconds, as the API has them */
        uint64_t renew_deadline_ns; /* 0: 10 s; < lease_duration */
        uint64_t retry_period_ns;   /* 0: 2 s; × 1.2 < renew_deadline; the wait of a candidate is jittered by that factor */
};

struct kube_election_callbacks {
        void (*started)(void *userdata);                     /* this one leads */
        void (*stopped)(void *userdata);                     /* it no longer does */
        void (*changed)(const char *holder, void *userdata); /* someone, this one included, leads; "" nobody */
};

struct kube_election_counters {
        uint64_t acquired, lost, renewals, renewal_failures, conflicts;
};

/* Clocks and chance, for tests. */
struct kube_election_sources {
        uint64_t (*now_ns)(void); /* CLOCK_BOOTTIME */
        double (*chance)(void);   /* uniform in [0, 1) */
};

/* Returns 0, -EINVAL for durations that break the rules above, or -errno. @sources may be NULL. */
int kube_election_new(struct kube_client *client, const struct kube_election_settings *settings,
                      const struct kube_election_callbacks *callbacks, void *userdata, const struct kube_election_sources *sources,
                      struct kube_election **ret_election);
/* Without stopped(), and without giving the Lease back. */
struct kube_election *kube_election_free(struct kube_election *election);
DEFINE_CLEANUP(struct kube_election, kube_election_free)

/* Stops leading (stopped() is called before anything is sent), then gives the Lease back: the holder emptied and the duration 1
 * s, as client-go does. @done is called once it is over, whether it worked or not, and at once from the event loop for one that
 * does not lead. */
void kube_election_release(struct kube_election *election, void (*done)(void *userdata), void *userdata);

bool kube_election_is_leader(const struct kube_election *election);     /* reads the clock */
const char *kube_election_holder(const struct kube_election *election); /* as last seen, "" */
const struct kube_election_counters *kube_election_counters(const struct kube_election *election);
