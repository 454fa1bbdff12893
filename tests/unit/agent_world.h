/* SPDX-License-Identifier: Apache-2.0 */
/* An agent in a world that the test is: the API server, what is held, and what pods do. For one test file each, instead of the layers
 * below src/agent: what the hold, workloads and probes are told is written down, and they say what the test wants.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "activity/activity.h"
#include "activity/pod_cgroup.h"
#include "agent/agent_policy.h"
#include "agent/agent_private.h"
#include "agent/claims.h"
#include "agent/report.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "hold/hold.h"
#include "kube/reflector.h"
#include "serve/event_log.h"
#include "unit/kube_fake.h"
#include "unit/quoted_json.h"

#define OBJECTS "/apis/lull.dev/v1alpha1/scaletozeros"
#define PODS "/api/v1/pods"
#define NODE_ACTIVITIES "/apis/lull.dev/v1alpha1/nodeactivities"
#define STATUS NODE_ACTIVITIES "/n1/status"

enum { WORLD_FRONTENDS_MAX = 4, WORLD_PROBES_MAX = 4 };

struct hold {
        bool settled;
        bool left;       /* an earlier daemon held everything */
        int start_error; /* of every holding */
};

struct holding {
        struct hold *hold;
        void *userdata;
        bool started, expecting;
        bool has_demand;
        size_t parked;
        size_t n_frontends, n_endpoints[WORLD_FRONTENDS_MAX];
        unsigned starts, stops, refusals, rearms, moved_to;
};

struct workload {
        void *userdata;
        struct workload_snapshot snapshot;
        int error;
        unsigned reads; /* of connections too */
};

struct probe {
        struct probe_callbacks callbacks;
        void *userdata;
        struct address address;
        bool used;
};

struct prober {
        struct probe probes[WORLD_PROBES_MAX];
};

struct activity {
        struct workload *workload; /* the last that was made */
        int error;                 /* of making them */
};

struct gpu_tenant { /* a pod's */
        struct gpu_watch *watch;
        char name[64];
        struct gpu_rules rules;
        unsigned devices, open;
        struct gpu_verdict verdict;
        uint32_t (*open_requests)(void *userdata);
        void *userdata;
        unsigned looks;
        unsigned told;         /* how often its allocations were */
        char allocations[256]; /* "NAME COUNT BUS_ID" each, as told last */
        uint64_t since_ns;     /* of the last */
};

struct gpu_watch {
        struct gpu_tenant *tenants[2];
        int error; /* of making them */
};

struct world {
        struct agent agent;
        struct agent_options options;
        struct kube_client client;
        struct hold hold;
        struct activity activity;
        struct gpu_watch gpu; /* the node's, where a test says so */
        struct prober prober;
        struct kube_request *objects, *pods; /* the watches */
        json_t *status;                      /* of the NodeActivity, as last written */
        unsigned writes, version;
        uint64_t began_ns;
};

/* hold */

void hold_settle(struct hold *hold)
{
        hold->settled = true;
}

int holding_new(struct hold *hold, const struct holding_config *config, void *userdata, struct holding **ret_holding)
{
        struct holding *holding = calloc(1, sizeof(*holding));

        assert_non_null(holding);
        assert_true(config->n_frontends <= WORLD_FRONTENDS_MAX);
        holding->hold = hold;
        holding->userdata = userdata;
        holding->n_frontends = config->n_frontends;
        *ret_holding = holding;
        return 0;
}

struct holding *holding_free(struct holding *holding)
{
        free(holding);
        return NULL;
}

void holding_move(struct holding *from, struct holding *to)
{
        to->parked = from->parked;
        from->parked = 0;
        to->moved_to++;
}

void *holding_userdata(const struct holding *holding)
{
        return holding->userdata;
}

int holding_start(struct holding *holding)
{
        if (holding->hold->start_error)
                return holding->hold->start_error;
        holding->starts++;
        holding->started = true;
        holding->expecting = false;
        return 0;
}

int holding_set_endpoints(struct holding *holding, size_t index, const struct holding_endpoint *endpoints, size_t n_endpoints)
{
        assert_true(index < holding->n_frontends);
        holding->n_endpoints[index] = n_endpoints;
        return 0;
}

void holding_expect_data_plane(struct holding *holding)
{
        holding->expecting = true;
}

void holding_refuse(struct holding *holding)
{
        holding->refusals++;
        holding->started = false;
        holding->parked = 0;
}

void holding_stop(struct holding *holding)
{
        holding->stops++;
        holding->started = false;
        holding->parked = 0;
}

void holding_rearm(struct holding *holding)
{
        holding->rearms++;
}

bool holding_is_started(const struct holding *holding)
{
        return holding->started;
}

bool holding_is_left(const struct holding *holding)
{
        return holding->hold->left && !holding->hold->settled && !holding->started;
}

bool holding_has_demand(struct holding *holding)
{
        return holding->has_demand;
}

size_t holding_parked(const struct holding *holding)
{
        return holding->parked;
}

/* activity */

void activity_settle(struct activity *activity)
{
}

int pod_cgroup_find(const char *root, const char *uid, char **ret_path)
{
        *ret_path = strdup(uid);
        return *ret_path ? 0 : -ENOMEM;
}

int workload_new(struct activity *activity, const struct workload_settings *settings, const char *cgroup, void *userdata,
                 struct workload **ret_workload)
{
        if (activity->error)
                return activity->error;
        *ret_workload = calloc(1, sizeof(**ret_workload));
        assert_non_null(*ret_workload);
        (*ret_workload)->userdata = userdata;
        (*ret_workload)->snapshot.cpu_window_ns = 60 * NSEC_PER_SEC;
        activity->workload = *ret_workload;
        return 0;
}

int workload_update(struct workload *workload, const struct workload_settings *settings)
{
        return 0;
}

struct workload *workload_free(struct workload *workload, bool keep_pins)
{
        free(workload);
        return NULL;
}

int workload_read_totals(struct workload *workload, struct workload_snapshot *ret_snapshot)
{
        if (workload->error)
                return workload->error;
        *ret_snapshot = workload->snapshot;
        ret_snapshot->connections = ret_snapshot->open_requests = 0;
        return 0;
}

int workload_read(struct workload *workload, uint64_t not_before_ns, struct workload_snapshot *ret_snapshot)
{
        if (workload->error)
                return workload->error;
        workload->reads++;
        *ret_snapshot = workload->snapshot;
        return 0;
}

/* GPUs */

int gpu_tenant_new(struct gpu_watch *watch, const struct gpu_tenant_config *config, struct gpu_tenant **ret_tenant)
{
        struct gpu_tenant **slot = watch->tenants[0] ? &watch->tenants[1] : &watch->tenants[0];

        if (watch->error)
                return watch->error;
        assert_null(*slot);
        *slot = calloc(1, sizeof(**slot));
        assert_non_null(*slot);
        (*slot)->watch = watch;
        (*slot)->rules = config->rules;
        (*slot)->open_requests = config->open_requests;
        (*slot)->userdata = config->userdata;
        snprintf((*slot)->name, sizeof((*slot)->name), "%s", config->name);
        *ret_tenant = *slot;
        return 0;
}

struct gpu_tenant *gpu_tenant_free(struct gpu_tenant *tenant)
{
        if (!tenant)
                return NULL;
        for (size_t i = 0; i < 2; i++)
                if (tenant->watch->tenants[i] == tenant)
                        tenant->watch->tenants[i] = NULL;
        free(tenant);
        return NULL;
}

void gpu_tenant_set_rules(struct gpu_tenant *tenant, const struct gpu_rules *rules)
{
        tenant->rules = *rules;
}

int gpu_tenant_set_allocations(struct gpu_tenant *tenant, const struct gpu_allocation *allocations, size_t n)
{
        char *text = tenant->allocations;
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                used += (size_t)snprintf(text + used, sizeof(tenant->allocations) - used, "%s%s %u %s", i ? "; " : "",
                                         allocations[i].name, allocations[i].count,
                                         allocations[i].bus_id ? allocations[i].bus_id : "-");
                tenant->since_ns = allocations[i].since_ns;
        }
        tenant->told++;
        return 0;
}

void gpu_tenant_judge(struct gpu_tenant *tenant, struct gpu_standing *ret_standing)
{
        tenant->looks++;
        gpu_tenant_known(tenant, ret_standing);
}

void gpu_tenant_known(const struct gpu_tenant *tenant, struct gpu_standing *ret_standing)
{
        *ret_standing = (struct gpu_standing){ .devices = tenant->devices, .open = tenant->open, .verdict = tenant->verdict };
}

unsigned gpu_tenant_open_devices(const struct gpu_tenant *tenant)
{
        return tenant->open;
}

/* probes */

int probe_new(struct prober *prober, const struct status_probe *settings, const struct address *address, uint64_t not_before_ns,
              const struct probe_callbacks *callbacks, void *userdata, struct probe **ret_probe)
{
        for (size_t i = 0; i < WORLD_PROBES_MAX; i++)
                if (!prober->probes[i].used) {
                        prober->probes[i] = (struct probe){ *callbacks, userdata, *address, true };
                        *ret_probe = &prober->probes[i];
                        return 0;
                }
        return -ENOBUFS;
}

struct probe *probe_free(struct probe *probe)
{
        if (probe)
                probe->used = false;
        return NULL;
}

uint64_t probe_attempts(const struct probe *probe)
{
        return 1;
}

/* The world */

static int world_new(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        struct node *node = &world->agent.node;

        assert_non_null(world);
        LIST_INIT(&world->client.requests);
        assert_int_equal(sd_event_new(&world->client.event), 0);
        world->version = 100;
        world->began_ns = now_monotonic_ns();
        world->options.node = (char *)"n1";
        world->agent.options = &world->options;
        world->agent.client = &world->client;
        node->event = world->client.event;
        node->name = "n1";
        node->cgroup = "/";
        node->hold = &world->hold;
        node->activity = &world->activity;
        node->prober = &world->prober;
        assert_int_equal(event_log_new(&node->events), 0);
        assert_int_equal(report_new(&world->client, "n1", &node_report_callbacks, node, &node->report), 0);
        assert_int_equal(agent_watch(&world->agent), 0);
        world->objects = await(&world->client, OBJECTS);
        world->pods = await(&world->client, PODS);
        world->objects->callbacks.opened(world->objects->userdata);
        world->pods->callbacks.opened(world->pods->userdata);
        *state = world;
        return 0;
}

static int world_free(void **state)
{
        struct world *world = *state;
        struct node *node = &world->agent.node;
        struct agent_policy *policy, *next;

        node->settled = false;
        HASH_ITER(by_name, node->policies, policy, next)
                agent_policy_free(policy, true);
        kube_reflector_free(node->objects);
        kube_reflector_free(node->pods);
        claims_free(node->claims);
        report_free(node->report);
        assert_true(LIST_EMPTY(&world->client.requests));
        event_log_free(node->events);
        json_decref(world->status);
        sd_event_unref(world->client.event);
        free(world);
        return 0;
}

static _unused_ struct agent_policy *policy_of(struct world *world, const char *name)
{
        struct agent_policy *policy;

        HASH_FIND(by_name, world->agent.node.policies, name, strlen(name), policy);
        return policy;
}

static _unused_ struct holding *holding_of(struct world *world)
{
        struct agent_policy *policy = policy_of(world, "shop/web");

        assert_non_null(policy);
        assert_non_null(policy->holding);
        return policy->holding;
}

#define SPEC "'target':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"
#define FRONTEND "{'address':'10.0.0.1','port':80,'protocol':'TCP','origin':'ClusterIP','backend':'web/http'}"
#define ENDPOINT(address, fields)                                                                                                  \
        "{'address':'" address "','node':'n2','pod':'web-1','podUID':'u-" address                                                  \
        "','ports':[{'backend':'web/http','port':8080,'protocol':'TCP'}]," fields "}"
#define PROBE "'probe':{'type':'HTTP','port':8080,'path':'/','timeoutSeconds':1,'successThreshold':1}"

/* shop/web as of a new version, which it returns. @spec and @status are fields in JSON with ' for ". */
static unsigned write_object(struct world *world, const char *spec, const char *status)
{
        _cleanup_(freep) char *text = NULL;

        assert_true(asprintf(&text,
                             "{'metadata':{'namespace':'shop','name':'web','uid':'p','generation':1,'resourceVersion':'%u'},"
                             "'spec':{" SPEC "%s},'status':{'frontends':[" FRONTEND "],"
                             "'ports':[{'backend':'web/http','port':8080,'protocol':'TCP'}],'selector':'app=web',%s}}",
                             ++world->version, spec, status) > 0);
        event(world->objects, "MODIFIED", unquote(text));
        return world->version;
}

static _unused_ void add_pod(struct world *world)
{
        event(world->pods, "ADDED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-1\",\"uid\":\"u1\",\"resourceVersion\":\"7\","
              "\"labels\":{\"app\":\"web\"}},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}");
}

static _unused_ void sync_all(struct world *world)
{
        synced(world->pods);
        synced(world->objects);
}

/* Runs what is due, for 10 s at most. */
static _unused_ void step(struct world *world)
{
        assert_true(now_monotonic_ns() < world->began_ns + 10 * NSEC_PER_SEC);
        assert_true(sd_event_run(world->client.event, 5000000) > 0);
}

/* The next write, which is done. */
static _unused_ json_t *written(struct world *world)
{
        struct kube_request *request;

        while (!(request = find(&world->client, STATUS)))
                step(world);

        assert_int_equal(request->verb, KUBE_PATCH);
        json_decref(world->status);
        world->status = json_incref(json_object_get(request->body, "status"));
        world->writes++;
        answer(request, 200, "{}");
        return world->status;
}

static _unused_ const json_t *entry(const json_t *status, const char *list)
{
        const json_t *entries = json_object_get(status, list);

        assert_true(json_array_size(entries) <= 1);
        return json_array_get(entries, 0);
}

static _unused_ const json_t *workload_told(const struct world *world)
{
        return entry(world->status, "workloads");
}

static _unused_ const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static _unused_ json_int_t number_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

/* Runs what is due within @ns; nothing is written meanwhile. */
static _unused_ void nothing_is_written_within(struct world *world, uint64_t ns)
{
        uint64_t until = now_monotonic_ns() + ns, now;

        while ((now = now_monotonic_ns()) < until) {
                sd_event_run(world->client.event, (until - now) / 1000 + 1);
                assert_null(find(&world->client, STATUS));
        }
}
