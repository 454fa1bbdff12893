/* SPDX-License-Identifier: Apache-2.0 */
/* Why a wake has failed: looked at until it is known, and not too often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/time.h"
#include "controller/controller_private.h"
#include "unit/kube_fake.h"

#define PODS "/api/v1/namespaces/shop/pods"
#define POD(state)                                                                                                                 \
        "{\"items\":[{\"metadata\":{\"name\":\"web-1\"},\"status\":{\"phase\":\"Pending\",\"containerStatuses\":[" state "]}}]}"
#define BEING_MADE POD("{\"name\":\"web\",\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}")
#define NO_IMAGE POD("{\"name\":\"web\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"no such thing\"}}}")

static const uint64_t begin_ns = 1000 * NSEC_PER_SEC;

struct fixture {
        struct kube_client client;
        struct controller controller;
        struct area area;
        struct subject subject;
        struct target_state target;
        unsigned told;
};

/* Instead of src/controller/tell.c. */
void tell(struct subject *subject, enum kube_event_type type, const char *reason, const char *action, const char *format, ...)
{
        struct fixture *fixture = (struct fixture *)((char *)subject - offsetof(struct fixture, subject));

        fixture->told++;
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        fixture->controller.event = fixture->client.event;
        fixture->controller.client = &fixture->client;
        TAILQ_INIT(&fixture->controller.due);
        fixture->area.namespace = (char *)"shop";
        fixture->subject.controller = &fixture->controller;
        fixture->subject.area = &fixture->area;
        fixture->subject.key = (char *)"shop/web";
        fixture->target = (struct target_state){ .known = true, .exists = true, .selector = "app=web" };
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        diagnosis_free(fixture->subject.diagnosis);
        assert_true(LIST_EMPTY(&fixture->client.requests));
        sd_event_unref(fixture->client.event);
        free(fixture);
        return 0;
}

static uint64_t go_on(struct fixture *fixture, uint64_t now_ns)
{
        return diagnosis_go_on(&fixture->subject, &fixture->target, now_ns);
}

static void pods_that_tell_nothing_yet_are_looked_at_again(void **state)
{
        struct fixture *fixture = *state;
        uint64_t next_ns;

        assert_int_equal(go_on(fixture, begin_ns), 0);
        diagnosis_begin(&fixture->subject, begin_ns);
        assert_null(diagnosis_reason(fixture->subject.diagnosis));
        next_ns = go_on(fixture, begin_ns);
        answer(find(&fixture->client, PODS), 200, BEING_MADE);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "NotReady");

        assert_int_equal(go_on(fixture, next_ns - 1), next_ns);
        assert_null(find(&fixture->client, PODS));
        go_on(fixture, next_ns);
        answer(find(&fixture->client, PODS), 200, NO_IMAGE);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "ImageUnavailable");
        assert_non_null(strstr(diagnosis_message(fixture->subject.diagnosis), "no such thing"));
        assert_int_equal(fixture->told, 2);
}

static void each_look_is_twice_as_late_and_a_reason_is_told_once(void **state)
{
        struct fixture *fixture = *state;
        uint64_t now_ns = begin_ns, waited_ns = 0;

        diagnosis_begin(&fixture->subject, now_ns);
        for (unsigned i = 0; i < 10; i++) {
                uint64_t next_ns = go_on(fixture, now_ns);

                answer(find(&fixture->client, PODS), 200, NO_IMAGE);
                waited_ns = i == 0 ? NSEC_PER_SEC : MIN(2 * waited_ns, 60 * NSEC_PER_SEC);
                assert_int_equal(next_ns - now_ns, waited_ns);
                now_ns = next_ns;
        }
        assert_int_equal(fixture->told, 1);
        diagnosis_begin(&fixture->subject, now_ns); /* the next failure of the same wake */
        assert_int_equal(go_on(fixture, now_ns), now_ns + NSEC_PER_SEC);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "ImageUnavailable");
        answer(find(&fixture->client, PODS), 200, NO_IMAGE);
        assert_int_equal(fixture->told, 1);
}

static void what_the_api_server_does_not_tell_is_asked_for_again(void **state)
{
        struct fixture *fixture = *state;
        uint64_t next_ns;

        diagnosis_begin(&fixture->subject, begin_ns);
        next_ns = go_on(fixture, begin_ns);
        answer(find(&fixture->client, PODS), 503, "{}");
        assert_null(diagnosis_reason(fixture->subject.diagnosis));
        go_on(fixture, next_ns);
        answer(find(&fixture->client, PODS), 200, NO_IMAGE);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "ImageUnavailable");
}

static void a_refused_scale_is_the_reason_until_it_is_no_longer_refused(void **state)
{
        struct fixture *fixture = *state;
        uint64_t next_ns;

        fixture->subject.scale_problem = (char *)"forbidden";
        diagnosis_begin(&fixture->subject, begin_ns);
        next_ns = go_on(fixture, begin_ns);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "ScaleRefused");
        fixture->subject.scale_problem = NULL;
        go_on(fixture, next_ns);
        answer(find(&fixture->client, PODS), 200, NO_IMAGE);
        assert_string_equal(diagnosis_reason(fixture->subject.diagnosis), "ImageUnavailable");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(pods_that_tell_nothing_yet_are_looked_at_again, setup, teardown),
                cmocka_unit_test_setup_teardown(each_look_is_twice_as_late_and_a_reason_is_told_once, setup, teardown),
                cmocka_unit_test_setup_teardown(what_the_api_server_does_not_tell_is_asked_for_again, setup, teardown),
                cmocka_unit_test_setup_teardown(a_refused_scale_is_the_reason_until_it_is_no_longer_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
