/* SPDX-License-Identifier: Apache-2.0 */
/* What lull needs of the objects it reads, in types. What the API leaves out has the API's default here.
 *
 * Readers take @object as the server sent it and return 0; -EBADMSG with the field's name in *ret_field (a constant string) when
 * it is not as the API promises; or -ENOMEM. Lists are bounded: past the bound -E2BIG. Each free function accepts NULL.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/macros.h"

enum {
        KUBE_SERVICE_PORTS_MAX = 256,
        KUBE_SERVICE_ADDRESSES_MAX = 256,
        KUBE_SLICE_ENDPOINTS_MAX = 1000, /* the API's own bound */
        KUBE_SLICE_PORTS_MAX = 256,
        KUBE_ENDPOINT_ADDRESSES_MAX = 100, /* the API's own */
        KUBE_POD_ADDRESSES_MAX = 8,
        KUBE_POD_CONTAINERS_MAX = 1024,
        KUBE_POD_GPU_REQUESTS_MAX = 16, /* different resources */
        KUBE_POD_GPUS_MAX = 1024,       /* of one resource; more count as that many */
        KUBE_POD_CLAIMS_MAX = 256,
};

struct kube_metadata {
        char *namespace; /* "" for what has none */
        char *name;
        char *uid;
        char *resource_version;
        int64_t generation;
        bool deleting; /* deletionTimestamp is set */
};

struct kube_service_port {
        char *name; /* "" where there is only one */
        uint8_t protocol;
        uint16_t port;
        uint16_t node_port;   /* 0: none */
        uint16_t target_port; /* 0: target_name says it */
        char *target_name;    /* or NULL */
};

struct kube_service {
        struct kube_metadata metadata;
        bool external_name; /* type ExternalName: nothing to hold */
        bool headless;      /* clusterIP: None */
        bool publish_not_ready;
        bool internal_local, external_local; /* the traffic policies */
        bool client_affinity;                /* sessionAffinity: ClientIP */
        json_t *selector;                    /* object, or NULL */
        struct address *cluster_ips, *external_ips,
                *load_balancer_ips; /* the last from status.loadBalancer.ingress; without host names, and without
                                     * those of ipMode Proxy: their packets come to the node ports */
        size_t n_cluster_ips, n_external_ips, n_load_balancer_ips;
        struct prefix *source_ranges;
        size_t n_source_ranges;
        struct kube_service_port *ports;
        size_t n_ports;
};

struct kube_endpoint {
        struct address *addresses;
        size_t n_addresses;
        bool ready, serving, terminating;
        char *node; /* or NULL */
        char *zone; /* or NULL */
        char *pod;  /* name of the pod behind it, or NULL */
        char *pod_uid;
};

struct kube_slice_port {
        char *name;
        uint8_t protocol;
        uint16_t port;
};

struct kube_endpoint_slice {
        struct kube_metadata metadata;
        char *service;    /* of the label kubernetes.io/service-name, or NULL */
        char *managed_by; /* endpointslice.kubernetes.io/managed-by, or NULL */
        char *owner_uid;  /* of its first owner, or NULL */
        bool fqdn;        /* addressType FQDN: endpoints are left out */
        bool unreadable;  /* only its name and namespace are known */
        struct kube_endpoint *endpoints;
        size_t n_endpoints;
        struct kube_slice_port *ports; /* those without a number are left out: they stand for all ports */
        size_t n_ports;
};

struct kube_scale {
        struct kube_metadata metadata;
        uint32_t replicas; /* absent means 0 */
        uint32_t current;  /* status.replicas */
        char *selector;    /* "" where there is none */
};

struct kube_lease {
        struct kube_metadata metadata;
        char *holder; /* "" when nobody holds it */
        uint32_t duration_seconds;
        uint32_t transitions;
        char *acquire_time, *renew_time; /* as written, "" when absent; compared for equality only */
};

struct kube_gpu_request { /* of a device plugin's resource */
        char *resource;   /* "nvidia.com/gpu" */
        uint32_t count;   /* 1 or more */
        bool parts;       /* of devices: one device may be all of them */
};

struct kube_pod {
        struct kube_metadata metadata;
        char *node;  /* "" before it is scheduled */
        char *phase; /* "Pending", "Running", … */
        json_t *labels;
        bool host_network;
        bool ready;                                /* condition Ready is True */
        char *owner_kind, *owner_name, *owner_uid; /* the controller, or NULL */
        struct address addresses[KUBE_POD_ADDRESSES_MAX];
        size_t n_addresses;
        uint64_t started_realtime_ns;          /* when its kubelet took it up; 0: not yet */
        struct kube_gpu_request *gpu_requests; /* what all its containers have at once, without what claims provide instead */
        size_t n_gpu_requests;
        char **claims; /* names of its ResourceClaims that are there, in its namespace */
        size_t n_claims;
};

int kube_metadata_read(const json_t *object, struct kube_metadata *ret_metadata, const char **ret_field);
void kube_metadata_done(struct kube_metadata *metadata);

int kube_service_read(const json_t *object, struct kube_service **ret_service, const char **ret_field);
struct kube_service *kube_service_free(struct kube_service *service);
DEFINE_CLEANUP(struct kube_service, kube_service_free)

int kube_endpoint_slice_read(const json_t *object, struct kube_endpoint_slice **ret_slice, const char **ret_field);
/* Stands for one that is there and cannot be read. @key is "namespace/name". */
int kube_endpoint_slice_unreadable(const char *key, struct kube_endpoint_slice **ret_slice);
struct kube_endpoint_slice *kube_endpoint_slice_free(struct kube_endpoint_slice *slice);
DEFINE_CLEANUP(struct kube_endpoint_slice, kube_endpoint_slice_free)

int kube_scale_read(const json_t *object, struct kube_scale **ret_scale, const char **ret_field);
struct kube_scale *kube_scale_free(struct kube_scale *scale);
DEFINE_CLEANUP(struct kube_scale, kube_scale_free)

int kube_lease_read(const json_t *object, struct kube_lease **ret_lease, const char **ret_field);
struct kube_lease *kube_lease_free(struct kube_lease *lease);
DEFINE_CLEANUP(struct kube_lease, kube_lease_free)

int kube_pod_read(const json_t *object, struct kube_pod **ret_pod, const char **ret_field);
struct kube_pod *kube_pod_free(struct kube_pod *pod);
DEFINE_CLEANUP(struct kube_pod, kube_pod_free)
