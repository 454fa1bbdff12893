/* SPDX-License-Identifier: Apache-2.0 */
/* A policy and all that is known about it, for tests of decide(). */
#pragma once

#include <string.h>

#include "base/time.h"
#include "controller/decide.h"

static const uint64_t second = NSEC_PER_SEC;
static const uint64_t begin_ns = 1000 * NSEC_PER_SEC;
static const uint64_t realtime_ns = 1700000000 * NSEC_PER_SEC;

/* A policy, and all that is known about it: awake for long, running, idle, nothing in the way. */
struct world {
        struct policy policy;
        struct scale_to_zero object;
        struct status_condition conditions[2];
        struct phase_machine machine;
        struct resolution resolution;
        struct target_state target;
        struct evidence evidence;
        struct node_demand demand;
        struct decide_input input;
        struct decision decision;
};

static _unused_ void world_make(struct world *world, enum phase phase)
{
        *world = (struct world){
                .policy = {
                        .name = "default/web",
                        .cluster.reference = { "apps/v1", "Deployment", "web" },
                        .idle = { .after_ns = 300 * NSEC_PER_SEC, .min_awake_ns = 60 * NSEC_PER_SEC },
                        .wake.hold_timeout_ns = 30 * NSEC_PER_SEC,
                },
                .resolution = { .can_sleep = true, .n_ready = 2 },
                .target = { .known = true, .exists = true, .replicas = 2 },
                .evidence = { .idle = true, .programmed = true },
                .demand = { .source = "10.0.0.1:40000" },
        };
        world->object = (struct scale_to_zero){
                .policy = &world->policy,
                .has_finalizer = true,
                .status = { .phase = phase,
                            .holding = phase != PHASE_AWAKE,
                            .epoch = 3,
                            .replicas_before = 2,
                            .idle_factor = 1,
                            .since_realtime_ns = realtime_ns - 600 * second,
                            .conditions = world->conditions },
        };
        if (phase == PHASE_ASLEEP || phase == PHASE_WAKING) {
                world->target.replicas = 0;
                world->resolution.n_ready = 0;
                world->evidence.idle = false;
        }
        decide_seed(&world->object, begin_ns, realtime_ns, &world->machine);
        if (phase == PHASE_WAKING) {
                world->machine.since_ns = begin_ns - second;
                world->machine.hold_deadline_ns = begin_ns + 29 * second;
        }
        if (phase == PHASE_SLEEPING) {
                world->machine.since_ns = begin_ns - second;
                world->machine.quiet_deadline_ns = begin_ns;
        }
        world->input = (struct decide_input){
                .object = &world->object,
                .machine = &world->machine,
                .resolution = &world->resolution,
                .target = &world->target,
                .evidence = &world->evidence,
                .now_ns = begin_ns,
                .now_realtime_ns = realtime_ns,
                .zero_since_ns = begin_ns - 10 * second,
                .leader = true,
                .current = true,
                .round = true,
        };
}

static _unused_ const struct decision *look(struct world *world)
{
        decide(&world->input, &world->decision);
        return &world->decision;
}

static _unused_ bool says(const struct decision *decision, const char *type, const char *words)
{
        const struct condition_entry *entry = conditions_find(&decision->conditions, type);

        return entry && strstr(entry->message, words);
}

static _unused_ void asked(struct world *world)
{
        world->demand.epoch = world->object.status.epoch;
        world->evidence.demand = &world->demand;
        world->evidence.demand_node = "n1";
        world->input.demand_since_ns = begin_ns;
}
