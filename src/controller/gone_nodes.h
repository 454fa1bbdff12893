/* SPDX-License-Identifier: Apache-2.0 */
/* Takes away what agents of nodes leave behind that are no more: the NodeActivity and the Lease. An agent that was not heard of for an hour
 * is asked about, one at a time, by its Node: where that is gone, both are deleted, by the leader alone. Should the node come back, so
 * does its agent, as a new process that makes both anew.
 */
#pragma once

#include "controller/agents.h"
#include "kube/client.h"

#define GONE_AFTER_NS (3600 * UINT64_C(1000000000))
#define GONE_AGAIN_NS (600 * UINT64_C(1000000000)) /* after a failure, or where another replica leads */

struct gone_nodes;

struct gone_nodes_settings {
        const char *namespace; /* of the Leases; not copied */
        struct agents *agents; /* likewise */
        bool (*leads)(void *userdata);
        uint64_t (*now_ns)(void *userdata); /* monotonic */
};

int gone_nodes_new(struct kube_client *client, const struct gone_nodes_settings *settings, void *userdata,
                   struct gone_nodes **ret_gone);
struct gone_nodes *gone_nodes_free(struct gone_nodes *gone);
DEFINE_CLEANUP(struct gone_nodes, gone_nodes_free)

/* There is an agent that there was not before. Cheap while one is waited for. */
void gone_nodes_look(struct gone_nodes *gone);
