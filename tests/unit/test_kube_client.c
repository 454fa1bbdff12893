/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a server that is not there: each ends exactly once, whatever callbacks do meanwhile, and their number is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "kube/client.h"

enum { MANY = KUBE_REQUESTS_MAX };

struct fixture;

struct asked {
        struct fixture *fixture;
        size_t index;
};

struct fixture {
        struct asked asked[MANY];
        sd_event *event;
        struct kube_client *client;
        struct kube_request *requests[MANY];
        unsigned done[MANY];
        unsigned n_done;
        int error;
        bool start_another, cancel_next;
};

static int setup(void **state)
{
        /* port 1 of the loopback address refuses, as long as nobody has started tcpmux */
        const struct kube_config config = { .server = (char *)"https://127.0.0.1:1", .token = { .data = (char *)"t" } };
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_int_equal(sd_event_new(&fixture->event), 0);
        assert_int_equal(kube_client_new(fixture->event, &config, &fixture->client), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        kube_client_free(fixture->client);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static int ask(struct fixture *fixture, size_t index, enum kube_priority priority, uint64_t deadline_ns);

static void on_done(const struct kube_reply *reply, void *userdata)
{
        const struct asked *asked = userdata;
        struct fixture *fixture = asked->fixture;
        size_t next = asked->index + 1;

        fixture->error = reply->error;
        fixture->done[asked->index]++;
        fixture->requests[asked->index] = NULL;
        fixture->n_done++;
        if (fixture->cancel_next && next < MANY && fixture->requests[next])
                fixture->requests[next] = kube_request_cancel(fixture->requests[next]);
        if (fixture->start_another && next < 3)
                assert_int_equal(ask(fixture, next, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
}

static int ask(struct fixture *fixture, size_t index, enum kube_priority priority, uint64_t deadline_ns)
{
        const struct kube_request_callbacks callbacks = { .done = on_done };
        const struct kube_request_settings settings = {
                .verb = KUBE_GET, .priority = priority, .resource = "pods", .path = "/api/v1/pods", .deadline_ns = deadline_ns
        };

        fixture->asked[index] = (struct asked){ .fixture = fixture, .index = index };
        return kube_client_request(fixture->client, &settings, &callbacks, &fixture->asked[index], &fixture->requests[index]);
}

static void run_until(struct fixture *fixture, unsigned n_done)
{
        uint64_t until_ns = now_monotonic_ns() + 30 * NSEC_PER_SEC;

        while (fixture->n_done < n_done && now_monotonic_ns() < until_ns)
                assert_true(sd_event_run(fixture->event, 100000) >= 0);
        assert_int_equal(fixture->n_done, n_done);
}

static void a_server_that_is_not_there_is_reported(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(ask(fixture, 0, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
        assert_int_equal(fixture->n_done, 0); /* never from within the call */
        run_until(fixture, 1);
        assert_int_equal(fixture->error, -ECONNREFUSED);
        assert_int_equal(kube_client_counters(fixture->client)->rows[0].code, 0);
        assert_int_equal(kube_client_counters(fixture->client)->rows[0].requests, 1);
}

static void requests_are_bounded_and_each_ends_once(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < MANY; i++)
                assert_int_equal(ask(fixture, i, (enum kube_priority)(i % 4), 20 * NSEC_PER_SEC), 0);
        assert_int_equal(ask(fixture, 0, KUBE_PRIORITY_WAKE, NSEC_PER_SEC), -ENOBUFS);
        assert_int_equal(kube_client_counters(fixture->client)->refused_by_bounds, 1);

        run_until(fixture, MANY);
        for (size_t i = 0; i < MANY; i++)
                assert_int_equal(fixture->done[i], 1);
        assert_int_equal(ask(fixture, 0, KUBE_PRIORITY_NORMAL, NSEC_PER_SEC), 0);
        run_until(fixture, MANY + 1);
}

static void cancelled_requests_leave_room(void **state)
{
        struct fixture *fixture = *state;

        for (size_t round = 0; round < 2; round++) {
                for (size_t i = 0; i < MANY; i++)
                        assert_int_equal(ask(fixture, i, KUBE_PRIORITY_WAKE, 20 * NSEC_PER_SEC), 0);
                for (size_t i = 0; i < MANY; i++)
                        fixture->requests[i] = kube_request_cancel(fixture->requests[i]);
        }
        assert_int_equal(fixture->n_done, 0);
}

static void callbacks_may_start_requests(void **state)
{
        struct fixture *fixture = *state;

        fixture->start_another = true;
        assert_int_equal(ask(fixture, 0, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
        run_until(fixture, 3);
}

static void callbacks_may_cancel_requests(void **state)
{
        struct fixture *fixture = *state;
        enum { COUNT = 40 };

        fixture->cancel_next = true;
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(ask(fixture, i, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
        for (unsigned i = 0; i < 300 && fixture->n_done < COUNT; i++)
                assert_true(sd_event_run(fixture->event, 10000) >= 0);

        assert_in_range(fixture->n_done, 1, COUNT - 1);
        for (size_t i = 0; i < COUNT; i++) {
                assert_null(fixture->requests[i]);
                assert_in_range(fixture->done[i], 0, 1);
        }
}

static void a_cancelled_request_calls_nobody(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(ask(fixture, 0, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
        assert_int_equal(ask(fixture, 1, KUBE_PRIORITY_NORMAL, 5 * NSEC_PER_SEC), 0);
        fixture->requests[0] = kube_request_cancel(fixture->requests[0]);
        run_until(fixture, 1);
        assert_int_equal(fixture->done[0], 0);
        assert_int_equal(fixture->done[1], 1);
}

static void requests_without_an_end_or_a_path_are_refused(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request_settings settings = { .verb = KUBE_GET, .resource = "pods", .path = "/api" };
        const struct kube_request_callbacks callbacks = { 0 };

        assert_int_equal(kube_client_request(fixture->client, &settings, &callbacks, NULL, NULL), -EINVAL);
        settings.deadline_ns = NSEC_PER_SEC;
        settings.path = "http://elsewhere/";
        assert_int_equal(kube_client_request(fixture->client, &settings, &callbacks, NULL, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_server_that_is_not_there_is_reported, setup, teardown),
                cmocka_unit_test_setup_teardown(requests_are_bounded_and_each_ends_once, setup, teardown),
                cmocka_unit_test_setup_teardown(cancelled_requests_leave_room, setup, teardown),
                cmocka_unit_test_setup_teardown(callbacks_may_start_requests, setup, teardown),
                cmocka_unit_test_setup_teardown(callbacks_may_cancel_requests, setup, teardown),
                cmocka_unit_test_setup_teardown(a_cancelled_request_calls_nobody, setup, teardown),
                cmocka_unit_test_setup_teardown(requests_without_an_end_or_a_path_are_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
