/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's insides, open to this directory only. */
#pragma once

#include "agent/agent.h"
#include "agent/node.h"
#include "hold/hold.h"
#include "kube/client.h"
#include "serve/http.h"

enum { CLUSTER_PREFIXES_MAX = 8 };

struct lease;

struct agent {
        const struct agent_options *options;
        struct node node;
        struct prefix cluster[CLUSTER_PREFIXES_MAX];
        struct hold_translation translation;
        struct kube_client *client;
        struct lease *lease;
        int lock_fd; /* of RUN_DIR/lulld.lock: one daemon a run directory */
        struct http_server *control, *metrics;
        uint64_t started_ns;
};

/* watches.c: follows ScaleToZero objects and this node's pods. Logs what is wrong with an object. Returns 0 or -errno. */
int agent_watch(struct agent *agent);

/* api.c, exposition.c */
extern const struct http_route agent_control_routes[];
extern const struct http_route agent_metrics_routes[];
int agent_metrics_text(struct agent *agent, char **ret_text);

/* view.c: the policy as in docs/control-api.md. */
json_t *agent_policy_json(struct agent_policy *policy);
