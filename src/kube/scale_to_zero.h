/* SPDX-License-Identifier: Apache-2.0 */
/* A ScaleToZero object of the API: the policy that its spec says, and the status by which the controller tells agents and people.
 *
 * The controller alone writes the status, the agents read it; docs/kubernetes-protocol.md says who does what when.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "kube/resource.h"
#include "policy/phase.h"
#include "policy/policy.h"

enum {
        STATUS_FRONTENDS_MAX = 256,
        STATUS_ENDPOINTS_MAX = 16,
        STATUS_PORTS_MAX = 64, /* of an endpoint */
        STATUS_IGNORED_MAX = 256,
        STATUS_CONDITIONS_MAX = 16,
        STATUS_HEADERS_MAX = 16, /* of a probe */
        IDLE_FACTOR_MAX = 16,
};

enum frontend_origin {
        FRONTEND_CLUSTER_IP,
        FRONTEND_NODE_PORT, /* on every node's own addresses: its address is a wildcard */
        FRONTEND_EXTERNAL,  /* spec.externalIPs */
        FRONTEND_LOAD_BALANCER,
        FRONTEND_PARKING, /* a node's own address, in a parking EndpointSlice; only that node holds it */
};

struct status_frontend {
        struct frontend frontend;
        enum frontend_origin origin;
        char *backend;                /* "web/http": which port of which Service; endpoints say how to reach it */
        char *node;                   /* of a parking frontend, or NULL */
        struct prefix *source_ranges; /* who may use it; empty: everybody */
        size_t n_source_ranges;
        bool local;    /* its traffic policy is Local: endpoints of the packet's node only */
        bool affinity; /* sessionAffinity ClientIP: the data plane alone may choose */
};

enum probe_type { PROBE_NONE, PROBE_HTTP, PROBE_TCP }; /* NONE: the kubelet's Ready decides */

struct status_probe { /* the readinessProbe that the pod declares for itself */
        enum probe_type type;
        uint16_t port;
        bool tls; /* scheme HTTPS; like the kubelet, nothing is verified */
        char *path;
        char *host;     /* Host header, or NULL */
        char **headers; /* "Name: value", NULL-terminated, or NULL */
        uint64_t timeout_ns, initial_delay_ns;
        uint32_t success_threshold;
};

struct status_port {
        char *backend; /* of status_frontend */
        uint16_t port;
        uint8_t protocol;
};

struct status_endpoint {
        struct address address;
        char *node;
        char *pod, *pod_uid;
        bool ready;                   /* as the EndpointSlice has it */
        uint64_t started_realtime_ns; /* when its container started, for initialDelaySeconds; 0: unknown */
        struct status_port *ports;
        size_t n_ports;
        struct status_probe probe;
};

struct status_condition {
        char *type, *reason, *message;
        bool holds; /* status "True" */
        uint64_t since_realtime_ns;
        int64_t generation;
};

struct status_wake {
        uint64_t realtime_ns; /* 0: none yet */
        char *cause;          /* "Packet", "Scaled", "Manual", "Deleted" */
        char *source, *node;  /* who sent the first packet and where it was held; or NULL */
};

struct scale_to_zero_status {
        enum phase phase;
        int64_t epoch; /* grows by one whenever the phase becomes Sleeping */
        bool holding;  /* whether new flows are to be held */
        uint64_t since_realtime_ns;
        uint32_t replicas_before; /* 0: not known */
        uint32_t gpus_before;     /* that its pods had when they were put to sleep */
        struct status_frontend *frontends;
        size_t n_frontends;
        struct status_endpoint *endpoints; /* from Waking on, until the data planes know them */
        size_t n_endpoints;
        char *selector;            /* of the target's pods, text form ("app=web"), by which agents know them; "" while not known */
        struct status_port *ports; /* on which they serve, as last seen in EndpointSlices; kept at zero replicas */
        size_t n_ports;
        struct prefix *ignored; /* addresses of the pods that spec.ignore's selectors mean */
        size_t n_ignored;
        struct status_wake last_wake;
        uint64_t last_sleep_realtime_ns;
        char *last_sleep_reason;
        double saved_replica_seconds, saved_gpu_seconds;
        uint32_t idle_factor; /* flapping: agents multiply idle.after by it; 1 to 16, and 1 where the status does not say */
        int64_t observed_generation;
        struct status_condition *conditions;
        size_t n_conditions;
};

struct scale_to_zero {
        struct kube_metadata metadata;
        bool has_finalizer;                     /* SCALE_TO_ZERO_FINALIZER */
        char *wake_requested, *sleep_requested; /* annotations lull.dev/wake and lull.dev/sleep: any new value asks once; or NULL */
        struct policy *policy; /* named "namespace/name"; NULL where the spec is wrong in a way that the schema let through */
        char *policy_problem;  /* then: what is wrong, naming the field; else NULL */
        struct scale_to_zero_status status;
};

#define SCALE_TO_ZERO_API "lull.dev/v1alpha1"
#define SCALE_TO_ZERO_RESOURCE "scaletozeros"
#define SCALE_TO_ZERO_FINALIZER "lull.dev/wake-before-removal"

/* As the readers of resource.h. An unknown phase or field value of the status is -EBADMSG, unknown fields are left alone. */
int scale_to_zero_read(const json_t *object, struct scale_to_zero **ret_object, const char **ret_field);
struct scale_to_zero *scale_to_zero_free(struct scale_to_zero *object);
DEFINE_CLEANUP(struct scale_to_zero, scale_to_zero_free)

void scale_to_zero_status_done(struct scale_to_zero_status *status);
/* The status as JSON, whole, every field written (so that a merge patch of it replaces what was there; lists are replaced by their
 * nature). NULL: out of memory. */
json_t *scale_to_zero_status_json(const struct scale_to_zero_status *status);
const struct status_condition *status_find_condition(const struct scale_to_zero_status *status, const char *type); /* or NULL */
