/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that is asked for its vote on a sleep. */
#pragma once

#include "unit/agent_world.h"

#define BY_HAND "'lastSleep':{'reason':'Manual','time':'2026-01-01T00:00:00Z'}"
#define BY_ITSELF "'lastSleep':{'reason':'Idle','time':'2026-01-01T00:00:00Z'}"
#define AWAKE "'phase':'Awake','epoch':1"
#define SLEEPING "'phase':'Sleeping','holding':true,'epoch':2,"

/* What it says of a sleep once it has voted, or said that it does not. */
static inline const json_t *decided(struct world *world)
{
        const struct node_counters *counters = &world->agent.node.counters;
        const struct agent_policy *policy = policy_of(world, "shop/web");
        uint64_t votes = counters->votes;

        while (counters->votes == votes && !policy->unquiet)
                step(world);
        do
                written(world);
        while (number_of(workload_told(world), "quietEpoch") != policy->quiet_epoch);
        return workload_told(world);
}
