/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include "activity/activity.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/answers.h"
#include "serve/gpu.h"
#include "standalone/manager.h"

static json_t *phases_json(const struct manager *manager)
{
        json_int_t counts[PHASE_MAX] = { 0 };
        json_t *json = json_object();

        for (size_t i = 0; i < manager->n_policies; i++)
                counts[manager->policies[i]->machine.phase]++;
        for (int phase = 0; phase < PHASE_MAX; phase++)
                json_object_set_new(json, phase_to_string(phase), json_integer(counts[phase]));
        return json;
}

static json_int_t parked_packets(const struct manager *manager)
{
        json_int_t parked = 0;

        for (size_t i = 0; i < manager->n_policies; i++)
                parked += (json_int_t)holding_parked(manager->policies[i]->holding);
        return parked;
}

static json_t *errors_json(const struct manager *manager)
{
        json_t *json = json_array();

        for (size_t i = 0; i < manager->n_configuration_errors; i++)
                json_array_append_new(json, json_string(manager->configuration_errors[i]));
        return json;
}

static void get_status(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;
        double uptime = (double)(now_monotonic_ns() - manager->started_ns) / NSEC_PER_SEC;

        http_reply_json(request, 200,
                        json_pack("{ss, ss, si, sf, so, s{sb, sI}, so}", "version", LULL_VERSION, "role", "standalone", "pid",
                                  (int)getpid(), "uptime_seconds", uptime, "policies", phases_json(manager), "hold", "attached",
                                  (int)hold_is_attached(manager->context.hold), "parked", parked_packets(manager),
                                  "configuration_errors", errors_json(manager)));
}

static void get_policies(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;
        json_t *policies = json_array();

        for (size_t i = 0; i < manager->n_policies; i++)
                json_array_append_new(policies, managed_json(manager->policies[i]));
        http_reply_json(request, 200, json_pack("{so}", "policies", policies));
        malloc_trim(0); /* ten thousand policies are some 40 MB of JSON values */
}

/* The policy that the path names; answers 404 when there is none. */
static struct managed *named_policy(struct http_request *request, struct manager *manager)
{
        const char *name = http_request_segment(request, 0);
        struct managed *managed = managed_find(manager->policies, manager->n_policies, name);

        if (!managed)
                http_reply_error(request, 404, "no policy is called \"%s\"", name);
        return managed;
}

static void get_policy(struct http_request *request, void *userdata)
{
        struct managed *managed = named_policy(request, userdata);

        if (managed)
                http_reply_json(request, 200, managed_json(managed));
}

static void get_why(struct http_request *request, void *userdata)
{
        struct managed *managed = named_policy(request, userdata);

        if (managed)
                answer_why(request, managed_json(managed));
}

static void reply_to_operator(struct http_request *request, const struct managed *managed, int r, const char *message)
{
        if (r < 0) {
                http_reply_error(request, 409, "policy \"%s\": %s", managed->policy->name, message);
                return;
        }
        http_reply_json(request, 200,
                        json_pack("{ss, ss, ss}", "name", managed->policy->name, "phase", phase_to_string(managed->machine.phase),
                                  "message", message));
}

static void post_wake(struct http_request *request, void *userdata)
{
        struct managed *managed = named_policy(request, userdata);
        const char *message;
        int r;

        if (!managed)
                return;
        r = managed_wake(managed, &message);
        reply_to_operator(request, managed, r, message);
}

static void post_sleep(struct http_request *request, void *userdata)
{
        struct managed *managed = named_policy(request, userdata);
        const char *message;
        int r;

        if (!managed)
                return;
        r = managed_sleep(managed, &message);
        reply_to_operator(request, managed, r, message);
}

static void get_held(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        http_reply_json(request, 200, json_pack("{so}", "packets", hold_list(manager->context.hold)));
}

static void get_events(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_events(request, manager->context.events);
}

static void get_event_stream(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_event_stream(request, manager->context.events);
}

static void get_programs(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_programs(request, hold_programs(manager->context.hold), activity_programs(manager->context.activity));
}

static void get_maps(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        http_reply_json(request, 200, json_pack("{so}", "maps", hold_maps(manager->context.hold)));
}

static void get_gpus(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_gpus(request, manager->context.gpu);
}

static void get_gpu(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_gpu(request, manager->context.gpu);
}

static void get_gpu_why(struct http_request *request, void *userdata)
{
        struct manager *manager = userdata;

        answer_gpu_why(request, manager->context.gpu);
}

static void get_features(struct http_request *request, void *userdata)
{
        answer_features(request);
}

static void get_metrics(struct http_request *request, void *userdata)
{
        char *text = NULL;
        int r = manager_metrics_text(userdata, &text);

        answer_metrics(request, r, text);
}

static void get_healthz(struct http_request *request, void *userdata)
{
        answer_ok(request);
}

static void get_readyz(struct http_request *request, void *userdata)
{
        const struct manager *manager = userdata;

        answer_ready(request, manager->ready ? NULL : "the policies are being set up");
}

const struct http_route manager_control_routes[] = {
        { "GET", "/v1/status", get_status },
        { "GET", "/v1/policies", get_policies },
        { "GET", "/v1/policies/{}", get_policy },
        { "GET", "/v1/policies/{}/why", get_why },
        { "POST", "/v1/policies/{}/wake", post_wake },
        { "POST", "/v1/policies/{}/sleep", post_sleep },
        { "GET", "/v1/held", get_held },
        { "GET", "/v1/events", get_events },
        { "GET", "/v1/events/stream", get_event_stream },
        { "GET", "/v1/programs", get_programs },
        { "GET", "/v1/maps", get_maps },
        { "GET", "/v1/gpus", get_gpus },
        { "GET", "/v1/gpus/{}", get_gpu },
        { "GET", "/v1/gpus/{}/why", get_gpu_why },
        { "GET", "/v1/features", get_features },
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};

const struct http_route manager_metrics_routes[] = {
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};
