/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease by which controllers know that this node's agent lives: renewed every LEASE_RENEW_NS, made when it is missing. A renewal
 * that fails is tried again after 2 s, and so is one that is put off: renewing it says that what this node wrote of itself is true.
 * Nobody else writes it, so nothing guards it. */
#pragma once

#include <stdint.h>

#include "kube/client.h"

#define LEASE_RENEW_NS (10 * UINT64_C(1000000000))
enum { LEASE_DURATION_SECONDS = 40 };

struct lease;

struct lease_settings { /* copied */
        const char *namespace;
        const char *name;
        const char *holder;
        const char *(*problem)(void *userdata); /* why it may not be renewed now, for people; "": it may */
        void *userdata;
};

struct lease_counters {
        uint64_t renewals, failures; /* requests that were done, and that were not */
};

/* The first request is made from the event loop. Returns 0 or -errno. */
int lease_new(struct kube_client *client, const struct lease_settings *settings, struct lease **ret_lease);
struct lease *lease_free(struct lease *lease); /* the Lease itself stays: it runs out */
DEFINE_CLEANUP(struct lease, lease_free)

const struct lease_counters *lease_counters(const struct lease *lease);
uint64_t lease_renewed_ns(const struct lease *lease); /* when it last was, monotonic; 0: never */
