/* SPDX-License-Identifier: Apache-2.0 */
/* What all nodes together say about one policy. Pure.
 *
 * Unknown is not idle: a node that runs its pods and has no fresh agent, or whose agent does not mention the policy, is evidence
 * against sleep, and so is a target of which no node is known to run a pod, or fewer pods than it is to have: those that are being made
 * may be what somebody waits for, and those that end are not what is to be put to sleep. A target none of whose pods is ready starts. EndpointSlices name the nodes whose agents have to speak;
 * an agent elsewhere that says it has pods of the policy is heard all the same, and one that knows fewer than they name has not seen
 * them all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/agents.h"

enum { EVIDENCE_MISSING_MAX = 5 }; /* that are named; all are counted */

struct evidence_question {
        const char *policy; /* "namespace/name" */
        int64_t epoch;
        uint64_t version;     /* the resourceVersion with which it became Sleeping */
        char *const *nodes;   /* that run its pods */
        const uint32_t *pods; /* on each of them */
        size_t n_nodes;
        uint32_t wanted, running; /* pods: that its target is to have, and that run somewhere and do not end */
        size_t n_ready;           /* endpoints */
        bool who_asks;            /* look for demand */
        bool who_has_programmed;  /* look for acknowledgements */
};

struct evidence {                         /* names and texts are the agents' */
        const struct node_demand *demand; /* of this epoch, the earliest; or NULL */
        const char *demand_node;

        bool idle;                           /* every node that runs its pods says Idle */
        bool only_gpu_report;                /* ... or would, if idle.gpu.onIdle were Sleep; at least one does not say Idle */
        uint32_t gpus;                       /* that its pods have */
        bool quiet;                          /* every one has voted for this epoch */
        const char *busy_node, *busy_reason; /* while not idle: who else says what */
        bool busy_is_unknown;                /* it says Unknown, or nothing */
        bool pods_are_missing;               /* ... or nobody can say anything of some pods, for they do not run yet */
        bool none_is_ready;                  /* ... or of any, for none is ready yet */
        const char *unquiet_node;            /* while not quiet */
        bool programmed;                     /* every live agent has this version in its maps */
        const char *unprogrammed_node;
        const char *missing[EVIDENCE_MISSING_MAX]; /* nodes that run its pods, where no agent is alive; unproven ones may be */
        size_t n_missing;
};

void evidence_gather(const struct agents *agents, const struct evidence_question *question, uint64_t now_ns,
                     struct evidence *ret_evidence);
