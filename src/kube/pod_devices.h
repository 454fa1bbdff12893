/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the pod reader that is about devices: which GPUs its containers request of device plugins, and its ResourceClaims. */
#pragma once

#include "kube/fields.h"
#include "kube/resource.h"

/* Into @pod, whose members for it are empty; what went wrong is the reader's. */
void pod_devices_read(struct field_reader *reader, const json_t *spec, const json_t *status, struct kube_pod *pod);
void pod_devices_done(struct kube_pod *pod);
