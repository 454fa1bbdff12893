/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs a pod was given: those that it requests of device plugins, by number, and those of its ResourceClaims, each by its name and,
 * where the slices of this node tell, by its place in the machine. Pure.
 *
 * A claim may be for anything. A driver called gpu.SOMETHING has GPUs; what another driver's device is shows when it turns out to be a GPU
 * that this machine has.
 */
#pragma once

#include "gpu/watch.h"
#include "kube/resource_claim.h"
#include "kube/resource_slice.h"

struct pod_allocations {
        struct gpu_allocation list[GPU_ALLOCATIONS_MAX]; /* without a time */
        size_t n;                                        /* further ones are left out */
        char *names[GPU_ALLOCATIONS_MAX];                /* those of claims */
        size_t n_names;
};

struct pod_allocations_view {
        /* The claim, or NULL when there is none. */
        const struct kube_resource_claim *(*claim)(const char *namespace, const char *name, void *userdata);
        void *userdata;
        const struct kube_resource_slice *const *slices;
        size_t n_slices;
};

/* *ret_allocations borrows from @pod and the view. Returns 0 or -ENOMEM. */
int pod_allocations_read(const struct kube_pod *pod, const struct pod_allocations_view *view,
                         struct pod_allocations *ret_allocations);
void pod_allocations_done(struct pod_allocations *allocations);
