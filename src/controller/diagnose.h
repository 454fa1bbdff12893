/* SPDX-License-Identifier: Apache-2.0 */
/* Why a target's pods are not ready, from one look at them. Pure. Its words name what is wrong, and repeat what the kubelet, the scheduler
 * or the container itself says of it. */
#pragma once

#include <jansson.h>

enum { FINDING_MESSAGE_MAX = 460 };

struct finding {
        const char *reason; /* static: "Unschedulable", "ImageUnavailable", "ContainerCannotStart", "CrashLoop", "QuotaExceeded",
                               "CannotCreatePods", "NoPods", "NotReady" */
        char message[FINDING_MESSAGE_MAX];
};

/* The worst that is found in @pods (a PodList, or NULL), with its pod named. @failure: why the target makes none, by its conditions; or
 * NULL. */
void diagnose(const json_t *pods, const char *failure, struct finding *ret_finding);
