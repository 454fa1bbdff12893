/* SPDX-License-Identifier: Apache-2.0 */
/* Parking slices are written once, tried again when that fails, and go: the server is the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/parking_keeper.h"
#include "unit/kube_fake.h"

#define PODS "/api/v1/namespaces/lull-system/pods"
#define SLICES "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"

struct fixture {
        struct kube_client client;
        struct parking_keeper *keeper;
        unsigned nodes_changed, again;
        char again_policy[32]; /* the last one */
        struct kube_service *service;
        const struct kube_service *services[1];
        struct status_frontend frontend;
        struct resolution resolution;
        struct parking_services used;
        struct scale_to_zero object;
        struct kube_endpoint_slice *slice; /* as the watch has it, or NULL */
};

static bool is_fresh(const char *node, void *userdata)
{
        return true;
}

static void on_nodes_changed(void *userdata)
{
        ((struct fixture *)userdata)->nodes_changed++;
}

static void on_again(const char *policy, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->again++;
        snprintf(fixture->again_policy, sizeof(fixture->again_policy), "%s", policy);
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        const struct parking_keeper_settings settings = {
                .namespace = "lull-system",
                .first = 42000,
                .last = 42000,
                .is_fresh = is_fresh,
                .nodes_changed = on_nodes_changed,
                .again = on_again,
        };
        json_t *service = json_pack("{s:{s:s, s:s}, s:{s:[s], s:[{s:s, s:i}]}}", "metadata", "namespace", "shop", "name", "web",
                                    "spec", "clusterIPs", "10.0.0.1", "ports", "name", "http", "port", 80);
        const char *field;
        struct kube_request *watch;

        assert_int_equal(kube_service_read(service, &fixture->service, &field), 0);
        json_decref(service);
        fixture->services[0] = fixture->service;
        fixture->frontend = (struct status_frontend){ .origin = FRONTEND_CLUSTER_IP, .backend = (char *)"web/http" };
        fixture->frontend.frontend.address = fixture->service->cluster_ips[0];
        fixture->resolution = (struct resolution){ .frontends = &fixture->frontend, .n_frontends = 1 };
        fixture->used = (struct parking_services){ fixture->services, 1, &fixture->resolution };
        fixture->object.metadata =
                (struct kube_metadata){ .namespace = (char *)"shop", .name = (char *)"web", .uid = (char *)"p1" };

        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        assert_int_equal(parking_keeper_new(&fixture->client, &settings, fixture, &fixture->keeper), 0);
        watch = await(&fixture->client, PODS);
        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED",
              "{\"metadata\":{\"namespace\":\"lull-system\",\"name\":\"a\",\"resourceVersion\":\"1\"},\"spec\":{\"nodeName\":\"n1\","
              "\"hostNetwork\":true},\"status\":{\"podIPs\":[{\"ip\":\"192.0.2.1\"}]}}");
        synced(watch);
        assert_int_equal(fixture->nodes_changed, 1);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        parking_keeper_free(fixture->keeper);
        assert_true(LIST_EMPTY(&fixture->client.requests));
        sd_event_unref(fixture->client.event);
        kube_endpoint_slice_free(fixture->slice);
        kube_service_free(fixture->service);
        free(fixture);
        return 0;
}

static void look_at(struct fixture *fixture, const char *policy, bool parked)
{
        struct parking_plan plan;

        assert_int_equal(parking_keeper_plan(fixture->keeper, "shop/web", &fixture->used, &plan), 0);
        assert_int_equal(plan.n_entries, 1);
        assert_string_equal(plan.entries[0].node, "n1");
        assert_int_equal(plan.entries[0].port, 42000);
        parking_keeper_write(fixture->keeper, policy, &fixture->object, &fixture->used, parked ? &plan : NULL,
                             (const struct kube_endpoint_slice *const *)&fixture->slice, fixture->slice ? 1 : 0);
        parking_plan_done(&plan);
}

/* One look at the policy, which is to be parked or not. */
static void look(struct fixture *fixture, bool parked)
{
        look_at(fixture, "shop/web", parked);
}

static void created(struct fixture *fixture)
{
        struct kube_request *request = find(&fixture->client, SLICES);
        const char *field;

        assert_non_null(request);
        assert_int_equal(request->verb, KUBE_CREATE);
        assert_int_equal(kube_endpoint_slice_read(request->body, &fixture->slice, &field), 0);
        answer(request, 201, "{}");
}

static void await_again(struct fixture *fixture)
{
        unsigned before = fixture->again;

        while (fixture->again == before)
                assert_true(sd_event_run(fixture->client.event, UINT64_MAX) > 0);
}

static void a_slice_is_written_once_and_goes(void **state)
{
        struct fixture *fixture = *state;
        struct kube_endpoint_slice *seen;
        struct kube_request *request;

        look(fixture, true);
        look(fixture, true); /* it runs */
        created(fixture);
        seen = TAKE_PTR(fixture->slice);
        look(fixture, true); /* the watch has not shown it yet */
        assert_null(find(&fixture->client, SLICES));
        fixture->slice = seen;
        look(fixture, true);
        assert_null(find(&fixture->client, SLICES));

        look(fixture, false);
        request = find(&fixture->client, SLICES "/web-lull-ipv4");
        assert_int_equal(request->verb, KUBE_DELETE);
        answer(request, 404, "{}"); /* somebody else was faster */
        assert_null(parking_keeper_problem(fixture->keeper, "shop/web"));
        look(fixture, false);
        assert_null(find(&fixture->client, SLICES "/web-lull-ipv4"));
        fixture->slice = kube_endpoint_slice_free(fixture->slice);
        look(fixture, false);
        assert_null(find(&fixture->client, SLICES "/web-lull-ipv4"));
}

static void a_watch_that_shows_nothing_is_not_waited_for_long(void **state)
{
        struct fixture *fixture = *state;

        look(fixture, true);
        created(fixture);
        fixture->slice = kube_endpoint_slice_free(fixture->slice); /* deleted by somebody, say */
        await_again(fixture);
        look(fixture, true);
        created(fixture);
}

static void a_failure_is_told_and_tried_again(void **state)
{
        struct fixture *fixture = *state;

        look(fixture, true);
        answer(find(&fixture->client, SLICES), 403, "\"forbidden\"");
        assert_non_null(
                strstr(parking_keeper_problem(fixture->keeper, "shop/web"), "EndpointSlice web-lull-ipv4 cannot be written"));
        look(fixture, true); /* not at once */
        assert_null(find(&fixture->client, SLICES));
        await_again(fixture);
        look(fixture, true);
        created(fixture);
        assert_null(parking_keeper_problem(fixture->keeper, "shop/web"));
}

static void a_slice_that_comes_late_is_awaited(void **state)
{
        struct fixture *fixture = *state;
        struct kube_endpoint_slice *late;

        assert_false(parking_keeper_is_busy(fixture->keeper, "shop/web"));
        look(fixture, true);
        look(fixture, false); /* demand, while it is being created */
        assert_true(parking_keeper_is_busy(fixture->keeper, "shop/web"));
        created(fixture);
        late = TAKE_PTR(fixture->slice);
        look(fixture, false); /* and before the watch shows it */
        assert_true(parking_keeper_is_busy(fixture->keeper, "shop/web"));
        fixture->slice = late;
        look(fixture, false);
        assert_int_equal(find(&fixture->client, SLICES "/web-lull-ipv4")->verb, KUBE_DELETE);
        answer(find(&fixture->client, SLICES "/web-lull-ipv4"), 200, "{}");
        fixture->slice = kube_endpoint_slice_free(fixture->slice);
        look(fixture, false);
        assert_false(parking_keeper_is_busy(fixture->keeper, "shop/web"));
}

static void a_slice_that_never_comes_is_not_awaited_for_long(void **state)
{
        struct fixture *fixture = *state;

        look(fixture, true);
        created(fixture);
        fixture->slice = kube_endpoint_slice_free(fixture->slice);
        look(fixture, false);
        assert_true(parking_keeper_is_busy(fixture->keeper, "shop/web"));
        await_again(fixture);
        look(fixture, false);
        assert_false(parking_keeper_is_busy(fixture->keeper, "shop/web"));
}

static void what_is_not_to_be_any_more_waits_for_no_failure(void **state)
{
        struct fixture *fixture = *state;

        look(fixture, true);
        created(fixture);
        free(fixture->slice->endpoints[0].node);
        fixture->slice->endpoints[0].node = strdup("n9");
        look(fixture, true);
        answer(find(&fixture->client, SLICES "/web-lull-ipv4"), 403, "\"forbidden\"");
        look(fixture, false);
        assert_int_equal(find(&fixture->client, SLICES "/web-lull-ipv4")->verb, KUBE_DELETE);
}

static void a_policy_that_is_gone_gives_all_back(void **state)
{
        struct fixture *fixture = *state;
        struct parking_plan plan;

        look(fixture, true);
        parking_keeper_forget(fixture->keeper, "shop/web");
        assert_null(find(&fixture->client, SLICES));
        assert_int_equal(parking_keeper_plan(fixture->keeper, "shop/other", &fixture->used, &plan), 0);
        assert_int_equal(plan.n_entries, 1); /* the only port */
        parking_plan_done(&plan);
}

static size_t count_requests(const struct fixture *fixture)
{
        const struct kube_request *request;
        size_t n = 0;

        LIST_FOREACH(request, &fixture->client.requests, of_all)
        n += strcmp(request->path, SLICES) == 0;
        return n;
}

static void only_so_many_are_written_at_once_and_the_others_in_turn(void **state)
{
        struct fixture *fixture = *state;

        for (int i = 0; i < PARKING_REQUESTS_MAX; i++)
                look_at(fixture, (char[]){ 's', 'h', 'o', 'p', '/', (char)('a' + i), '\0' }, true);
        look_at(fixture, "shop/second", true);
        look_at(fixture, "shop/third", true);
        look(fixture, true);
        assert_int_equal(count_requests(fixture), PARKING_REQUESTS_MAX);
        assert_true(parking_keeper_is_busy(fixture->keeper, "shop/second"));

        answer(find(&fixture->client, SLICES), 201, "{}");
        assert_string_equal(fixture->again_policy, "shop/second");
        look_at(fixture, "shop/second", false); /* it has nothing to write any more */
        assert_string_equal(fixture->again_policy, "shop/third");
        parking_keeper_forget(fixture->keeper, "shop/third");
        assert_string_equal(fixture->again_policy, "shop/web");
        look(fixture, true);
        assert_int_equal(count_requests(fixture), PARKING_REQUESTS_MAX);
        assert_false(parking_keeper_is_busy(fixture->keeper, "shop/second"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_slice_is_written_once_and_goes, setup, teardown),
                cmocka_unit_test_setup_teardown(a_watch_that_shows_nothing_is_not_waited_for_long, setup, teardown),
                cmocka_unit_test_setup_teardown(a_failure_is_told_and_tried_again, setup, teardown),
                cmocka_unit_test_setup_teardown(a_slice_that_comes_late_is_awaited, setup, teardown),
                cmocka_unit_test_setup_teardown(a_slice_that_never_comes_is_not_awaited_for_long, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_not_to_be_any_more_waits_for_no_failure, setup, teardown),
                cmocka_unit_test_setup_teardown(only_so_many_are_written_at_once_and_the_others_in_turn, setup, teardown),
                cmocka_unit_test_setup_teardown(a_policy_that_is_gone_gives_all_back, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
