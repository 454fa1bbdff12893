/* SPDX-License-Identifier: Apache-2.0 */
/* May a workload be put to sleep, as far as its GPUs go? One place for the rules of all roles. Pure.
 *
 * What has nothing to do with a GPU may. What holds one that is certainly idle may where the policy says so (onIdle: Sleep); what has
 * closed all that it had, or never opened what it was given, may in any case, once that is long enough ago. All else stays awake, what is
 * unknown above all.
 */
#pragma once

#include <jansson.h>

#include "activity/idle.h"
#include "gpu/verdict.h"
#include "policy/policy.h"

struct gpu_standing {               /* how a workload stands with its GPUs */
        unsigned devices;           /* that it has or has had; 0: it has nothing to do with any, for certain */
        unsigned open;              /* of those, now */
        struct gpu_verdict verdict; /* on all of them */
};

/* Of one that cannot be looked at. @devices is at least 1. */
void gpu_standing_unknown(unsigned devices, const char *reason, struct gpu_standing *ret_standing);

bool gpu_permits_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle);

/* Whether onIdle: Report is all that keeps it awake. */
bool gpu_would_permit_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle);

/* Makes of @verdict, which is idle, what it is with the GPUs: it stays so, or becomes busy or unknown and is looked at again in 5 s. */
void gpu_judge_sleep(const struct gpu_standing *standing, enum gpu_on_idle on_idle, uint64_t now_ns, struct idle_verdict *verdict);

/* The standing of several workloads together, idle only when all are. Those that have nothing to do with a GPU do not matter.
 * Returns 0 or -ENOMEM. */
struct gpu_standing_part {
        const char *name; /* for the reason */
        const struct gpu_standing *standing;
};
int gpu_standing_all(const struct gpu_standing_part *parts, size_t n_parts, struct gpu_standing *ret_standing);

/* A policy's *gpu* of docs/control-api.md: json_null() without a device. NULL: no memory. */
json_t *gpu_standing_json(const struct gpu_standing *standing, enum gpu_on_idle on_idle);
