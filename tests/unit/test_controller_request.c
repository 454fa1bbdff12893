/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to what is written for a policy: what was of no use is not done again at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/controller_private.h"
#include "unit/kube_fake.h"

#define POLICY "/apis/lull.dev/v1alpha1/namespaces/shop/scaletozeros/web"

struct fixture {
        struct kube_client client;
        struct controller controller;
        struct known_policy *known;
        struct subject subject;
};

static json_t *policy_json(const char *version)
{
        return json_pack("{s:{s:s, s:s, s:s, s:s}, s:{s:{s:s, s:s, s:s}}}", "metadata", "namespace", "shop", "name", "web", "uid",
                         "p1", "resourceVersion", version, "spec", "target", "apiVersion", "apps/v1", "kind", "Deployment", "name",
                         "web");
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        json_t *object = policy_json("7");
        const char *field;

        assert_int_equal(known_policy_read(object, &fixture->known, &field), 0);
        json_decref(object);
        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        fixture->controller.event = fixture->client.event;
        fixture->controller.client = &fixture->client;
        TAILQ_INIT(&fixture->controller.due);
        TAILQ_INIT(&fixture->controller.waiting);
        fixture->subject.controller = &fixture->controller;
        fixture->subject.viewed = fixture->known;
        fixture->subject.key = (char *)"shop/web";
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        assert_true(LIST_EMPTY(&fixture->client.requests));
        known_policy_free(fixture->subject.own);
        known_policy_free(fixture->known);
        sd_event_unref(fixture->client.event);
        free(fixture);
        return 0;
}

static void written(struct fixture *fixture, const char *version)
{
        const struct kube_reply reply = { .status.code = 200, .body = policy_json(version) };

        request_begun(&fixture->subject);
        request_ended(&fixture->subject, &reply, "write its status");
        assert_false(fixture->subject.busy);
        json_decref((json_t *)reply.body);
}

static void what_changes_nothing_is_written_ever_later(void **state)
{
        struct fixture *fixture = *state;
        uint64_t first_ns;

        written(fixture, "7");
        first_ns = fixture->subject.retry_ns;
        assert_int_not_equal(first_ns, 0);
        written(fixture, "7");
        assert_true(fixture->subject.retry_ns > first_ns);
        assert_int_equal(fixture->subject.failures, 2);
        written(fixture, "8");
        assert_int_equal(fixture->subject.retry_ns, 0);
        assert_int_equal(fixture->subject.failures, 0);
        assert_string_equal(subject_known(&fixture->subject)->object->metadata.resource_version, "8");
}

/* What is deleted and loses its last finalizer is gone, and answered as it was. */
static void the_last_finalizer_is_not_taken_away_twice(void **state)
{
        struct fixture *fixture = *state;
        struct kube_reply reply = { .status.code = 200, .body = policy_json("7") };

        json_object_set_new(json_object_get(reply.body, "metadata"), "deletionTimestamp", json_string("2026-01-01T00:00:00Z"));
        request_begun(&fixture->subject);
        request_ended(&fixture->subject, &reply, "write its finalizer");
        assert_int_equal(fixture->subject.failures, 0);
        assert_int_equal(fixture->subject.retry_ns, 0);
        json_decref(reply.body);
}

/* A conflict that a read cannot explain would be had again at once. */
static void a_read_that_shows_nothing_newer_is_not_acted_on_at_once(void **state)
{
        static const struct kube_reply conflict = { .status = { .code = 409, .reason = "Conflict" } };
        struct fixture *fixture = *state;

        for (int i = 0; i < 2; i++) {
                json_t *there = policy_json(i ? "8" : "7");
                char *text = json_dumps(there, 0);

                request_begun(&fixture->subject);
                request_ended(&fixture->subject, &conflict, "write its status");
                fixture->subject.retry_ns = 0;
                answer(find(&fixture->client, POLICY), 200, text);
                assert_int_equal(fixture->subject.retry_ns == 0, i);
                json_decref(there);
                free(text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_changes_nothing_is_written_ever_later, setup, teardown),
                cmocka_unit_test_setup_teardown(the_last_finalizer_is_not_taken_away_twice, setup, teardown),
                cmocka_unit_test_setup_teardown(a_read_that_shows_nothing_newer_is_not_acted_on_at_once, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
