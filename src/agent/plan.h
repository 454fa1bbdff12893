/* SPDX-License-Identifier: Apache-2.0 */
/* What this node holds for a policy: from the object as the API has it to what src/hold is told. Pure. */
#pragma once

#include "hold/hold.h"
#include "kube/scale_to_zero.h"

struct hold_plan {
        struct frontend *frontends; /* those that this node holds; all arrays are as long */
        struct holding_service *services;
        char **backends; /* of each: which of an endpoint's ports serves it */
        size_t n_frontends;
        struct prefix *from;
        size_t n_from;
        struct holding_ignore *ignore;
        size_t n_ignore;
        uint32_t max_held;
        uint64_t hold_timeout_ns;
};

/* @object must have a policy. The plan keeps nothing of it. Returns 0 or -ENOMEM; the caller owns *ret_plan. */
int hold_plan_make(const struct scale_to_zero *object, const char *node, struct hold_plan **ret_plan);
struct hold_plan *hold_plan_free(struct hold_plan *plan);
DEFINE_CLEANUP(struct hold_plan, hold_plan_free)
bool hold_plan_equal(const struct hold_plan *a, const struct hold_plan *b);

/* The endpoint as frontend @index sees it. Returns false where it does not serve that frontend. */
bool hold_plan_endpoint(const struct hold_plan *plan, size_t index, const struct status_endpoint *endpoint, const char *node,
                        struct holding_endpoint *ret_endpoint);
