/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of objects, and requests that change them.
 *
 * A merge patch with metadata.resourceVersion is refused with 409 when someone else wrote meanwhile; kube_status_is_conflict()
 * tells.
 */
#pragma once

#include "kube/client.h"

/* Which object, or with @name NULL which collection. */
struct kube_object {
        const char *api;         /* "v1", "apps/v1" */
        const char *resource;    /* "deployments" */
        const char *namespace;   /* or NULL */
        const char *name;        /* or NULL */
        const char *subresource; /* "scale", "status"; or NULL */
};

/* "/apis/apps/v1/namespaces/default/deployments/web/scale"; names are percent-encoded. Returns 0, -EINVAL for parts that are
 * missing, empty, "." or "..", or -ENOMEM. */
int kube_object_path(const struct kube_object *object, char **ret_path);

/* "/scale" appended to the resource, as the metrics have it; cut at KUBE_RESOURCE_MAX. */
char *kube_object_resource(const struct kube_object *object, char buffer[static KUBE_RESOURCE_MAX]);

enum kube_patch_type {
        KUBE_PATCH_MERGE, /* RFC 7396 */
        KUBE_PATCH_JSON,  /* RFC 6902 */
        KUBE_PATCH_APPLY, /* server-side apply */
};

struct kube_change {
        enum kube_priority priority;
        uint64_t deadline_ns; /* 0: 10 s */
        bool dry_run;         /* the server does everything but keep it */
        bool force;           /* apply: take fields over from other managers */
};

/* Each starts one request; done() as in client.h, its body is the object as it is afterwards. @change may be NULL: normal
 * priority. Returns as kube_client_request(). */
int kube_get(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
             const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);
int kube_create(struct kube_client *client, const struct kube_object *collection, const json_t *body,
                const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
                struct kube_request **ret_request);
int kube_update(struct kube_client *client, const struct kube_object *object, const json_t *body, const struct kube_change *change,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);
int kube_patch(struct kube_client *client, const struct kube_object *object, enum kube_patch_type type, const json_t *body,
               const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
               struct kube_request **ret_request);
int kube_delete(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);

/* The merge patch {"spec": {"replicas": @replicas}}, guarded by @resource_version unless that is NULL. NULL: out of memory. */
json_t *kube_patch_replicas(unsigned replicas, const char *resource_version);
