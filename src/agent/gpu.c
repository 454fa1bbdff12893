/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/agent_policy.h"
#include "agent/claims.h"
#include "base/log.h"
#include "base/time.h"
#include "gpu/permission.h"
#include "gpu/watch.h"
#include "kube/reflector.h"
#include "kube/resource.h"

enum { WINDOW_FACTOR_MAX = 4 };

#define REQUESTS_NS NSEC_PER_SEC

static const struct gpu_rules no_rules = { .factor = 1 };

/* The status's factor is of the network's idle time, and may be 16; a GPU's window is long anyway. */
static struct gpu_rules rules_of(const struct agent_policy *policy)
{
        unsigned factor = MAX(policy->object->status.idle_factor, 1U);

        if (!policy->object->policy)
                return no_rules;
        return (struct gpu_rules){ .window_ns = policy->object->policy->idle.gpu.after_ns,
                                   .cold_start_ns = policy->cold_start_ns,
                                   .factor = MIN(factor, (unsigned)WINDOW_FACTOR_MAX) };
}

static uint32_t open_requests(void *userdata)
{
        struct agent_pod *pod = userdata;
        struct workload_snapshot snapshot;

        if (!pod->workload || workload_read(pod->workload, now_monotonic_ns() - REQUESTS_NS, &snapshot) < 0)
                return 0;
        return snapshot.open_requests;
}

void agent_policy_note_gpu(struct agent_pod *pod, const struct kube_pod *kube_pod)
{
        const char *request = kube_pod->n_claims > 0 ? "by a resource claim, perhaps" : "";

        pod->n_gpus = (uint32_t)kube_pod->n_claims;
        for (size_t i = 0; i < kube_pod->n_gpu_requests; i++)
                pod->n_gpus += kube_pod->gpu_requests[i].count;
        if (kube_pod->n_gpu_requests > 0)
                request = kube_pod->gpu_requests[0].resource;
        snprintf(pod->gpu_request, sizeof(pod->gpu_request), "%s", request);
}

void agent_policy_watch_gpu(struct agent_policy *policy, struct agent_pod *pod, const char *cgroup)
{
        struct gpu_tenant_config config = {
                .name = pod->key, .cgroup = cgroup, .rules = rules_of(policy), .open_requests = open_requests, .userdata = pod
        };
        int r;

        if (!policy->node->gpu || pod->gpu)
                return;
        r = gpu_tenant_new(policy->node->gpu, &config, &pod->gpu);
        if (r < 0)
                log_error("policy \"%s\": cannot watch the GPUs of pod \"%s\": %s; it keeps the policy awake", policy->name,
                          pod->key, strerror(-r));
        else
                agent_policy_tell_allocations(policy, pod);
}

/* The pod's start, as far back as its devices may have been seen to be opened. */
static uint64_t allocated_since(const struct node *node, const struct kube_pod *kube_pod)
{
        uint64_t now_ns = now_monotonic_ns(), realtime_ns = now_realtime_ns(), age_ns = 0;

        if (kube_pod->started_realtime_ns && kube_pod->started_realtime_ns < realtime_ns)
                age_ns = realtime_ns - kube_pod->started_realtime_ns;
        return age_ns < now_ns - node->gpu_since_ns ? now_ns - age_ns : node->gpu_since_ns;
}

void agent_policy_tell_allocations(const struct agent_policy *policy, struct agent_pod *pod)
{
        const struct kube_pod *kube_pod = kube_reflector_get(policy->node->pods, pod->key);
        struct pod_allocations allocations;
        int r;

        if (!pod->gpu || !kube_pod)
                return;
        r = claims_allocations(policy->node->claims, kube_pod, &allocations);
        if (r >= 0) {
                for (size_t i = 0; i < allocations.n; i++)
                        allocations.list[i].since_ns = allocated_since(policy->node, kube_pod);
                r = gpu_tenant_set_allocations(pod->gpu, allocations.list, allocations.n);
                pod_allocations_done(&allocations);
        }
        if (r < 0 && r != -EAGAIN) /* told once the claims are known */
                log_error("policy \"%s\": cannot tell which devices are allocated to pod \"%s\": %s", policy->name, pod->key,
                          strerror(-r));
}

void agent_policy_forget_gpu(struct agent_pod *pod)
{
        pod->gpu = gpu_tenant_free(pod->gpu);
}

enum freshness { AS_KNOWN, AFRESH };

static void stand_unwatched(const struct agent_pod *pod, struct gpu_standing *ret_standing)
{
        char reason[sizeof(ret_standing->verdict.reason)];

        snprintf(reason, sizeof(reason), "it has a GPU (%s), and this node's agent does not watch GPUs (start it with --gpu)",
                 pod->gpu_request);
        gpu_standing_unknown(pod->n_gpus, reason, ret_standing);
}

static void stand_pod(const struct agent_policy *policy, struct agent_pod *pod, enum freshness freshness,
                      struct gpu_standing *ret_standing)
{
        struct gpu_rules rules = rules_of(policy);
        struct gpu_standing standing = { 0 };

        if (pod->gpu && freshness == AFRESH) {
                gpu_tenant_set_rules(pod->gpu, &rules);
                gpu_tenant_judge(pod->gpu, &standing);
        } else if (pod->gpu) {
                gpu_tenant_known(pod->gpu, &standing);
        } else if (policy->node->gpu && pod->workload) {
                gpu_standing_unknown(1, "it cannot be watched", &standing);
        } else if (!policy->node->gpu && pod->n_gpus > 0) {
                stand_unwatched(pod, &standing);
        }
        *ret_standing = standing;
}

/* Of all its pods here. */
static int stand(const struct agent_policy *policy, enum freshness freshness, struct gpu_standing *ret_standing)
{
        _cleanup_(freep) struct gpu_standing *standings = calloc(policy->n_pods + 1, sizeof(*standings));
        _cleanup_(freep) struct gpu_standing_part *parts = calloc(policy->n_pods + 1, sizeof(*parts));
        struct agent_pod *pod;
        size_t n = 0;

        if (!standings || !parts)
                return -ENOMEM;
        LIST_FOREACH(pod, &policy->pods, others)
        {
                stand_pod(policy, pod, freshness, &standings[n]);
                parts[n] = (struct gpu_standing_part){ pod->key, &standings[n] };
                n++;
        }
        return gpu_standing_all(parts, n, ret_standing);
}

/* Where the answer is not known it is that there is one, of which nothing is known. */
static void stand_or_say_unknown(const struct agent_policy *policy, enum freshness freshness, struct gpu_standing *ret_standing)
{
        if (stand(policy, freshness, ret_standing) < 0)
                gpu_standing_unknown(1, "out of memory", ret_standing);
}

static enum node_gpu_state told_state(const struct gpu_standing *standing)
{
        switch (standing->verdict.state) {
        case GPU_STARTING:
        case GPU_ACTIVE:
        case GPU_QUIET:
        case GPU_CANDIDATE:
                return NODE_GPU_ACTIVE;
        case GPU_IDLE:
                return NODE_GPU_IDLE;
        case GPU_UNUSED:
                return NODE_GPU_UNUSED;
        case GPU_STUCK:
                return NODE_GPU_STUCK;
        case GPU_UNKNOWN:
        case GPU_STATE_MAX:
                return NODE_GPU_UNKNOWN;
        }
        return NODE_GPU_UNKNOWN;
}

/* What controllers hear of; nothing that changes at every look. */
static void tell(struct agent_policy *policy, const struct gpu_standing *standing, bool would_sleep)
{
        struct node_gpu gpu = { .devices = standing->devices, .would_sleep = would_sleep };

        if (standing->devices > 0) {
                gpu.state = told_state(standing);
                gpu.since_realtime_ns = policy->gpu.devices > 0 && policy->gpu.state == gpu.state ? policy->gpu.since_realtime_ns
                                                                                                  : now_realtime_ns();
        }
        if (gpu.devices == policy->gpu.devices && gpu.state == policy->gpu.state && gpu.would_sleep == policy->gpu.would_sleep)
                return;
        policy->gpu = gpu;
        node_report(policy->node, false);
}

void agent_policy_judge_gpu(struct agent_policy *policy, struct idle_verdict *verdict)
{
        bool idle = verdict->verdict == VERDICT_IDLE;
        struct gpu_standing standing;
        enum gpu_on_idle on_idle;

        if (!policy->object->policy) {
                tell(policy, &(struct gpu_standing){ 0 }, false);
                return;
        }
        on_idle = policy->object->policy->idle.gpu.on_idle;
        stand_or_say_unknown(policy, idle ? AFRESH : AS_KNOWN, &standing);
        tell(policy, &standing, idle && gpu_would_permit_sleep(&standing, on_idle));
        if (idle)
                gpu_judge_sleep(&standing, on_idle, now_monotonic_ns(), verdict);
}

bool agent_policy_gpu_permits(const struct agent_policy *policy)
{
        struct gpu_standing standing;

        stand_or_say_unknown(policy, AS_KNOWN, &standing);
        return gpu_permits_sleep(&standing, policy->object->policy->idle.gpu.on_idle);
}

json_t *agent_policy_gpu_json(const struct agent_policy *policy)
{
        struct gpu_standing standing;

        if (!policy->object->policy)
                return json_null();
        stand_or_say_unknown(policy, AS_KNOWN, &standing);
        return gpu_standing_json(&standing, policy->object->policy->idle.gpu.on_idle);
}
