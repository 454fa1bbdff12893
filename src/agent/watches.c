/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "activity/activity.h"
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "agent/claims.h"
#include "agent/object.h"
#include "base/log.h"
#include "base/memory.h"
#include "kube/reflector.h"
#include "kube/scale_to_zero.h"

static struct agent_policy *find_policy(struct node *node, const char *name)
{
        struct agent_policy *policy;

        HASH_FIND(by_name, node->policies, name, strlen(name), policy);
        return policy;
}

static int object_read(const char *key, const json_t *json, void **ret_value, void *userdata)
{
        return object_new(key, json, (struct object **)ret_value);
}

static void object_release(void *value, void *userdata)
{
        object_free(value);
}

static void follow(struct node *node, const char *key, const struct scale_to_zero *object)
{
        struct agent_policy *policy = find_policy(node, key);
        int r = policy ? 0 : agent_policy_new(node, key, &policy);

        if (r < 0) { /* tried again when it changes */
                log_error("policy \"%s\": cannot follow it: %s", key, strerror(-r));
                return;
        }
        agent_policy_follow(policy, object);
}

static void object_added(const char *key, void *value, void *userdata)
{
        struct object *object = value;

        object_follow(userdata, NULL, object);
        if (!object->unread_version)
                follow(userdata, key, object->read);
}

static void object_modified(const char *key, void *old, void *value, void *userdata)
{
        struct object *object = value;

        object_follow(userdata, old, object);
        if (!object->unread_version)
                follow(userdata, key, object->read);
}

static void object_deleted(const char *key, void *value, void *userdata)
{
        struct agent_policy *policy = find_policy(userdata, key);
        struct node *node = userdata;
        bool told = policy && (policy->has_demand || policy->n_pods > 0);

        agent_policy_free(policy, false);
        object_forget(node, value);
        if (told)
                node_report(node, false);
}

/* Only when both are known is it known what an earlier agent watched in vain. */
static void settle_activity(struct node *node)
{
        if (kube_reflector_is_synced(node->objects) && kube_reflector_is_synced(node->pods))
                activity_settle(node->activity);
}

static void objects_synced(void *userdata)
{
        struct node *node = userdata;

        if (!node->settled) {
                log_info("ready: %zu policies", kube_reflector_count(node->objects));
                hold_settle(node->hold);
                node->settled = true;
                memory_settle();
        }
        settle_activity(node);
        node_report(node, false);
}

static void objects_stale(bool stale, void *userdata)
{
        struct node *node = userdata;

        if (stale)
                log_warning("the policies are not current: %s; what is held stays held", kube_reflector_problem(node->objects));
        else if (node->told_stale)
                log_info("the policies are current again");
        node->told_stale = stale;
}

static int pod_read(const char *key, const json_t *json, void **ret_value, void *userdata)
{
        struct kube_pod *pod;
        const char *field;
        int r = kube_pod_read(json, &pod, &field);

        if (r == -EBADMSG || r == -E2BIG)
                log_error("Pod \"%s\": %s: %s; it is left alone", key, field,
                          r == -E2BIG ? "has too many entries" : "is not as the API promises");
        if (r < 0)
                return r;
        *ret_value = pod;
        return 0;
}

static void pod_release(void *value, void *userdata)
{
        kube_pod_free(value);
}

static void pod_changed(struct node *node, const char *key, const struct kube_pod *pod)
{
        struct agent_policy *policy, *next;

        HASH_ITER(by_name, node->policies, policy, next)
                agent_policy_pod_changed(policy, key, pod);
}

static void pod_added(const char *key, void *value, void *userdata)
{
        pod_changed(userdata, key, value);
}

static void pod_modified(const char *key, void *old, void *value, void *userdata)
{
        pod_changed(userdata, key, value);
}

static void pod_deleted(const char *key, void *value, void *userdata)
{
        pod_changed(userdata, key, NULL);
}

static void pods_synced(void *userdata)
{
        settle_activity(userdata);
}

static int watch_objects(struct agent *agent)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = object_read,
                .release = object_release,
                .added = object_added,
                .modified = object_modified,
                .deleted = object_deleted,
                .synced = objects_synced,
                .stale = objects_stale,
        };
        const struct kube_reflector_settings settings = { .resource = SCALE_TO_ZERO_RESOURCE,
                                                          .path = "/apis/" SCALE_TO_ZERO_API "/" SCALE_TO_ZERO_RESOURCE };

        return kube_reflector_new(agent->client, &settings, &callbacks, &agent->node, NULL, &agent->node.objects);
}

static int watch_pods(struct agent *agent)
{
        static const struct kube_reflector_callbacks callbacks = {
                .read = pod_read,
                .release = pod_release,
                .added = pod_added,
                .modified = pod_modified,
                .deleted = pod_deleted,
                .synced = pods_synced,
        };
        _cleanup_(freep) char *selector = NULL;

        if (asprintf(&selector, "spec.nodeName=%s", agent->options->node) < 0) {
                selector = NULL;
                return -ENOMEM;
        }
        return kube_reflector_new(
                agent->client,
                &(struct kube_reflector_settings){ .resource = "pods", .path = "/api/v1/pods", .field_selector = selector },
                &callbacks, &agent->node, NULL, &agent->node.pods);
}

static void claims_changed(void *userdata)
{
        struct node *node = userdata;
        struct agent_policy *policy;
        struct agent_pod *pod;

        LIST_FOREACH(policy, &node->with_pods, with_pods)
        LIST_FOREACH(pod, &policy->pods, others)
        agent_policy_tell_allocations(policy, pod);
}

static int prepare_claims(struct agent *agent)
{
        struct claims_config config = {
                .client = agent->client, .node = agent->options->node, .changed = claims_changed, .userdata = &agent->node
        };

        return claims_new(&config, &agent->node.claims);
}

int agent_watch(struct agent *agent)
{
        int r = prepare_claims(agent);

        if (r >= 0)
                r = watch_pods(agent);
        if (r >= 0)
                r = watch_objects(agent);
        if (r < 0)
                log_error("cannot watch the API server: %s", strerror(-r));
        return r;
}
