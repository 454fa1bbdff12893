/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pod_allocations.h"

#include <string.h>

void pod_allocations_done(struct pod_allocations *allocations)
{
        for (size_t i = 0; i < allocations->n_names; i++)
                free(allocations->names[i]);
        *allocations = (struct pod_allocations){ 0 };
}

static bool is_of_pool(const struct kube_resource_slice *slice, const struct kube_claim_device *device)
{
        return strcmp(slice->driver, device->driver) == 0 && strcmp(slice->pool, device->pool) == 0;
}

static const struct kube_slice_device *device_of_slice(const struct kube_resource_slice *slice, const char *name)
{
        for (size_t i = 0; i < slice->n_devices; i++)
                if (strcmp(slice->devices[i].name, name) == 0)
                        return &slice->devices[i];
        return NULL;
}

/* The pool's newest generation; returns whether all its slices are there. */
static bool pool_generation(const struct pod_allocations_view *view, const struct kube_claim_device *device,
                            int64_t *ret_generation)
{
        int64_t newest = INT64_MIN, n = 0, n_slices = 0;

        for (size_t i = 0; i < view->n_slices; i++) {
                const struct kube_resource_slice *slice = view->slices[i];

                if (!is_of_pool(slice, device) || slice->generation < newest)
                        continue;
                n = slice->generation == newest ? n + 1 : 1;
                newest = slice->generation;
                n_slices = slice->n_slices;
        }
        *ret_generation = newest;
        return n > 0 && n == n_slices;
}

/* NULL while the pool's slices do not tell. */
static const struct kube_slice_device *find_device(const struct pod_allocations_view *view, const struct kube_claim_device *device)
{
        int64_t generation;

        if (!pool_generation(view, device, &generation))
                return NULL;
        for (size_t i = 0; i < view->n_slices; i++) {
                const struct kube_slice_device *found = NULL;

                if (is_of_pool(view->slices[i], device) && view->slices[i]->generation == generation)
                        found = device_of_slice(view->slices[i], device->device);
                if (found)
                        return found;
        }
        return NULL;
}

static struct gpu_allocation *allocation_named(struct pod_allocations *allocations, const char *name)
{
        for (size_t i = 0; i < allocations->n; i++)
                if (strcmp(allocations->list[i].name, name) == 0)
                        return &allocations->list[i];
        return NULL;
}

static int add_device(const struct pod_allocations_view *view, const struct kube_claim_device *device,
                      struct pod_allocations *allocations)
{
        const struct kube_slice_device *known = find_device(view, device);
        struct gpu_allocation allocation = { .count = 1, .doubtful = strncmp(device->driver, "gpu.", 4) != 0 };
        char *name;

        if (known) {
                allocation.bus_id = known->bus_id;
                allocation.uuid = known->uuid;
        }
        if (allocation.doubtful && !allocation.bus_id && !allocation.uuid)
                return 0;
        if (asprintf(&name, "%s/%s/%s", device->driver, device->pool, device->device) < 0)
                return -ENOMEM;
        /* Several claims, or several shares of one, may have the same device. */
        if (allocation_named(allocations, name) || allocations->n == ELEMENTSOF(allocations->list)) {
                free(name);
                return 0;
        }
        allocation.name = allocations->names[allocations->n_names++] = name;
        allocations->list[allocations->n++] = allocation;
        return 0;
}

int pod_allocations_read(const struct kube_pod *pod, const struct pod_allocations_view *view,
                         struct pod_allocations *ret_allocations)
{
        struct pod_allocations allocations = { 0 };

        for (size_t i = 0; i < pod->n_gpu_requests && allocations.n < ELEMENTSOF(allocations.list); i++)
                allocations.list[allocations.n++] = (struct gpu_allocation){ .name = pod->gpu_requests[i].resource,
                                                                             .count = pod->gpu_requests[i].count,
                                                                             .parts = pod->gpu_requests[i].parts };
        for (size_t i = 0; i < pod->n_claims; i++) {
                const struct kube_resource_claim *claim = view->claim(pod->metadata.namespace, pod->claims[i], view->userdata);

                for (size_t j = 0; claim && j < claim->n_devices; j++)
                        if (add_device(view, &claim->devices[j], &allocations) < 0) {
                                pod_allocations_done(&allocations);
                                return -ENOMEM;
                        }
        }
        *ret_allocations = allocations;
        return 0;
}
