/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "activity/pod_cgroup.h"
#include "agent/agent_policy.h"
#include "base/log.h"
#include "base/time.h"
#include "kube/reflector.h"

static struct watched *watched_free(struct watched *watched)
{
        if (!watched)
                return NULL;
        free(watched->ports);
        free(watched->ignored);
        free(watched);
        return NULL;
}
DEFINE_CLEANUP(struct watched, watched_free)

static bool has_port(const struct watched *watched, const struct status_port *port)
{
        for (size_t i = 0; i < watched->n_ports; i++)
                if (watched->ports[i].port == port->port && watched->ports[i].protocol == port->protocol)
                        return true;
        return false;
}

static int watched_make(const struct scale_to_zero *object, struct watched **ret_watched)
{
        const struct scale_to_zero_status *status = &object->status;
        _cleanup_(watched_freep) struct watched *watched = calloc(1, sizeof(*watched));

        if (!watched)
                return -ENOMEM;
        watched->generation = object->metadata.generation;
        watched->ports = calloc(status->n_ports + 1, sizeof(*watched->ports));
        watched->ignored = calloc(status->n_ignored + 1, sizeof(*watched->ignored));
        if (!watched->ports || !watched->ignored)
                return -ENOMEM;
        for (size_t i = 0; i < status->n_ports; i++)
                if (!has_port(watched, &status->ports[i])) /* two Services may lead to the same one */
                        watched->ports[watched->n_ports++] =
                                (struct workload_port){ status->ports[i].port, status->ports[i].protocol };
        for (size_t i = 0; i < status->n_ignored; i++)
                watched->ignored[watched->n_ignored++] = status->ignored[i];
        *ret_watched = TAKE_PTR(watched);
        return 0;
}

static bool watched_equal(const struct watched *a, const struct watched *b)
{
        if (a->generation != b->generation || a->n_ports != b->n_ports || a->n_ignored != b->n_ignored)
                return false;
        for (size_t i = 0; i < a->n_ports; i++)
                if (a->ports[i].port != b->ports[i].port || a->ports[i].protocol != b->ports[i].protocol)
                        return false;
        for (size_t i = 0; i < a->n_ignored; i++)
                if (a->ignored[i].length != b->ignored[i].length || !address_equal(&a->ignored[i].address, &b->ignored[i].address))
                        return false;
        return true;
}

/* What its cgroup is watched for. */
static int watch(struct agent_policy *policy, struct agent_pod *pod)
{
        _cleanup_(freep) char *cgroup = NULL, *name = NULL;
        struct workload_settings settings;
        int r;

        if (!policy->object->policy)
                return -EINVAL;
        if (asprintf(&name, "%s/%s", policy->name, pod->uid) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        settings = (struct workload_settings){
                .name = name,
                .policy = policy->object->policy,
                .ports = policy->watched->ports,
                .n_ports = policy->watched->n_ports,
                .ignored = policy->watched->ignored,
                .n_ignored = policy->watched->n_ignored,
        };
        if (pod->workload)
                return workload_update(pod->workload, &settings);
        r = pod_cgroup_find(policy->node->cgroup, pod->uid, &cgroup);
        if (r < 0)
                return r;
        r = workload_new(policy->node->activity, &settings, cgroup, pod, &pod->workload);
        if (r < 0)
                return r;
        pod->since_ns = now_monotonic_ns(); /* what happened before is not known, so it counts as activity */
        agent_policy_watch_gpu(policy, pod, cgroup);
        return 0;
}

void agent_policy_watch(struct agent_policy *policy, struct agent_pod *pod)
{
        int r = watch(policy, pod);

        if (r < 0) { /* what it counted so far does not mean what the policy now says */
                agent_policy_forget_gpu(pod);
                pod->workload = workload_free(pod->workload, false);
        }
        /* The cgroup of a pod that has just been bound to this node is yet to come. */
        if (r < 0 && r != -ENOENT && r != pod->error)
                log_warning("policy \"%s\": cannot watch pod \"%s\": %s; it keeps the policy awake", policy->name, pod->key,
                            strerror(-r));
        pod->error = r < 0 ? r : 0;
}

static void forget_pod(struct agent_policy *policy, struct agent_pod *pod, bool keep_pins)
{
        LIST_REMOVE(pod, others);
        if (--policy->n_pods == 0) {
                LIST_REMOVE(policy, with_pods);
                policy->watched = watched_free(policy->watched);
                policy->state = WORKLOAD_UNKNOWN;
                policy->gpu = (struct node_gpu){ 0 };
                policy->quiet_epoch = -1;
        }
        agent_policy_forget_gpu(pod);
        workload_free(pod->workload, keep_pins);
        free(pod->key);
        free(pod->uid);
        free(pod);
}

static int add_pod(struct agent_policy *policy, const char *key, const struct kube_pod *kube_pod, struct agent_pod **ret_pod)
{
        struct agent_pod *pod;
        int r = policy->watched ? 0 : watched_make(policy->object, &policy->watched);

        if (r < 0)
                return r;
        pod = calloc(1, sizeof(*pod));
        if (!pod)
                return -ENOMEM;
        pod->key = strdup(key);
        pod->uid = strdup(kube_pod->metadata.uid);
        if (!pod->key || !pod->uid) {
                free(pod->key);
                free(pod->uid);
                free(pod);
                return -ENOMEM;
        }
        LIST_INSERT_HEAD(&policy->pods, pod, others);
        if (policy->n_pods++ == 0) {
                LIST_INSERT_HEAD(&policy->node->with_pods, policy, with_pods);
                policy->state_since_ns = now_realtime_ns();
        }
        *ret_pod = pod;
        return 0;
}

/* "namespace/name" in both cases. */
static bool same_namespace(const char *a, const char *b)
{
        const char *slash = strchr(a, '/');

        return slash && strncmp(a, b, (size_t)(slash - a) + 1) == 0;
}

/* A pod that is over has no processes; one that is being deleted may still work. */
static bool is_ours(const struct agent_policy *policy, const char *key, const struct kube_pod *pod)
{
        if (!pod || !policy->selector || strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0)
                return false;
        return same_namespace(policy->name, key) && label_selector_matches(policy->selector, pod->labels);
}

static struct agent_pod *find_pod(const struct agent_policy *policy, const char *key)
{
        struct agent_pod *pod;

        LIST_FOREACH(pod, &policy->pods, others)
        if (strcmp(pod->key, key) == 0)
                return pod;
        return NULL;
}

/* Returns whether the policy's pods are others afterwards. */
static bool follow_pod(struct agent_policy *policy, const char *key, const struct kube_pod *kube_pod)
{
        struct agent_pod *pod = find_pod(policy, key);
        bool ours = is_ours(policy, key, kube_pod), other = false;
        int r = 0;

        if (pod && (!ours || strcmp(pod->uid, kube_pod->metadata.uid) != 0)) {
                forget_pod(policy, pod, false);
                pod = NULL;
                other = true;
        }
        if (ours && !pod) {
                r = add_pod(policy, key, kube_pod, &pod);
                other = true;
        }
        if (r < 0) {
                log_error("policy \"%s\": cannot follow pod \"%s\": %s", policy->name, key, strerror(-r));
                return other;
        }
        if (pod)
                agent_policy_note_gpu(pod, kube_pod);
        if (pod && !pod->workload)
                agent_policy_watch(policy, pod);
        else if (pod)
                agent_policy_tell_allocations(policy, pod);
        return other;
}

void agent_policy_pod_changed(struct agent_policy *policy, const char *key, const struct kube_pod *pod)
{
        if (!is_ours(policy, key, pod) && !find_pod(policy, key))
                return;
        if (follow_pod(policy, key, pod))
                node_report(policy->node, false);
        agent_policy_judge(policy);
}

static int visit_pod(const char *key, void *value, void *userdata)
{
        struct agent_policy *policy = userdata;

        if (is_ours(policy, key, value) || find_pod(policy, key))
                if (follow_pod(policy, key, value))
                        node_report(policy->node, false);
        return 0;
}

static void follow_selector(struct agent_policy *policy)
{
        const char *text = policy->object->status.selector ? policy->object->status.selector : "";
        int r = 0;

        if (policy->selector_text && strcmp(policy->selector_text, text) == 0)
                return;
        policy->selector = label_selector_free(policy->selector);
        free(policy->selector_text);
        policy->selector_text = strdup(text);
        if (!policy->selector_text)
                r = -ENOMEM;
        else if (*text)
                r = label_selector_parse(text, &policy->selector);
        if (r < 0)
                log_error("policy \"%s\": status.selector: \"%s\" cannot be read: %s; its pods are not watched", policy->name, text,
                          strerror(-r));
        kube_reflector_each(policy->node->pods, visit_pod, policy);
}

static void follow_watched(struct agent_policy *policy)
{
        _cleanup_(watched_freep) struct watched *watched = NULL;
        struct agent_pod *pod;

        if (policy->n_pods == 0)
                return;
        if (watched_make(policy->object, &watched) < 0 || watched_equal(policy->watched, watched))
                return;
        watched_free(policy->watched);
        policy->watched = TAKE_PTR(watched);
        LIST_FOREACH(pod, &policy->pods, others)
        agent_policy_watch(policy, pod);
}

void agent_policy_follow_pods(struct agent_policy *policy)
{
        follow_selector(policy);
        follow_watched(policy);
}

void agent_policy_forget_pods(struct agent_policy *policy, bool keep_pins)
{
        while (!LIST_EMPTY(&policy->pods))
                forget_pod(policy, LIST_FIRST(&policy->pods), keep_pins);
        policy->watched = watched_free(policy->watched);
}
