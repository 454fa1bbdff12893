/* SPDX-License-Identifier: Apache-2.0 */
/* The NodeActivity is written when it changes, one write at a time, and until the server has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/report.h"
#include "base/time.h"
#include "unit/kube_fake.h"

#define COLLECTION "/apis/lull.dev/v1alpha1/nodeactivities"
#define STATUS COLLECTION "/n1/status"

struct fixture {
        struct kube_client client;
        struct report *report;
        int value; /* the status */
        unsigned written;
};

static json_t *status(void *userdata)
{
        return json_pack("{si}", "value", ((struct fixture *)userdata)->value);
}

static void on_written(void *userdata)
{
        ((struct fixture *)userdata)->written++;
}

static int setup(void **state)
{
        static const struct report_callbacks callbacks = { status, on_written };
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        assert_int_equal(report_new(&fixture->client, "n1", &callbacks, fixture, &fixture->report), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        report_free(fixture->report);
        assert_true(LIST_EMPTY(&fixture->client.requests));
        sd_event_unref(fixture->client.event);
        free(fixture);
        return 0;
}

static void change(struct fixture *fixture, int value, bool urgent)
{
        fixture->value = value;
        report_changed(fixture->report, urgent);
}

static int value_of(const struct kube_request *request)
{
        return (int)json_integer_value(json_object_get(json_object_get(request->body, "status"), "value"));
}

static void write_done(struct fixture *fixture, int value)
{
        struct kube_request *request = await(&fixture->client, STATUS);

        assert_int_equal(value_of(request), value);
        answer(request, 200, "{}");
}

static void run_for(struct fixture *fixture, uint64_t ns)
{
        uint64_t until = now_monotonic_ns() + ns, now;

        while ((now = now_monotonic_ns()) < until)
                sd_event_run(fixture->client.event, (until - now) / 1000 + 1);
}

static void a_change_is_written_and_told(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        write_done(fixture, 1);

        assert_int_equal(fixture->written, 1);
        assert_int_equal(report_counters(fixture->report)->writes, 1);
}

static void what_is_there_already_is_not_written_again(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        write_done(fixture, 1);
        change(fixture, 1, false);
        run_for(fixture, 2 * REPORT_INTERVAL_NS);

        assert_null(find(&fixture->client, STATUS));
}

static void there_is_one_write_at_a_time_and_the_next_says_what_is_true_then(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        change(fixture, 2, false);
        change(fixture, 3, false);
        run_for(fixture, 2 * REPORT_INTERVAL_NS);
        assert_null(LIST_NEXT(LIST_FIRST(&fixture->client.requests), of_all));
        write_done(fixture, 1);

        write_done(fixture, 3);
        assert_int_equal(fixture->written, 2);
}

static void writes_keep_their_distance(void **state)
{
        struct fixture *fixture = *state;
        uint64_t began = now_monotonic_ns();

        change(fixture, 1, false);
        write_done(fixture, 1);
        change(fixture, 2, true);
        assert_null(find(&fixture->client, STATUS));
        write_done(fixture, 2);

        assert_true(now_monotonic_ns() - began >= REPORT_INTERVAL_NS);
}

static void what_is_urgent_goes_before_others_also_after_a_failure(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request *request;

        change(fixture, 1, false);
        assert_int_equal(find(&fixture->client, STATUS)->priority, KUBE_PRIORITY_NORMAL);
        write_done(fixture, 1);
        change(fixture, 2, true);
        request = await(&fixture->client, STATUS);
        assert_int_equal(request->priority, KUBE_PRIORITY_WAKE);
        answer(request, 500, "\"no\"");

        assert_int_equal(await(&fixture->client, STATUS)->priority, KUBE_PRIORITY_WAKE);
        write_done(fixture, 2);
        change(fixture, 3, false);
        assert_int_equal(await(&fixture->client, STATUS)->priority, KUBE_PRIORITY_NORMAL);
}

static void a_failure_is_tried_again_and_counted(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        answer(await(&fixture->client, STATUS), 503, "\"overloaded\"");
        assert_non_null(strstr(report_problem(fixture->report), "overloaded"));
        assert_null(find(&fixture->client, STATUS)); /* not at once */
        write_done(fixture, 1);

        assert_string_equal(report_problem(fixture->report), "");
        assert_int_equal(report_counters(fixture->report)->failures, 1);
}

static void after_a_failure_nothing_is_known_to_be_there(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        write_done(fixture, 1);
        change(fixture, 2, false);
        answer(await(&fixture->client, STATUS), 504, "\"it may have been done\"");
        fixture->value = 1;

        write_done(fixture, 1);
}

static void the_object_is_made_when_it_is_missing(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request *request;

        change(fixture, 1, false);
        answer(await(&fixture->client, STATUS), 404, "\"not found\"");
        request = await(&fixture->client, COLLECTION);
        assert_int_equal(request->verb, KUBE_CREATE);
        assert_string_equal(json_string_value(json_object_get(json_object_get(request->body, "metadata"), "name")), "n1");
        answer(request, 201, "{}");

        write_done(fixture, 1);
}

static void it_does_not_matter_who_has_made_it(void **state)
{
        struct fixture *fixture = *state;

        change(fixture, 1, false);
        answer(await(&fixture->client, STATUS), 404, "\"not found\"");
        answer(await(&fixture->client, COLLECTION), 409, "\"already exists\"");

        write_done(fixture, 1);
        assert_int_equal(report_counters(fixture->report)->failures, 0);
}

static void what_is_due_later_is_written_then_or_with_what_is_due_before(void **state)
{
        struct fixture *fixture = *state;
        uint64_t due = now_monotonic_ns() + 3 * REPORT_INTERVAL_NS;

        fixture->value = 1;
        report_changed_at(fixture->report, due);
        assert_null(find(&fixture->client, STATUS));
        write_done(fixture, 1);
        assert_true(now_monotonic_ns() >= due);

        fixture->value = 2;
        report_changed_at(fixture->report, now_monotonic_ns() + 3600 * NSEC_PER_SEC);
        report_changed(fixture->report, false);
        write_done(fixture, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_change_is_written_and_told, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_there_already_is_not_written_again, setup, teardown),
                cmocka_unit_test_setup_teardown(there_is_one_write_at_a_time_and_the_next_says_what_is_true_then, setup, teardown),
                cmocka_unit_test_setup_teardown(writes_keep_their_distance, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_urgent_goes_before_others_also_after_a_failure, setup, teardown),
                cmocka_unit_test_setup_teardown(a_failure_is_tried_again_and_counted, setup, teardown),
                cmocka_unit_test_setup_teardown(after_a_failure_nothing_is_known_to_be_there, setup, teardown),
                cmocka_unit_test_setup_teardown(the_object_is_made_when_it_is_missing, setup, teardown),
                cmocka_unit_test_setup_teardown(it_does_not_matter_who_has_made_it, setup, teardown),
                cmocka_unit_test_setup_teardown(what_is_due_later_is_written_then_or_with_what_is_due_before, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
