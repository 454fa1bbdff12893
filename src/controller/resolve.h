/* SPDX-License-Identifier: Apache-2.0 */
/* From what the cluster has to what a policy's status says: which frontends its Services have, which endpoints answer for them, and
 * what is wrong about it. Pure: objects in, values out; the caller owns the watches.
 */
#pragma once

#include <stddef.h>

#include "kube/resource.h"
#include "kube/scale_to_zero.h"

struct resolve_probe { /* what a pod declares, read once a pod */
        const char *pod_uid;
        struct status_probe probe;
        uint64_t started_realtime_ns;
};

struct resolve_parking { /* where packets to the policy's parking EndpointSlice arrive */
        const char *node;
        struct address address;
        const char *backend;
        uint16_t port;
        uint8_t protocol;
};

struct resolve_input {
        const struct scale_to_zero *object;
        const struct kube_service *const *services; /* of the object's namespace */
        size_t n_services;
        const struct kube_endpoint_slice *const *slices; /* likewise */
        size_t n_slices;
        const json_t *pod_labels; /* of the target's pod template; NULL: not known, then spec.services must say */
        const struct resolve_probe *probes;
        size_t n_probes;
        const struct resolve_parking *parking;
        size_t n_parking;
};

enum { RESOLVE_PROBLEMS_MAX = 8, RESOLVE_NODES_MAX = 5000 };

struct resolve_problem {           /* becomes a condition; see docs/kubernetes.md */
        const char *type, *reason; /* static */
        char *message;             /* what is wrong and what to do */
};

struct resolution {
        struct status_frontend *frontends;
        size_t n_frontends;
        struct status_endpoint *endpoints; /* at most STATUS_ENDPOINTS_MAX, ready ones first; terminating ones never */
        size_t n_endpoints;
        size_t n_ready; /* of all endpoints, also of those past the bound */
        char **nodes;   /* that run its pods, ready or not, each once, sorted */
        size_t n_nodes;
        struct resolve_problem problems[RESOLVE_PROBLEMS_MAX];
        size_t n_problems;
        bool can_sleep; /* no problem forbids it */
};

/* Returns 0 or -ENOMEM. The caller owns *ret_resolution, to be freed with resolution_free(). */
int resolve(const struct resolve_input *input, struct resolution **ret_resolution);
struct resolution *resolution_free(struct resolution *resolution);
DEFINE_CLEANUP(struct resolution, resolution_free)
