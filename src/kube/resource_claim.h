/* SPDX-License-Identifier: Apache-2.0 */
/* A ResourceClaim of resource.k8s.io/v1, as far as it says which devices were allocated for whoever holds it. */
#pragma once

#include "kube/resource.h"

enum { KUBE_CLAIM_DEVICES_MAX = 128 }; /* the API allows 32 */

struct kube_claim_device {
        char *driver, *pool, *device; /* its name has all three: "gpu.nvidia.com", "node-7", "gpu-0" */
        char *request;                /* which of the claim's it is for */
};

struct kube_resource_claim {
        struct kube_metadata metadata;
        struct kube_claim_device *devices; /* none before it is allocated; those for administration only are left out */
        size_t n_devices;
};

int kube_resource_claim_read(const json_t *object, struct kube_resource_claim **ret_claim, const char **ret_field);
struct kube_resource_claim *kube_resource_claim_free(struct kube_resource_claim *claim);
DEFINE_CLEANUP(struct kube_resource_claim, kube_resource_claim_free)
