/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/agent_policy.h"
#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/event_log.h"

static void endpoint_free(struct agent_endpoint *endpoint)
{
        probe_free(endpoint->probe);
        free(endpoint->pod_uid);
        free(endpoint);
}

/* Whether flows may go to endpoints at all. */
static bool may_release(const struct agent_policy *policy)
{
        if (!policy->holding || !holding_is_started(policy->holding))
                return false;
        return policy->phase == PHASE_WAKING || policy->phase == PHASE_AWAKE;
}

static struct agent_endpoint *find(const struct agent_policy *policy, const struct status_endpoint *settings)
{
        for (size_t i = 0; i < policy->n_endpoints; i++)
                if (address_equal(&policy->endpoints[i]->address, &settings->address) &&
                    strcmp(policy->endpoints[i]->pod_uid, settings->pod_uid ? settings->pod_uid : "") == 0)
                        return policy->endpoints[i];
        return NULL;
}

/* The kubelet asks one address of a pod, and the answer stands for all: that of the other family may become known later only. */
static bool is_same_pod(const struct agent_endpoint *a, const struct agent_endpoint *b)
{
        return a == b || (*a->pod_uid && strcmp(a->pod_uid, b->pod_uid) == 0);
}

static bool pod_has_passed(const struct agent_endpoint *endpoint)
{
        const struct agent_policy *policy = endpoint->policy;

        for (size_t i = 0; i < policy->n_endpoints; i++)
                if (is_same_pod(policy->endpoints[i], endpoint) && policy->endpoints[i]->passed)
                        return true;
        return false;
}

static void set_passed(const struct agent_endpoint *endpoint, bool passed)
{
        const struct agent_policy *policy = endpoint->policy;

        for (size_t i = 0; i < policy->n_endpoints; i++)
                if (is_same_pod(policy->endpoints[i], endpoint))
                        policy->endpoints[i]->passed = passed;
}

static struct agent_endpoint *find_or_add(struct agent_policy *policy, const struct status_endpoint *settings)
{
        struct agent_endpoint *endpoint = find(policy, settings);

        if (endpoint || policy->n_endpoints == STATUS_ENDPOINTS_MAX)
                return endpoint;
        endpoint = calloc(1, sizeof(*endpoint));
        if (!endpoint)
                return NULL;
        endpoint->policy = policy;
        endpoint->address = settings->address;
        endpoint->pod_uid = strdup(settings->pod_uid ? settings->pod_uid : "");
        if (!endpoint->pod_uid) {
                free(endpoint);
                return NULL;
        }
        endpoint->passed = pod_has_passed(endpoint);
        policy->endpoints[policy->n_endpoints++] = endpoint;
        agent_policy_reach(policy, WAKE_STEP_ENDPOINT, now_monotonic_ns());
        return endpoint;
}

static bool is_usable(const struct agent_endpoint *endpoint)
{
        return endpoint->ready || endpoint->passed;
}

/* Those of the status that frontend @index can be released to now. */
static size_t usable_for(const struct agent_policy *policy, size_t index, struct holding_endpoint *ret_endpoints)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        size_t n = 0;

        for (size_t i = 0; i < status->n_endpoints && n < STATUS_ENDPOINTS_MAX; i++) {
                const struct agent_endpoint *endpoint = find(policy, &status->endpoints[i]);

                if (endpoint && is_usable(endpoint) &&
                    hold_plan_endpoint(policy->plan, index, &status->endpoints[i], policy->node->name, &ret_endpoints[n]))
                        n++;
        }
        return n;
}

static bool endpoints_equal(const struct holding_endpoint *a, const struct holding_endpoint *b, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!address_equal(&a[i].address, &b[i].address) || a[i].port != b[i].port ||
                    a[i].on_this_node != b[i].on_this_node)
                        return false;
        return true;
}

static int make_released_to(struct agent_policy *policy)
{
        if (policy->released_to)
                return 0;
        policy->n_released_to = calloc(policy->plan->n_frontends, sizeof(*policy->n_released_to));
        policy->released_to = calloc(policy->plan->n_frontends, STATUS_ENDPOINTS_MAX * sizeof(*policy->released_to));
        return policy->released_to && policy->n_released_to ? 0 : -ENOMEM;
}

/* Tells the hold what has changed for frontend @index. */
static int release_frontend(struct agent_policy *policy, size_t index)
{
        struct holding_endpoint usable[STATUS_ENDPOINTS_MAX] = { 0 };
        struct holding_endpoint *known = policy->released_to + index * STATUS_ENDPOINTS_MAX;
        size_t n = usable_for(policy, index, usable);
        int r;

        if (n == policy->n_released_to[index] && endpoints_equal(usable, known, n))
                return 0;
        r = holding_set_endpoints(policy->holding, index, usable, n);
        if (r < 0)
                return r;
        memcpy(known, usable, n * sizeof(*usable));
        policy->n_released_to[index] = n;
        if (n > 0)
                agent_policy_reach(policy, WAKE_STEP_READY, now_monotonic_ns());
        return 0;
}

static void release_all(struct agent_policy *policy)
{
        int r = make_released_to(policy);

        for (size_t i = 0; r >= 0 && i < policy->plan->n_frontends; i++)
                r = release_frontend(policy, i);
        if (r < 0)
                log_error("policy \"%s\": cannot release to its endpoints: %s; the data plane has to do", policy->name,
                          strerror(-r));
        for (size_t i = 0; r >= 0 && policy->give_up_ns && i < policy->plan->n_frontends; i++)
                if (policy->n_released_to[i] > 0)
                        policy->give_up_ns = now_monotonic_ns() + GIVE_UP_NS;
}

static void on_passed(struct probe *probe, uint64_t at_ns, void *userdata)
{
        struct agent_endpoint *endpoint = userdata;
        struct agent_policy *policy = endpoint->policy;
        char address[ADDRESS_TEXT_MAX];

        set_passed(endpoint, true);
        policy->node->counters.probes_passed++;
        agent_policy_reach(policy, WAKE_STEP_READY, at_ns);
        release_all(policy);
        event_log_add(policy->node->events, policy->name, "ProbePassed", "%s passed its readiness probe at attempt %llu",
                      address_format(&endpoint->address, address), (unsigned long long)probe_attempts(probe));
        for (size_t i = 0; i < policy->n_endpoints; i++)
                if (policy->endpoints[i]->passed)
                        policy->endpoints[i]->probe = probe_free(policy->endpoints[i]->probe);
}

/* initialDelaySeconds counts from the container's start. */
static uint64_t not_before(const struct status_endpoint *settings)
{
        uint64_t now = now_realtime_ns(), due = settings->started_realtime_ns + settings->probe.initial_delay_ns;

        return now_monotonic_ns() + (due > now ? due - now : 0);
}

static bool wants_probe(const struct agent_policy *policy, const struct agent_endpoint *endpoint,
                        const struct status_endpoint *settings)
{
        const struct policy *spec = policy->object->policy;

        if (is_usable(endpoint) || settings->probe.type == PROBE_NONE || !spec || spec->cluster.readiness != READINESS_PROBE)
                return false;
        if (settings->probe.initial_delay_ns > 0 && settings->started_realtime_ns == 0)
                return false; /* once that is known */
        return policy->expecting || holding_parked(policy->holding) > 0;
}

static void follow_probe(struct agent_policy *policy, struct agent_endpoint *endpoint, const struct status_endpoint *settings)
{
        static const struct probe_callbacks callbacks = { .passed = on_passed };
        char address[ADDRESS_TEXT_MAX];
        int r;

        if (!wants_probe(policy, endpoint, settings)) {
                if (is_usable(endpoint) || settings->probe.type == PROBE_NONE)
                        endpoint->probe = probe_free(endpoint->probe);
                return;
        }
        if (endpoint->probe)
                return;
        r = probe_new(policy->node->prober, &settings->probe, &endpoint->address, not_before(settings), &callbacks, endpoint,
                      &endpoint->probe);
        if (r >= 0)
                return;
        policy->node->counters.probes_refused++;
        log_debug("policy \"%s\": cannot probe %s: %s; the kubelet's word decides", policy->name,
                  address_format(&endpoint->address, address), strerror(-r));
}

/* A pod that was Ready and no longer is has to pass anew. */
static void follow_endpoint(struct agent_policy *policy, const struct status_endpoint *settings)
{
        struct agent_endpoint *endpoint = find_or_add(policy, settings);

        if (!endpoint)
                return;
        endpoint->seen = true;
        if (endpoint->ready && !settings->ready)
                set_passed(endpoint, false);
        endpoint->ready = settings->ready;
        follow_probe(policy, endpoint, settings);
}

static void sweep(struct agent_policy *policy)
{
        size_t kept = 0;

        for (size_t i = 0; i < policy->n_endpoints; i++) {
                struct agent_endpoint *endpoint = policy->endpoints[i];

                if (endpoint->seen)
                        policy->endpoints[kept++] = endpoint;
                else
                        endpoint_free(endpoint);
        }
        policy->n_endpoints = kept;
}

void agent_policy_follow_endpoints(struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;

        if (!may_release(policy)) {
                agent_policy_forget_endpoints(policy);
                return;
        }
        for (size_t i = 0; i < policy->n_endpoints; i++)
                policy->endpoints[i]->seen = false;
        for (size_t i = 0; i < status->n_endpoints; i++)
                follow_endpoint(policy, &status->endpoints[i]);
        sweep(policy);
        release_all(policy);
}

/* What is still held is held for good again. */
void agent_policy_forget_endpoints(struct agent_policy *policy)
{
        for (size_t i = 0; i < policy->n_endpoints; i++)
                endpoint_free(policy->endpoints[i]);
        policy->n_endpoints = 0;

        for (size_t i = 0; policy->n_released_to && i < policy->plan->n_frontends; i++)
                if (policy->n_released_to[i] > 0 && holding_is_started(policy->holding))
                        holding_set_endpoints(policy->holding, i, NULL, 0);
        free(policy->released_to);
        free(policy->n_released_to);
        policy->released_to = NULL;
        policy->n_released_to = NULL;
}
