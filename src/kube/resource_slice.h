/* SPDX-License-Identifier: Apache-2.0 */
/* A ResourceSlice of resource.k8s.io/v1: some of the devices of one pool of one driver, with what tells which of the machine's they are.
 *
 * A pool may take several slices, and changes by new ones with a higher generation: only the slices of the highest are it, and only when
 * there are as many of them as each says.
 */
#pragma once

#include "kube/resource.h"

enum { KUBE_SLICE_DEVICES_MAX = 512 }; /* the API allows 128 */

struct kube_slice_device {
        char *name;
        char *bus_id; /* of the attribute resource.kubernetes.io/pciBusID: "0000:65:00.0"; or NULL */
        char *uuid;   /* of the driver's own parentUUID, for a part of a device, or uuid: "GPU-..."; or NULL */
};

struct kube_resource_slice {
        struct kube_metadata metadata;
        char *driver, *pool;
        int64_t generation, n_slices; /* of the pool */
        struct kube_slice_device *devices;
        size_t n_devices;
};

int kube_resource_slice_read(const json_t *object, struct kube_resource_slice **ret_slice, const char **ret_field);
struct kube_resource_slice *kube_resource_slice_free(struct kube_resource_slice *slice);
DEFINE_CLEANUP(struct kube_resource_slice, kube_resource_slice_free)
