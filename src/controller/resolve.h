/* SPDX-License-Identifier: Apache-2.0 */
/* From what the cluster has to what a policy's status says: which frontends its Services have, which endpoints answer for them, and
 * what is wrong about it. Pure: objects in, values out; the caller owns the watches, and asks only once they are complete: what is
 * not among the input does not exist.
 *
 * Which frontends a Service has is what kube-proxy makes of it (k8s.io/kubernetes/pkg/proxy/serviceport.go): source ranges apply to
 * load balancers' addresses only, each family to its own; a load balancer whose ipMode is Proxy has no address here, for its
 * packets arrive at the node port. Results are in an order that depends on nothing but their content.
 */
#pragma once

#include <stddef.h>

#include "controller/leftovers.h"
#include "controller/target.h"
#include "kube/resource.h"
#include "kube/scale_to_zero.h"

struct resolve_probe { /* what a pod declares, read once a pod */
        const char *pod_uid;
        struct status_probe probe;
        uint64_t started_realtime_ns;
};

struct resolve_parking { /* where packets to the policy's parking EndpointSlice arrive */
        const char *node;
        struct address address;
        const char *backend;
        uint16_t port;
        uint8_t protocol;
};

struct resolve_input {
        const struct scale_to_zero *object;
        const struct kube_service *const *services; /* of the object's namespace */
        size_t n_services;
        const struct kube_endpoint_slice *const *slices; /* likewise */
        size_t n_slices;
        const struct target_state *target; /* or NULL: not looked at */
        const json_t
                *pod_labels; /* of the target's pod template; NULL: @target's, and where that has none, spec.services must say */
        const struct resolve_probe *probes;
        size_t n_probes;
        const struct leftovers *leftovers; /* pods that are no endpoints any more, whatever slices say; or NULL */
        const struct resolve_parking *parking;
        size_t n_parking;
};

enum { RESOLVE_PROBLEMS_MAX = 9, RESOLVE_NODES_MAX = 5000 };

/* Becomes a condition; at most one of each type, what concerns several Services joined in its message.
 *
 *   TargetUnusable      NotFound, NotScalable                                                    forbids sleep
 *   ServiceMissing      NotFound, NoneSelectsPods, LabelsUnknown, SelectsOtherPods               forbids sleep
 *   ServiceUnsupported  Headless, NoSelector, ExternalName                                       forbids sleep
 *   PortUnsupported     SCTP, and protocols to come                                              forbids sleep
 *   ServiceShared       OtherPods: endpoints that are not the target's                           forbids sleep
 *   BoundExceeded       Frontends, Ports, Nodes                                                  forbids sleep
 *   PodsUnknown         NoNode, SliceUnreadable: nobody can say whether those are idle            forbids sleep
 *   NotReadyAddresses   PublishNotReady: lull goes by readiness all the same
 *   SessionAffinity     ClientIP: first packets wait for the data plane
 */
struct resolve_problem {
        const char *type, *reason; /* static */
        char *message;             /* what is wrong and what to do */
};

struct resolution {
        char **services; /* the names of those that it is made of */
        size_t n_services;
        struct status_frontend *frontends;
        size_t n_frontends;
        struct status_endpoint *endpoints; /* at most STATUS_ENDPOINTS_MAX, ready ones first; terminating ones never */
        size_t n_endpoints;
        size_t n_ready;      /* of all endpoints, also of those past the bound */
        char **nodes;        /* that run its pods, ready or not, or terminating and still serving; each once, sorted */
        uint32_t *node_pods; /* how many, on each of them */
        size_t n_nodes;
        uint32_t n_pods;           /* of those on nodes: without the terminating ones */
        struct status_port *ports; /* on which its pods serve; of a backend without endpoints those that the object's status has */
        size_t n_ports;
        struct resolve_problem problems[RESOLVE_PROBLEMS_MAX];
        size_t n_problems;
        bool can_sleep; /* no problem forbids it */
};

/* Returns 0 or -ENOMEM. The caller owns *ret_resolution, to be freed with resolution_free(). */
int resolve(const struct resolve_input *input, struct resolution **ret_resolution);
/* Whether @service may make a difference to it: it is named, or selects the target's pods. What is not known may. */
bool resolve_may_use(const struct policy *policy, const struct target_state *target, const struct kube_service *service);
struct resolution *resolution_free(struct resolution *resolution);
DEFINE_CLEANUP(struct resolution, resolution_free)
