/* SPDX-License-Identifier: Apache-2.0 */
/* What the client counts about itself, for whoever exports metrics.
 *
 * Requests have a row for each (verb, resource, code), at most KUBE_COUNTER_ROWS_MAX; those past that share a last row with the
 * resource "other".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum kube_verb {
        KUBE_GET,
        KUBE_LIST,
        KUBE_WATCH,
        KUBE_CREATE,
        KUBE_UPDATE,
        KUBE_PATCH,
        KUBE_DELETE,
        KUBE_VERB_MAX,
};

enum { KUBE_COUNTER_ROWS_MAX = 256, KUBE_RESOURCE_MAX = 48, KUBE_LATENCY_BUCKETS = 12 };

/* Upper bounds in seconds: 1 ms to 60 s. What is above the last is only in the count. */
extern const double kube_latency_bounds[KUBE_LATENCY_BUCKETS];

struct kube_counter_row {
        enum kube_verb verb;
        char resource[KUBE_RESOURCE_MAX];
        unsigned code; /* of HTTP; 0: there was no answer */
        uint64_t requests;
        uint64_t latency_ns; /* in sum: until the answer was complete; a watch is counted when its answer begins */
        uint64_t buckets[KUBE_LATENCY_BUCKETS]; /* each only its own, not those below */
};

struct kube_counters {
        struct kube_counter_row rows[KUBE_COUNTER_ROWS_MAX];
        size_t n_rows;
        uint64_t retries;           /* of plain requests, because the server asked for it */
        uint64_t unauthorized;      /* answers 401: the token was read again */
        uint64_t bytes_received;    /* bodies, decompressed */
        uint64_t connections;       /* begun */
        uint64_t refused_by_bounds; /* requests that were not accepted, because too many waited */
};

void kube_counters_request(struct kube_counters *counters, enum kube_verb verb, const char *resource, unsigned code,
                           uint64_t latency_ns);
const char *kube_verb_to_string(enum kube_verb verb); /* "get", "list", "watch", "create", "update", "patch", "delete" */
