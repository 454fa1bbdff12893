/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of an event: what is written of it, what its repetitions are, and what a failure costs. */
#include "unit/recorder_world.h"

static void an_event_says_all_that_the_api_demands(void **state)
{
        struct kube_client *client = *state;
        const json_t *body, *regarding;

        record(client, "Woken");
        assert_sent(client, KUBE_CREATE, 0);
        body = client->request.body;
        regarding = json_object_get(body, "regarding");
        assert_string_equal(client->request.namespace, "shop");
        assert_string_equal(client->request.name, "");
        assert_string_equal(text_of(body, "apiVersion"), "events.k8s.io/v1");
        assert_string_equal(text_of(body, "kind"), "Event");
        assert_string_equal(text_of(json_object_get(body, "metadata"), "namespace"), "shop");
        assert_int_equal(strlen(text_of(body, "eventTime")), strlen("2026-01-31T12:00:00.250000Z"));
        assert_string_equal(text_of(body, "reportingController"), "lull.dev/lulld");
        assert_string_equal(text_of(body, "reportingInstance"), "lulld-abc");
        assert_string_equal(text_of(body, "reason"), "Woken");
        assert_string_equal(text_of(body, "action"), "Wake");
        assert_string_equal(text_of(body, "type"), "Normal");
        assert_string_equal(text_of(body, "note"), "woken for 10.0.0.1");
        assert_string_equal(text_of(regarding, "apiVersion"), "apps/v1");
        assert_string_equal(text_of(regarding, "kind"), "Deployment");
        assert_string_equal(text_of(regarding, "namespace"), "shop");
        assert_string_equal(text_of(regarding, "name"), "web");
        assert_string_equal(text_of(regarding, "uid"), "1234");
        assert_string_equal(text_of(regarding, "resourceVersion"), "77");
        assert_null(json_object_get(body, "series"));
        answer(client, 201);
        assert_int_equal(kube_recorder_counters(client->recorder)->written, 1);
}

static void an_event_about_what_has_no_namespace_is_in_default(void **state)
{
        const struct kube_reference node = { .api = "v1", .kind = "Node", .name = "n1" };
        struct kube_client *client = *state;

        kube_recorder_event(client->recorder, &node, KUBE_EVENT_WARNING, "HooksMissing", "Attach", "no hooks");
        assert_string_equal(client->request.namespace, "default");
        assert_string_equal(text_of(json_object_get(client->request.body, "metadata"), "namespace"), "default");
        assert_string_equal(text_of(client->request.body, "type"), "Warning");
        assert_null(json_object_get(json_object_get(client->request.body, "regarding"), "namespace"));
        assert_null(json_object_get(json_object_get(client->request.body, "regarding"), "uid"));
        answer(client, 201);
}

static void no_two_events_have_the_same_name(void **state)
{
        struct kube_client *client = *state;
        char previous[256] = "";

        for (int i = 0; i < 20; i++) {
                char reason[32];
                const char *name;

                snprintf(reason, sizeof(reason), "Reason%d", i);
                record(client, reason);
                name = text_of(json_object_get(client->request.body, "metadata"), "name");
                assert_int_equal(strncmp(name, "lulld-abc.", strlen("lulld-abc.")), 0);
                assert_true(strcmp(name, previous) > 0);
                snprintf(previous, sizeof(previous), "%s", name);
                answer(client, 201);
        }
}

static void repetitions_become_a_series_told_once_at_first_and_then_once_a_minute(void **state)
{
        struct kube_client *client = *state;
        char name[256];

        record(client, "Woken");
        snprintf(name, sizeof(name), "%s", text_of(json_object_get(client->request.body, "metadata"), "name"));
        answer(client, 201);
        pass(client, SECONDS);
        assert_false(client->pending);

        record(client, "Woken");
        assert_sent(client, KUBE_PATCH, 2);
        assert_string_equal(client->request.name, name);
        assert_string_equal(client->request.namespace, "shop");
        assert_non_null(text_of(json_object_get(client->request.body, "series"), "lastObservedTime"));
        assert_int_equal(json_object_size(client->request.body), 1);
        answer(client, 200);

        for (int i = 0; i < 100; i++)
                record(client, "Woken");
        pass(client, 59 * SECONDS);
        assert_false(client->pending);
        pass(client, 2 * SECONDS);
        assert_sent(client, KUBE_PATCH, 102);
        answer(client, 200);
        record(client, "Woken");
        pass(client, 61 * SECONDS);
        assert_sent(client, KUBE_PATCH, 103);
        answer(client, 200);
        pass(client, 61 * SECONDS);
        assert_false(client->pending);
        assert_int_equal(kube_recorder_counters(client->recorder)->repeated, 102);
        assert_int_equal(kube_recorder_counters(client->recorder)->written, 4);
}

static void what_repeats_while_its_patch_is_under_way_waits_its_minute_too(void **state)
{
        struct kube_client *client = *state;

        record(client, "Woken");
        answer(client, 201);
        record(client, "Woken");
        record(client, "Woken");
        answer(client, 200);
        assert_false(client->pending);
        pass(client, 61 * SECONDS);
        assert_sent(client, KUBE_PATCH, 3);
        answer(client, 200);
}

static void what_repeats_while_its_event_waits_is_created_with_its_count(void **state)
{
        struct kube_client *client = *state;

        record(client, "First");
        for (int i = 0; i < 3; i++)
                record(client, "Second");
        record(client, "First");
        answer(client, 201);
        assert_sent(client, KUBE_CREATE, 3);
        answer(client, 201);
        assert_sent(client, KUBE_PATCH, 2);
        answer(client, 200);
        assert_false(client->pending);
}

static void a_series_ends_six_minutes_after_its_last_time(void **state)
{
        struct kube_client *client = *state;

        record(client, "Woken");
        answer(client, 201);
        pass(client, 359 * SECONDS);
        record(client, "Woken");
        assert_sent(client, KUBE_PATCH, 2);
        answer(client, 200);
        pass(client, 359 * SECONDS);
        record(client, "Woken");
        assert_sent(client, KUBE_PATCH, 3);
        answer(client, 200);
        the_time_ns += 360 * SECONDS; /* also where the timer is late */
        record(client, "Woken");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        pass(client, 361 * SECONDS);
        record(client, "Woken");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
}

static void what_differs_in_object_type_reason_or_action_is_another_event_but_not_in_version(void **state)
{
        struct kube_reference about = web;
        struct kube_client *client = *state;

        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "x");
        answer(client, 201);
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_WARNING, "A", "B", "x");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, "C", "B", "x");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, "A", "C", "x");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        about.resource_version = "78";
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "another note");
        assert_sent(client, KUBE_PATCH, 2);
        answer(client, 200);
        about.uid = "5678";
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "x");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
}

static void an_event_that_the_server_has_forgotten_is_created_anew_with_its_count(void **state)
{
        struct kube_client *client = *state;

        record(client, "Woken");
        answer(client, 201);
        record(client, "Woken");
        answer(client, 404);
        assert_sent(client, KUBE_CREATE, 2);
        answer(client, 201);
        assert_false(client->pending);
        assert_int_equal(kube_recorder_counters(client->recorder)->failed, 0);
}

static void a_write_that_fails_is_not_repeated_by_itself(void **state)
{
        struct kube_client *client = *state;

        record(client, "Woken");
        answer(client, 0);
        pass(client, 61 * SECONDS);
        assert_false(client->pending);
        record(client, "Woken");
        assert_sent(client, KUBE_CREATE, 2);
        answer(client, 404); /* a namespace that is gone */
        assert_false(client->pending);
        record(client, "Woken");
        assert_false(client->pending);
        pass(client, 61 * SECONDS);
        assert_sent(client, KUBE_CREATE, 3);
        answer(client, 201);
        assert_int_equal(kube_recorder_counters(client->recorder)->failed, 2);
}

static void a_client_that_takes_no_request_costs_events_and_nothing_else(void **state)
{
        struct kube_client *client = *state;

        client->refuses = -ENOBUFS;
        record(client, "First");
        assert_int_equal(kube_recorder_counters(client->recorder)->failed, 1);
        client->refuses = 0;
        record(client, "Second");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
}

static void freed_amid_a_request_it_is_never_called_back(void **state)
{
        struct kube_client *client = *state;

        record(client, "First");
        record(client, "Second");
        client->recorder = kube_recorder_free(client->recorder);
        assert_int_equal(client->cancelled, 1);
}

static void an_instance_that_events_cannot_be_named_after_is_refused(void **state)
{
        static const char *const wrong[] = { "", "Node", "a_b", "-a", "a.", "a..b", "a/b" };
        struct kube_client *client = *state;
        char longest[RECORDER_INSTANCE_MAX + 2] = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                struct kube_recorder_settings settings = { .controller = "lull.dev/lulld", .instance = wrong[i] };
                struct kube_recorder *recorder = NULL;

                assert_int_equal(kube_recorder_new(client, &settings, NULL, &recorder), -EINVAL);
                assert_null(recorder);
        }
        memset(longest, 'a', RECORDER_INSTANCE_MAX + 1);
        assert_int_equal(kube_recorder_new(client, &(struct kube_recorder_settings){ "c", longest }, NULL,
                                           &(struct kube_recorder *){ NULL }),
                         -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RECORDER(an_event_says_all_that_the_api_demands),
                WITH_RECORDER(an_event_about_what_has_no_namespace_is_in_default),
                WITH_RECORDER(no_two_events_have_the_same_name),
                WITH_RECORDER(repetitions_become_a_series_told_once_at_first_and_then_once_a_minute),
                WITH_RECORDER(what_repeats_while_its_patch_is_under_way_waits_its_minute_too),
                WITH_RECORDER(what_repeats_while_its_event_waits_is_created_with_its_count),
                WITH_RECORDER(a_series_ends_six_minutes_after_its_last_time),
                WITH_RECORDER(what_differs_in_object_type_reason_or_action_is_another_event_but_not_in_version),
                WITH_RECORDER(an_event_that_the_server_has_forgotten_is_created_anew_with_its_count),
                WITH_RECORDER(a_write_that_fails_is_not_repeated_by_itself),
                WITH_RECORDER(a_client_that_takes_no_request_costs_events_and_nothing_else),
                WITH_RECORDER(freed_amid_a_request_it_is_never_called_back),
                WITH_RECORDER(an_instance_that_events_cannot_be_named_after_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
