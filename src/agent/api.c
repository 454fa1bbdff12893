/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <string.h>

#include "activity/activity.h"
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "agent/report.h"
#include "base/time.h"
#include "kube/reflector.h"
#include "serve/answers.h"
#include "serve/gpu.h"

static json_t *phases_json(const struct node *node)
{
        const struct agent_policy *policy, *next;
        json_int_t counts[PHASE_MAX] = { 0 };
        json_t *json = json_object();

        HASH_ITER(by_name, node->policies, policy, next)
                counts[policy->phase]++;
        for (int phase = 0; phase < PHASE_MAX; phase++)
                json_object_set_new(json, phase_to_string(phase), json_integer(counts[phase]));
        return json;
}

static json_int_t parked_packets(const struct node *node)
{
        const struct agent_policy *policy, *next;
        json_int_t parked = 0;

        HASH_ITER(by_name, node->policies, policy, next)
                if (policy->holding)
                        parked += (json_int_t)holding_parked(policy->holding);
        return parked;
}

/* What stands between this node and the API server, for people. */
static json_t *problems_json(const struct node *node)
{
        const char *problems[] = { kube_reflector_problem(node->objects), kube_reflector_problem(node->pods),
                                   report_problem(node->report) };
        json_t *json = json_array();

        for (size_t i = 0; i < ELEMENTSOF(problems); i++)
                if (*problems[i])
                        json_array_append_new(json, json_string(problems[i]));
        return json;
}

static void get_status(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;
        const struct node *node = &agent->node;
        double uptime = (double)(now_monotonic_ns() - agent->started_ns) / NSEC_PER_SEC;

        http_reply_json(request, 200,
                        json_pack("{ss, ss, ss, si, sf, so, s{sb, sI}, so}", "version", LULL_VERSION, "role", "agent", "node",
                                  node->name, "pid", (int)getpid(), "uptime_seconds", uptime, "policies", phases_json(node), "hold",
                                  "attached", (int)hold_is_attached(node->hold), "parked", parked_packets(node),
                                  "configuration_errors", problems_json(node)));
}

static int by_name(struct agent_policy *a, struct agent_policy *b)
{
        return strcmp(a->name, b->name);
}

static void get_policies(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;
        struct agent_policy *policy, *next;
        json_t *policies = json_array();

        HASH_SRT(by_name, agent->node.policies, by_name);
        HASH_ITER(by_name, agent->node.policies, policy, next)
                json_array_append_new(policies, agent_policy_json(policy));
        http_reply_json(request, 200, json_pack("{so}", "policies", policies));
        malloc_trim(0); /* ten thousand policies are some 40 MB of JSON values */
}

/* The policy that the path names; answers 404 when there is none. */
static struct agent_policy *named_policy(struct http_request *request, struct agent *agent)
{
        const char *name = http_request_segment(request, 0);
        struct agent_policy *policy;

        HASH_FIND(by_name, agent->node.policies, name, strlen(name), policy);
        if (!policy)
                http_reply_error(request, 404, "no policy is called \"%s\"; write it like \"namespace/name\"", name);
        return policy;
}

static void get_policy(struct http_request *request, void *userdata)
{
        struct agent_policy *policy = named_policy(request, userdata);

        if (policy)
                http_reply_json(request, 200, agent_policy_json(policy));
}

static void get_why(struct http_request *request, void *userdata)
{
        struct agent_policy *policy = named_policy(request, userdata);

        if (policy)
                answer_why(request, agent_policy_json(policy));
}

static void post_wish(struct http_request *request, void *userdata)
{
        struct agent_policy *policy = named_policy(request, userdata);
        const char *name = policy ? strchr(policy->name, '/') + 1 : NULL;

        if (policy)
                http_reply_error(request, 409,
                                 "an agent may not scale anything; write \"kubectl -n %.*s annotate --overwrite stz %s "
                                 "lull.dev/wake=$(date +%%s)\", or lull.dev/sleep",
                                 (int)(name - 1 - policy->name), policy->name, name);
}

static void get_held(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;

        http_reply_json(request, 200, json_pack("{so}", "packets", hold_list(agent->node.hold)));
}

static void get_events(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;

        answer_events(request, agent->node.events);
}

static void get_event_stream(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;

        answer_event_stream(request, agent->node.events);
}

/* Answers 404 where GPUs are not watched. */
static struct gpu_watch *watched_gpus(struct http_request *request, const struct agent *agent)
{
        if (!agent->node.gpu)
                http_reply_error(request, 404, "this agent does not watch GPUs; start it with --gpu");
        return agent->node.gpu;
}

static void get_gpus(struct http_request *request, void *userdata)
{
        struct gpu_watch *watch = watched_gpus(request, userdata);

        if (watch)
                answer_gpus(request, watch);
}

static void get_gpu(struct http_request *request, void *userdata)
{
        struct gpu_watch *watch = watched_gpus(request, userdata);

        if (watch)
                answer_gpu(request, watch);
}

static void get_gpu_why(struct http_request *request, void *userdata)
{
        struct gpu_watch *watch = watched_gpus(request, userdata);

        if (watch)
                answer_gpu_why(request, watch);
}

static void get_programs(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;

        answer_programs(request, hold_programs(agent->node.hold), activity_programs(agent->node.activity));
}

static void get_maps(struct http_request *request, void *userdata)
{
        struct agent *agent = userdata;

        http_reply_json(request, 200, json_pack("{so}", "maps", hold_maps(agent->node.hold)));
}

static void get_features(struct http_request *request, void *userdata)
{
        answer_features(request);
}

static void get_metrics(struct http_request *request, void *userdata)
{
        char *text = NULL;
        int r = agent_metrics_text(userdata, &text);

        answer_metrics(request, r, text);
}

static void get_healthz(struct http_request *request, void *userdata)
{
        answer_ok(request);
}

static void get_readyz(struct http_request *request, void *userdata)
{
        const struct agent *agent = userdata;

        answer_ready(request, agent->node.settled ? NULL : "the policies are not known yet");
}

const struct http_route agent_control_routes[] = {
        { "GET", "/v1/status", get_status },
        { "GET", "/v1/policies", get_policies },
        { "GET", "/v1/policies/{}", get_policy },
        { "GET", "/v1/policies/{}/why", get_why },
        { "POST", "/v1/policies/{}/wake", post_wish },
        { "POST", "/v1/policies/{}/sleep", post_wish },
        { "GET", "/v1/held", get_held },
        { "GET", "/v1/events", get_events },
        { "GET", "/v1/events/stream", get_event_stream },
        { "GET", "/v1/gpus", get_gpus },
        { "GET", "/v1/gpus/{}", get_gpu },
        { "GET", "/v1/gpus/{}/why", get_gpu_why },
        { "GET", "/v1/programs", get_programs },
        { "GET", "/v1/maps", get_maps },
        { "GET", "/v1/features", get_features },
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};

const struct http_route agent_metrics_routes[] = {
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};
