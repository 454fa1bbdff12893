/* SPDX-License-Identifier: Apache-2.0 */
/* Which resource a kind is, as the API server's discovery says: GET /apis/GROUP/VERSION lists resources and subresources
 * ("rollouts", "rollouts/scale") with the kind of each (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api).
 */
#include <string.h>

#include "base/time.h"
#include "controller/target_private.h"

#define DEADLINE_NS (10 * NSEC_PER_SEC)

static const char api_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-/";

static bool api_version_is_sound(const char *text)
{
        const char *slash = strchr(text, '/');

        if (text[strspn(text, api_characters)] != '\0' || strstr(text, ".."))
                return false;
        return slash ? slash != text && slash[1] != '\0' && !strchr(slash + 1, '/') : *text != '\0';
}

static bool text_is(const json_t *object, const char *key, const char *wanted)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text && strcmp(text, wanted) == 0;
}

static const json_t *find_kind(const json_t *resources, const char *kind)
{
        const json_t *resource;
        size_t i;

        json_array_foreach(resources, i, resource) {
                const char *name = json_string_value(json_object_get(resource, "name"));

                if (name && *name && !strchr(name, '/') && text_is(resource, "kind", kind))
                        return resource;
        }
        return NULL;
}

static bool has_scale(const json_t *resources, const char *name)
{
        size_t length = strlen(name), i;
        const json_t *resource;

        json_array_foreach(resources, i, resource) {
                const char *other = json_string_value(json_object_get(resource, "name"));

                if (other && strncmp(other, name, length) == 0 && strcmp(other + length, "/scale") == 0)
                        return true;
        }
        return false;
}

static _printf_(3, 4) void fail(struct watched_kind *kind, bool final, const char *format, ...)
{
        char *problem = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&problem, format, arguments) < 0)
                problem = NULL;
        va_end(arguments);
        kind->final = final;
        watched_kind_set_problem(kind, problem);
        watched_kind_retry_later(kind); /* it may be installed, or changed */
}

static void resources_evaluate(struct watched_kind *kind, const json_t *resources)
{
        const json_t *resource = find_kind(resources, kind->kind);
        const char *name = json_string_value(json_object_get(resource, "name"));

        if (!resource) {
                fail(kind, true, "%s has no kind \"%s\"; correct spec.target.kind or spec.target.apiVersion", kind->api_version,
                     kind->kind);
                return;
        }
        if (json_is_false(json_object_get(resource, "namespaced"))) {
                fail(kind, true,
                     "a %s is in no namespace, and only what is in the policy's own can be its target; name the object there "
                     "that makes the pods, like a Deployment",
                     kind->kind);
                return;
        }
        if (!has_scale(resources, name)) {
                fail(kind, true,
                     "a %s of %s has no scale subresource, by which lull sets replicas; name the object that makes its pods and has "
                     "one, like a Deployment, or give its CustomResourceDefinition subresources.scale",
                     kind->kind, kind->api_version);
                return;
        }

        kind->resource = strdup(name);
        if (kind->resource)
                kind->retry_ns = TARGET_RETRY_MIN_NS;
        if (!kind->resource || watched_kind_watch(kind) < 0) {
                free(kind->resource);
                kind->resource = NULL;
                fail(kind, false, "out of memory");
                return;
        }
        watched_kind_set_problem(kind, NULL);
}

static void on_done(const struct kube_reply *reply, void *userdata)
{
        struct watched_kind *kind = userdata;

        kind->request = NULL;
        if (kube_reply_is_ok(reply))
                resources_evaluate(kind, json_object_get(reply->body, "resources"));
        else if (reply->status.code == 404)
                fail(kind, true, "the API server has no \"%s\"; install what defines %s there, or correct spec.target.apiVersion",
                     kind->api_version, kind->kind);
        else
                fail(kind, false, "it is not known what a %s of %s is: the API server answered: %s", kind->kind, kind->api_version,
                     *reply->status.message ? reply->status.message : strerror(-reply->error));
}

int target_discovery_start(struct watched_kind *kind)
{
        static const struct kube_request_callbacks callbacks = { .done = on_done };
        struct kube_request_settings settings = {
                .verb = KUBE_GET, .priority = KUBE_PRIORITY_NORMAL, .resource = "discovery", .deadline_ns = DEADLINE_NS
        };
        _cleanup_(freep) char *path = NULL;

        if (!api_version_is_sound(kind->api_version)) {
                fail(kind, true, "spec.target.apiVersion \"%s\" is not one; write it like apps/v1", kind->api_version);
                return 0;
        }
        if (asprintf(&path, "%s/%s", strchr(kind->api_version, '/') ? "/apis" : "/api", kind->api_version) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        settings.path = path;
        return kube_client_request(kind->targets->client, &settings, &callbacks, kind, &kind->request);
}
