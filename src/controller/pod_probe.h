/* SPDX-License-Identifier: Apache-2.0 */
/* Which readiness probe a pod declares for itself, as an agent may run it in the kubelet's stead. Pure.
 *
 * A pod is Ready when every container is running and has passed its readinessProbe, if it has one
 * (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate). One probe can say the same only when
 *
 *   - exactly one container has a readinessProbe, and that is httpGet over HTTP/1 or tcpSocket to the pod itself (no `host`);
 *   - every other container, but for init containers that are sidecars and have been started before it, is running already: a port that
 *     belongs to another may not listen yet;
 *   - there are no readinessGates;
 *   - its startupProbe, until which the kubelet runs no other (pkg/kubelet/prober/worker.go), has succeeded or would: an answer to
 *     httpGet proves tcpSocket and httpGet of the same port, a connection proves tcpSocket. The kubelet asks the two one after the
 *     other, so the longer of their initialDelaySeconds counts.
 *
 * In all other cases the type is PROBE_NONE: the kubelet's Ready decides.
 */
#pragma once

#include <jansson.h>

#include "kube/scale_to_zero.h"

struct pod_probe {
        struct status_probe probe;
        uint64_t started_realtime_ns; /* when the container with the probe last started; 0: not running */
        bool pending; /* PROBE_NONE only because a container is not running, or not said to be, yet: another look may find more */
};

/* Returns 0, -EBADMSG when @pod is none, or -ENOMEM. */
int pod_probe_read(const json_t *pod, struct pod_probe *ret_probe);
void pod_probe_done(struct pod_probe *probe);

int status_probe_copy(const struct status_probe *source, struct status_probe *ret_probe); /* 0 or -ENOMEM */
void status_probe_done(struct status_probe *probe);
