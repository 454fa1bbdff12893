/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <string.h>

#include "base/time.h"
#include "controller/controller_private.h"
#include "serve/answers.h"
#include "serve/daemon.h"

static json_t *phases_json(const struct controller *controller)
{
        json_int_t counts[PHASE_MAX] = { 0 };
        const struct subject *subject;
        json_t *json = json_object();

        for (subject = controller->subjects; subject; subject = subject->hh.next)
                counts[subject_known(subject)->object->status.phase]++;
        for (int phase = 0; phase < PHASE_MAX; phase++)
                json_object_set_new(json, phase_to_string(phase), json_integer(counts[phase]));
        return json;
}

static json_t *errors_json(const struct controller *controller)
{
        const struct subject *subject;
        json_t *json = json_array();

        for (subject = controller->subjects; subject; subject = subject->hh.next)
                if (subject_known(subject)->object->policy_problem)
                        json_array_append_new(json,
                                              json_sprintf("%s: %s", subject->key, subject_known(subject)->object->policy_problem));
        return json;
}

static json_t *watches_json(const struct controller *controller)
{
        json_t *json = json_array();

        for (enum view view = 0; view < VIEW_MAX; view++) {
                const struct kube_reflector *reflector = controller->views[view];

                json_array_append_new(json, json_pack("{ss, sb, sb, sI, ss}", "resource", view_name(view), "synced",
                                                      (int)kube_reflector_is_synced(reflector), "stale",
                                                      (int)kube_reflector_is_stale(reflector), "objects",
                                                      (json_int_t)kube_reflector_count(reflector), "problem",
                                                      kube_reflector_problem(reflector)));
        }
        return json;
}

static void get_status(struct http_request *request, void *userdata)
{
        const struct controller *controller = userdata;
        uint64_t now_ns = now_monotonic_ns();
        double uptime = (double)(now_ns - controller->started_ns) / NSEC_PER_SEC;

        http_reply_json(request, 200,
                        json_pack("{ss, ss, si, sf, so, s{sb, si}, so, s{sb, ss}, s{sI, sI}, so}", "version", LULL_VERSION, "role",
                                  "controller", "pid", (int)getpid(), "uptime_seconds", uptime, "policies", phases_json(controller),
                                  "hold", "attached", 0, "parked", 0, "configuration_errors", errors_json(controller), "leader",
                                  "this", (int)controller_leads(controller), "holder", kube_election_holder(controller->election),
                                  "agents", "fresh", (json_int_t)agents_count(controller->agents, AGENT_FRESH, now_ns), "silent",
                                  (json_int_t)agents_count(controller->agents, AGENT_STALE, now_ns), "watches",
                                  watches_json(controller)));
}

static void get_policies(struct http_request *request, void *userdata)
{
        const struct controller *controller = userdata;
        const struct subject *subject;
        json_t *policies = json_array();

        for (subject = controller->subjects; subject; subject = subject->hh.next)
                json_array_append_new(policies, subject_json(subject));
        http_reply_json(request, 200, json_pack("{so}", "policies", policies));
        malloc_trim(0);
}

/* The policy that the path names, "namespace/name"; answers 404 when there is none. */
static struct subject *named_policy(struct http_request *request, struct controller *controller)
{
        const char *name = http_request_segment(request, 0);
        struct subject *subject = subject_find(controller, name);

        if (!subject)
                http_reply_error(request, 404, "no policy is called \"%s\"; write it like namespace/name", name);
        return subject;
}

static void get_policy(struct http_request *request, void *userdata)
{
        struct subject *subject = named_policy(request, userdata);

        if (subject)
                http_reply_json(request, 200, subject_json(subject));
}

static void get_why(struct http_request *request, void *userdata)
{
        struct subject *subject = named_policy(request, userdata);

        if (subject)
                answer_why(request, subject_json(subject));
}

static void ask(struct http_request *request, struct controller *controller, const char *annotation)
{
        struct subject *subject = named_policy(request, controller);
        int r = subject ? metadata_ask(subject, annotation) : 0;

        if (!subject)
                return;
        if (r < 0)
                http_reply_error(request, 503, "policy \"%s\": cannot ask the API server: %s", subject->key, strerror(-r));
        else
                http_reply_json(request, 200,
                                json_pack("{ss, ss, s+}", "name", subject->key, "phase",
                                          phase_to_string(subject_known(subject)->object->status.phase), "message",
                                          "asked for by annotation ", annotation));
}

static void post_wake(struct http_request *request, void *userdata)
{
        ask(request, userdata, "lull.dev/wake");
}

static void post_sleep(struct http_request *request, void *userdata)
{
        ask(request, userdata, "lull.dev/sleep");
}

static void get_held(struct http_request *request, void *userdata)
{
        http_reply_json(request, 200, json_pack("{s[]}", "packets")); /* the agents hold them */
}

static void get_events(struct http_request *request, void *userdata)
{
        const struct controller *controller = userdata;

        answer_events(request, controller->events);
}

static void get_event_stream(struct http_request *request, void *userdata)
{
        const struct controller *controller = userdata;

        answer_event_stream(request, controller->events);
}

static void get_metrics(struct http_request *request, void *userdata)
{
        char *text = NULL;
        int r = controller_metrics_text(userdata, &text);

        answer_metrics(request, r, text);
}

static void get_healthz(struct http_request *request, void *userdata)
{
        answer_ok(request);
}

static void get_readyz(struct http_request *request, void *userdata)
{
        const struct controller *controller = userdata;
        _cleanup_(freep) char *problem = NULL;

        for (enum view view = 0; view < VIEW_MAX && !problem; view++) {
                const struct kube_reflector *reflector = controller->views[view];

                if (reflector && kube_reflector_is_synced(reflector))
                        continue;
                if (asprintf(&problem, "%s have not been read yet: %s", view_name(view),
                             reflector ? kube_reflector_problem(reflector) : "starting") < 0)
                        problem = NULL;
        }
        answer_ready(request, problem);
}

static const struct http_route control_routes[] = {
        { "GET", "/v1/status", get_status },
        { "GET", "/v1/policies", get_policies },
        { "GET", "/v1/policies/{}", get_policy },
        { "GET", "/v1/policies/{}/why", get_why },
        { "POST", "/v1/policies/{}/wake", post_wake },
        { "POST", "/v1/policies/{}/sleep", post_sleep },
        { "GET", "/v1/held", get_held },
        { "GET", "/v1/events", get_events },
        { "GET", "/v1/events/stream", get_event_stream },
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};

static const struct http_route metrics_routes[] = {
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_readyz },
        { NULL, NULL, NULL },
};

int serve_start(struct controller *controller)
{
        int r = daemon_serve_control(controller->event, controller->options->run_dir, control_routes, controller,
                                     &controller->control);

        if (r < 0)
                return r;
        return daemon_serve_metrics(controller->event, controller->options->metrics, metrics_routes, controller,
                                    &controller->metrics);
}

void serve_end(struct controller *controller)
{
        controller->control = http_server_free(controller->control);
        controller->metrics = http_server_free(controller->metrics);
}
