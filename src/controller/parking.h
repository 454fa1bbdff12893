/* SPDX-License-Identifier: Apache-2.0 */
/* Parking EndpointSlices: what clients that dial endpoints themselves find while a policy is not awake.
 *
 * Ingress controllers, gateways and meshes never use a Service's address, external load balancers leave nodes without endpoints out,
 * and a node without an agent refuses what has none. So each Service of a sleeping target has endpoints then: the addresses of
 * PARKING_NODES_MAX nodes with fresh agents, with a port for each of its ports on which nothing listens. The agents hold what comes
 * there like anything else, and release it to a pod, masqueraded.
 *
 * kube-proxy routes to these endpoints like to any other. On nodes with an agent that changes nothing: the hook comes before it. On
 * others the cluster IP leads to a parking port, which is what is wanted. Endpoints name their node, so that traffic policies Local and
 * the health checks of load balancers count them where the agent is: else nobody would send the first packet. Such a packet is held as
 * one for the node port, and released only to a pod of that node, as the policy asks; where the pod comes up elsewhere it serves as
 * the wake, and the client's next attempt is answered.
 *
 * The order of things: parking_plan() for every policy that is not awake, and as long after as its status has endpoints; its entries go into the status by
 * resolve(). Once the agents have acknowledged those, just before the target is scaled to zero, the slices are published; they go as
 * soon as an endpoint is ready. Only the leader writes them.
 *
 * Where nodes have their addresses from: the agents' own pods in lull's namespace, which are in their hosts' networks (status.podIPs). The
 * controller may read pods anyway; Node objects would need a further right, for all nodes.
 */
#pragma once

#include "controller/parking_ports.h"
#include "controller/resolve.h"
#include "kube/client.h"

#define PARKING_MANAGER "lull.dev" /* of the label endpointslice.kubernetes.io/managed-by */
enum { PARKING_NODES_MAX = 3 };

struct parking_node { /* with a fresh agent */
        const char *node;
        const struct address *addresses;
        size_t n_addresses;
};

struct parking_plan {
        struct resolve_parking *entries; /* by Service, port, family and node; strings are borrowed of the input, or owned below */
        size_t n_entries;
        char **backends;    /* owned, NULL-terminated */
        const char *reason; /* why something is not parked: "PortsExhausted", "NoNodes"; or NULL */
        const char *message;
};

/* Which Services of a namespace a policy has: those with a cluster IP among @resolution's frontends. */
struct parking_services {
        const struct kube_service *const *services;
        size_t n_services;
        const struct resolution *resolution;
};

/* Nodes are chosen by a hash of policy and node, so that one that goes moves nothing but its own. Returns 0 or -ENOMEM. */
int parking_plan(struct parking_ports *ports, const char *policy, const struct parking_services *services,
                 const struct parking_node *nodes, size_t n_nodes, struct parking_plan *ret_plan);
void parking_plan_done(struct parking_plan *plan);
/* Leaves out the nodes that are not told to hold all of it: an endpoint there would lead to nothing. */
void parking_plan_keep_told(struct parking_plan *plan, const struct scale_to_zero_status *status);

/* Whether it is one of this policy's. */
bool parking_is_own(const struct scale_to_zero *object, const struct kube_endpoint_slice *slice);

enum parking_action { PARKING_NOTHING, PARKING_CREATE, PARKING_UPDATE, PARKING_DELETE };

struct parking_step {
        enum parking_action action;
        char *name;   /* of the EndpointSlice */
        json_t *body; /* of a create; of an update, a merge patch guarded by resourceVersion */
};

/* The next thing to do so that the policy's slices, which are those of @slices that it owns, are as planned; with @plan NULL that there
 * are none. One that nobody owns any more, of a policy that was deleted without what it owned, is taken over where its name is needed.
 * Returns 0 or -ENOMEM. */
int parking_next(const struct scale_to_zero *object, const struct parking_services *services, const struct parking_plan *plan,
                 const struct kube_endpoint_slice *const *slices, size_t n_slices, struct parking_step *ret_step);
void parking_step_done(struct parking_step *step);
/* Makes the request. That the slice is there already (409), or gone (404), will be seen in the watch. Returns as kube_client_request(),
 * -EINVAL for PARKING_NOTHING. */
int parking_step_start(struct kube_client *client, const char *namespace, const struct parking_step *step,
                       const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);
