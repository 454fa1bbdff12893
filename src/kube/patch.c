/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/patch.h"

#include <curl/curl.h>
#include <string.h>

#include "base/time.h"
#include "kube/query.h"

#define DEADLINE_NS (10 * NSEC_PER_SEC)
#define FIELD_MANAGER "lull"

static bool is_segment(const char *text)
{
        return text && *text && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static int path_append(struct kube_buffer *path, const char *text)
{
        return kube_buffer_append(path, text, strlen(text), 4096);
}

static int segment_append(struct kube_buffer *path, const char *segment)
{
        char *encoded;
        int r;

        if (!is_segment(segment))
                return -EINVAL;
        encoded = curl_easy_escape(NULL, segment, 0);
        if (!encoded)
                return -ENOMEM;
        r = path_append(path, "/");
        if (r >= 0)
                r = path_append(path, encoded);
        curl_free(encoded);
        return r == -EMSGSIZE ? -EINVAL : r;
}

/* "v1" is below /api, "apps/v1" below /apis. */
static int api_append(struct kube_buffer *path, const char *api)
{
        const char *slash = api ? strchr(api, '/') : NULL;
        _cleanup_(freep) char *group = NULL;
        int r;

        r = path_append(path, slash ? "/apis" : "/api");
        if (r >= 0 && slash) {
                group = strndup(api, (size_t)(slash - api));
                r = group ? segment_append(path, group) : -ENOMEM;
        }
        return r < 0 ? r : segment_append(path, slash ? slash + 1 : api);
}

int kube_object_path(const struct kube_object *object, char **ret_path)
{
        _cleanup_(kube_buffer_done) struct kube_buffer path = { 0 };
        int r = api_append(&path, object->api);

        if (r >= 0 && object->namespace) {
                r = path_append(&path, "/namespaces");
                if (r >= 0)
                        r = segment_append(&path, object->namespace);
        }
        if (r >= 0)
                r = segment_append(&path, object->resource);
        if (r >= 0 && object->name)
                r = segment_append(&path, object->name);
        if (r >= 0 && object->subresource)
                r = object->name ? segment_append(&path, object->subresource) : -EINVAL;
        if (r >= 0)
                r = kube_buffer_append(&path, "", 1, 4096 + 1);
        if (r < 0)
                return r;
        *ret_path = TAKE_PTR(path.data);
        return 0;
}

char *kube_object_resource(const struct kube_object *object, char buffer[static KUBE_RESOURCE_MAX])
{
        snprintf(buffer, KUBE_RESOURCE_MAX, "%s%s%s", object->resource, object->subresource ? "/" : "",
                 object->subresource ? object->subresource : "");
        return buffer;
}

struct call {
        enum kube_verb verb;
        const struct kube_object *object;
        const char *content_type;
        const json_t *body;
        bool force;
};

static int call_query(const struct call *call, const struct kube_change *change, struct kube_query *query, const char **ret_text)
{
        bool writes = call->verb != KUBE_GET && call->verb != KUBE_DELETE;

        if (writes)
                kube_query_add(query, "fieldManager", FIELD_MANAGER);
        if (change && change->dry_run && call->verb != KUBE_GET)
                kube_query_add(query, "dryRun", "All");
        if (call->force)
                kube_query_add(query, "force", "true");
        return kube_query_text(query, ret_text);
}

static int call_start(struct kube_client *client, const struct call *call, const struct kube_change *change,
                      const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        _cleanup_(kube_query_done) struct kube_query query = { 0 };
        _cleanup_(freep) char *path = NULL;
        char resource[KUBE_RESOURCE_MAX];
        struct kube_request_settings settings = {
                .verb = call->verb,
                .priority = change ? change->priority : KUBE_PRIORITY_NORMAL,
                .resource = kube_object_resource(call->object, resource),
                .content_type = call->content_type,
                .body = call->body,
                .deadline_ns = change && change->deadline_ns > 0 ? change->deadline_ns : DEADLINE_NS,
        };
        int r = kube_object_path(call->object, &path);

        if (r >= 0)
                r = call_query(call, change, &query, &settings.query);
        if (r < 0)
                return r;
        settings.path = path;
        return kube_client_request(client, &settings, callbacks, userdata, ret_request);
}

int kube_get(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
             const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        const struct call call = { .verb = KUBE_GET, .object = object };

        return object->name ? call_start(client, &call, change, callbacks, userdata, ret_request) : -EINVAL;
}

int kube_create(struct kube_client *client, const struct kube_object *collection, const json_t *body,
                const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
                struct kube_request **ret_request)
{
        const struct call call = { .verb = KUBE_CREATE, .object = collection, .body = body };

        return body ? call_start(client, &call, change, callbacks, userdata, ret_request) : -EINVAL;
}

int kube_update(struct kube_client *client, const struct kube_object *object, const json_t *body, const struct kube_change *change,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        const struct call call = { .verb = KUBE_UPDATE, .object = object, .body = body };

        return object->name && body ? call_start(client, &call, change, callbacks, userdata, ret_request) : -EINVAL;
}

int kube_patch(struct kube_client *client, const struct kube_object *object, enum kube_patch_type type, const json_t *body,
               const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
               struct kube_request **ret_request)
{
        static const char *const content_types[] = {
                [KUBE_PATCH_MERGE] = "application/merge-patch+json",
                [KUBE_PATCH_JSON] = "application/json-patch+json",
                [KUBE_PATCH_APPLY] = "application/apply-patch+yaml", /* of which JSON is a part */
        };
        const struct call call = {
                .verb = KUBE_PATCH,
                .object = object,
                .body = body,
                .content_type = content_types[type],
                .force = type == KUBE_PATCH_APPLY && change && change->force,
        };

        return object->name && body ? call_start(client, &call, change, callbacks, userdata, ret_request) : -EINVAL;
}

int kube_delete(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        const struct call call = { .verb = KUBE_DELETE, .object = object };

        return object->name ? call_start(client, &call, change, callbacks, userdata, ret_request) : -EINVAL;
}

json_t *kube_patch_replicas(unsigned replicas, const char *resource_version)
{
        json_t *patch = json_pack("{s:{s:i}}", "spec", "replicas", (int)replicas);

        if (!patch || !resource_version)
                return patch;
        if (json_object_set_new(patch, "metadata", json_pack("{s:s}", "resourceVersion", resource_version)) < 0) {
                json_decref(patch);
                return NULL;
        }
        return patch;
}
