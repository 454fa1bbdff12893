/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease is renewed while nothing stands in the way, and made where it is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/lease.h"
#include "unit/kube_fake.h"

#define COLLECTION "/apis/coordination.k8s.io/v1/namespaces/lull-system/leases"
#define LEASE COLLECTION "/lull-agent-n1"

struct fixture {
        struct kube_client client;
        struct lease *lease;
        const char *problem;
};

static const char *problem(void *userdata)
{
        return ((struct fixture *)userdata)->problem;
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        const struct lease_settings settings = {
                .namespace = "lull-system", .name = "lull-agent-n1", .holder = "one", .problem = problem, .userdata = fixture
        };

        assert_non_null(fixture);
        fixture->problem = "";
        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        assert_int_equal(lease_new(&fixture->client, &settings, &fixture->lease), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        lease_free(fixture->lease);
        assert_true(LIST_EMPTY(&fixture->client.requests));
        sd_event_unref(fixture->client.event);
        free(fixture);
        return 0;
}

static void it_is_renewed(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request *request = await(&fixture->client, LEASE);
        const json_t *spec = json_object_get(request->body, "spec");

        assert_string_equal(json_string_value(json_object_get(spec, "holderIdentity")), "one");
        assert_int_equal(json_integer_value(json_object_get(spec, "leaseDurationSeconds")), LEASE_DURATION_SECONDS);
        answer(request, 200, "{}");
        assert_int_equal(lease_counters(fixture->lease)->renewals, 1);
        assert_int_not_equal(lease_renewed_ns(fixture->lease), 0);
}

static void it_is_made_where_it_is_missing(void **state)
{
        struct fixture *fixture = *state;

        answer(await(&fixture->client, LEASE), 404, "\"none\"");
        answer(await(&fixture->client, COLLECTION), 201, "{}");
        assert_int_equal(lease_counters(fixture->lease)->renewals, 1);
}

static void it_is_not_renewed_for_what_is_not_written(void **state)
{
        struct fixture *fixture = *state;

        fixture->problem = "the NodeActivity is not written";
        while (lease_counters(fixture->lease)->failures == 0 && LIST_EMPTY(&fixture->client.requests))
                sd_event_run(fixture->client.event, UINT64_MAX);
        assert_true(LIST_EMPTY(&fixture->client.requests));

        fixture->problem = "";
        answer(await(&fixture->client, LEASE), 200, "{}");
        assert_int_equal(lease_counters(fixture->lease)->renewals, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(it_is_renewed, setup, teardown),
                cmocka_unit_test_setup_teardown(it_is_made_where_it_is_missing, setup, teardown),
                cmocka_unit_test_setup_teardown(it_is_not_renewed_for_what_is_not_written, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
