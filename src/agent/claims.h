/* SPDX-License-Identifier: Apache-2.0 */
/* What DRA gave the pods of this node: ResourceClaims of all namespaces, and the ResourceSlices of the node's own pools.
 *
 * Nothing is watched before a pod has a claim: where nobody uses DRA it costs nothing, and where the API server does not serve
 * resource.k8s.io no pod can have one. RBAC and field selectors cannot narrow claims to those of a node, so all allocated ones of the
 * cluster are kept, some 300 bytes each.
 */
#pragma once

#include "kube/client.h"
#include "kube/pod_allocations.h"

struct claims;

struct claims_config {
        struct kube_client *client;
        const char *node;
        void (*changed)(void *userdata); /* what claims_allocations() gives may be another than before */
        void *userdata;
};

int claims_new(const struct claims_config *config, struct claims **ret_claims);
struct claims *claims_free(struct claims *claims); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct claims, claims_free)

/* *ret_allocations borrows from @pod and @claims until either changes. Returns 0; -EAGAIN while the pod has claims that are not known
 * yet; or -errno. */
int claims_allocations(struct claims *claims, const struct kube_pod *pod, struct pod_allocations *ret_allocations);
