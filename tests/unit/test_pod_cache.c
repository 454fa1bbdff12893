/* SPDX-License-Identifier: Apache-2.0 */
/* Pods are asked for once, with a client that the tests answer for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controller/pod_cache.h"
#include "kube/patch.h"

struct kube_request {
        struct kube_client *client;
        char path[256];
        struct kube_request_callbacks callbacks;
        void *userdata;
};

struct kube_client {
        sd_event *event;
        struct kube_request *request; /* one at a time */
        unsigned asked, changes;
        int refuses;
        struct pod_cache *cache;
        struct status_endpoint endpoint;
        struct resolution resolution;
};

int kube_get(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
             const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        struct kube_request *request;

        client->asked++;
        if (client->refuses)
                return client->refuses;
        assert_null(client->request);
        request = calloc(1, sizeof(*request));
        request->client = client;
        request->callbacks = *callbacks;
        request->userdata = userdata;
        snprintf(request->path, sizeof(request->path), "%s/%s/%s/%s", object->api, object->resource, object->namespace,
                 object->name);
        client->request = *ret_request = request;
        return 0;
}

struct kube_request *kube_request_cancel(struct kube_request *request)
{
        if (request)
                request->client->request = NULL;
        free(request);
        return NULL;
}

sd_event *kube_client_event(const struct kube_client *client)
{
        return client->event;
}

static void answer(struct kube_client *client, unsigned code, const char *text)
{
        struct kube_request *request = client->request;
        json_t *body = json_loads(text, 0, NULL);
        const struct kube_reply reply = { .status.code = code, .body = body };

        assert_non_null(body);
        client->request = NULL;
        request->callbacks.done(&reply, request->userdata);
        free(request);
        json_decref(body);
}

static void on_changed(const char *policy, void *userdata)
{
        struct kube_client *client = userdata;

        assert_string_equal(policy, "shop/web");
        client->changes++;
}

static int setup(void **state)
{
        struct kube_client *client = calloc(1, sizeof(*client));

        assert_int_equal(sd_event_new(&client->event), 0);
        assert_int_equal(pod_cache_new(client, on_changed, client, &client->cache), 0);
        client->endpoint = (struct status_endpoint){ .pod = (char *)"web-1", .pod_uid = (char *)"u1" };
        client->resolution = (struct resolution){ .endpoints = &client->endpoint, .n_endpoints = 1 };
        *state = client;
        return 0;
}

static int teardown(void **state)
{
        struct kube_client *client = *state;

        pod_cache_free(client->cache);
        assert_null(client->request);
        sd_event_unref(client->event);
        free(client);
        return 0;
}

static size_t probes(struct kube_client *client, struct resolve_probe ret[static STATUS_ENDPOINTS_MAX])
{
        return pod_cache_probes(client->cache, "shop/web", &client->resolution, ret);
}

#define POD(uid, containers, status)                                                                                               \
        "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-1\",\"uid\":\"" uid "\"},\"spec\":{\"containers\":[" containers      \
        "]},\"status\":{" status "}}"
#define PROBED "{\"name\":\"a\",\"readinessProbe\":{\"tcpSocket\":{\"port\":8080}}}"
#define UNPROBED "{\"name\":\"b\"}"
#define B_RUNS "\"containerStatuses\":[{\"name\":\"b\",\"started\":true,\"state\":{\"running\":{}}}]"
#define IS_READY "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"

static void a_pod_is_asked_for_once(void **state)
{
        struct kube_client *client = *state;
        struct resolve_probe list[STATUS_ENDPOINTS_MAX];

        assert_int_equal(probes(client, list), 0);
        assert_int_equal(probes(client, list), 0);
        assert_int_equal(client->asked, 1);
        assert_string_equal(client->request->path, "v1/pods/shop/web-1");
        answer(client, 200, POD("u1", PROBED, ""));
        assert_int_equal(client->changes, 1);
        assert_int_equal(probes(client, list), 1);
        assert_string_equal(list[0].pod_uid, "u1");
        assert_int_equal(list[0].probe.type, PROBE_TCP);
        assert_int_equal(list[0].probe.port, 8080);
        assert_int_equal(client->asked, 1);
}

static void what_is_ready_is_not_asked_for(void **state)
{
        struct kube_client *client = *state;
        struct resolve_probe list[STATUS_ENDPOINTS_MAX];

        client->endpoint.ready = true;
        assert_int_equal(probes(client, list), 0);
        assert_int_equal(client->asked, 0);
}

static void a_probe_that_waits_for_a_container_is_looked_at_again(void **state)
{
        struct kube_client *client = *state;
        struct resolve_probe list[STATUS_ENDPOINTS_MAX];

        probes(client, list);
        answer(client, 200, POD("u1", PROBED "," UNPROBED, ""));
        assert_int_equal(client->changes, 0);
        while (!client->request)
                assert_true(sd_event_run(client->event, UINT64_MAX) > 0);
        answer(client, 200, POD("u1", PROBED "," UNPROBED, B_RUNS));
        assert_int_equal(client->changes, 1);
        assert_int_equal(probes(client, list), 1);
        assert_int_equal(client->asked, 2);
}

static void a_failed_request_is_repeated(void **state)
{
        struct kube_client *client = *state;
        struct resolve_probe list[STATUS_ENDPOINTS_MAX];

        client->refuses = -ENOBUFS;
        probes(client, list);
        client->refuses = 0;
        while (!client->request)
                assert_true(sd_event_run(client->event, UINT64_MAX) > 0);
        answer(client, 500, "{}");
        while (!client->request)
                assert_true(sd_event_run(client->event, UINT64_MAX) > 0);
        answer(client, 200, POD("u1", PROBED, ""));
        assert_int_equal(probes(client, list), 1);
}

static void a_pod_that_is_gone_ready_or_another_is_left_alone(void **state)
{
        static const struct {
                const char *body;
                unsigned code;
        } cases[] = {
                { "{}", 404 },
                { "{}", 403 },
                { POD("u2", PROBED, ""), 200 },
                { POD("u1", PROBED, IS_READY), 200 },
                { POD("u1", PROBED "," UNPROBED, IS_READY), 200 },
                { POD("u1", UNPROBED, ""), 200 },
                { "{}", 200 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct kube_client *client;
                struct resolve_probe list[STATUS_ENDPOINTS_MAX];

                setup((void **)&client);
                probes(client, list);
                answer(client, cases[i].code, cases[i].body);
                assert_int_equal(sd_event_run(client->event, 0), 0); /* nothing is left to do */
                assert_int_equal(probes(client, list), 0);
                assert_int_equal(client->changes, 0);
                assert_int_equal(client->asked, 1);
                teardown((void **)&client);
        }
}

static void the_longest_unused_is_forgotten(void **state)
{
        struct kube_client *client = *state;
        struct resolve_probe list[STATUS_ENDPOINTS_MAX];

        for (unsigned i = 0; i <= POD_CACHE_MAX; i++) {
                char uid[16];

                snprintf(uid, sizeof(uid), "u%u", i);
                client->endpoint.pod_uid = uid;
                probes(client, list);
                answer(client, 404, "{}");
                client->endpoint.pod_uid = (char *)"u0"; /* stays in use */
                if (i < POD_CACHE_MAX)
                        probes(client, list);
        }
        assert_int_equal(client->asked, POD_CACHE_MAX + 1);
        client->endpoint.pod_uid = (char *)"u0";
        probes(client, list);
        assert_int_equal(client->asked, POD_CACHE_MAX + 1);
        client->endpoint.pod_uid = (char *)"u1";
        probes(client, list);
        assert_int_equal(client->asked, POD_CACHE_MAX + 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_pod_is_asked_for_once, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_ready_is_not_asked_for, setup, teardown),
                cmocka_unit_test_setup_teardown(a_probe_that_waits_for_a_container_is_looked_at_again, setup, teardown),
                cmocka_unit_test_setup_teardown(a_failed_request_is_repeated, setup, teardown),
                cmocka_unit_test(a_pod_that_is_gone_ready_or_another_is_left_alone),
                cmocka_unit_test_setup_teardown(the_longest_unused_is_forgotten, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
