/* SPDX-License-Identifier: Apache-2.0 */
/* A NodeActivity object: what one node's agent sees. Cluster-scoped, named after the node; only that agent writes it, and only when
 * something changes; controllers read it. docs/kubernetes-protocol.md says who does what when.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kube/resource.h"

enum { NODE_ACTIVITY_DEMANDS_MAX = 1024, NODE_ACTIVITY_WORKLOADS_MAX = 4096 };

struct node_demand {   /* somebody wants a sleeping policy's target */
        char *policy;  /* "namespace/name" */
        int64_t epoch; /* of the policy's status, when it was seen */
        uint64_t first_realtime_ns;
        uint32_t held; /* packets, about; written with the demand and not followed */
        char *source;  /* "10.77.1.5:40000", or NULL where it is not known */
};

enum workload_state {
        WORKLOAD_ACTIVE,
        WORKLOAD_IDLE, /* for all of idle.after, with complete evidence */
        WORKLOAD_UNKNOWN,
};

enum node_gpu_state {
        NODE_GPU_ACTIVE, /* worked within idle.gpu.after, or is not known for longer to have not */
        NODE_GPU_IDLE,   /* certainly */
        NODE_GPU_UNUSED, /* allocated for long, and never opened */
        NODE_GPU_STUCK,
        NODE_GPU_UNKNOWN,
};

struct node_gpu {         /* how a policy's pods on this node stand with their GPUs */
        uint32_t devices; /* that they have or have had; 0: none, and nothing else of it counts */
        enum node_gpu_state state;
        uint64_t since_realtime_ns;
        bool would_sleep; /* with idle.gpu.onIdle Sleep the workload would be Idle */
};

struct node_workload { /* a policy whose target has pods on this node */
        char *policy;
        enum workload_state state;
        int64_t quiet_epoch; /* the last epoch for which this node voted quiet: holding, and neither demand nor activity since */
        uint64_t since_realtime_ns; /* of the state */
        uint32_t pods;
        uint32_t open_requests; /* when it was last written */
        char *reason;           /* for people: why it is active or unknown, or NULL */
        struct node_gpu gpu;
};

struct node_activity {
        struct kube_metadata metadata; /* the name is the node's */
        uint64_t programmed;           /* every policy of a resourceVersion up to this one is in this node's maps */
        struct node_demand *demands;
        size_t n_demands;
        struct node_workload *workloads;
        size_t n_workloads;
        char *instance; /* of the process that wrote it, as its Lease names its holder; or NULL */
        char *problem;  /* what this node cannot do ("hooks cannot be attached: …"), or NULL */
};

#define NODE_ACTIVITY_RESOURCE "nodeactivities"
#define AGENT_LEASE_PREFIX "lull-agent-" /* the Lease of node N's agent, in lull's namespace, is called lull-agent-N */

int node_activity_read(const json_t *object, struct node_activity **ret_activity, const char **ret_field);
struct node_activity *node_activity_free(struct node_activity *activity);
DEFINE_CLEANUP(struct node_activity, node_activity_free)

/* Its status as JSON, whole. NULL: out of memory. */
json_t *node_activity_status_json(const struct node_activity *activity);
const struct node_demand *node_activity_find_demand(const struct node_activity *activity, const char *policy);     /* or NULL */
const struct node_workload *node_activity_find_workload(const struct node_activity *activity, const char *policy); /* or NULL */
