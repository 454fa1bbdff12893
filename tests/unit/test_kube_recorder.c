/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder, with a client that the tests answer for and a clock that they move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "kube/note.h"
#include "kube/patch.h"
#include "kube/recorder.h"

#define SECONDS NSEC_PER_SEC

struct kube_request {
        enum kube_verb verb;
        char namespace[64], name[256];
        json_t *body;
        struct kube_request_callbacks callbacks;
        void *userdata;
};

struct kube_client {
        sd_event *event;
        struct kube_request request;
        bool pending;
        int refuses;
        unsigned cancelled;
        struct kube_recorder *recorder;
};

/* Neither the recorder's clock nor its timer hands on any userdata. */
static uint64_t the_time_ns;
static sd_event_source *the_timer; /* armed */
static uint64_t the_timer_due_ns;

static uint64_t the_time(void)
{
        return the_time_ns;
}

static int take(struct kube_client *client, enum kube_verb verb, const struct kube_object *object, const json_t *body,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        assert_false(client->pending); /* one at a time */
        assert_string_equal(object->api, "events.k8s.io/v1");
        assert_string_equal(object->resource, "events");
        if (client->refuses)
                return client->refuses;

        client->pending = true;
        client->request = (struct kube_request){ .verb = verb, .callbacks = *callbacks, .userdata = userdata };
        client->request.body = json_deep_copy(body);
        snprintf(client->request.namespace, sizeof(client->request.namespace), "%s", object->namespace);
        snprintf(client->request.name, sizeof(client->request.name), "%s", object->name ? object->name : "");
        *ret_request = &client->request;
        return 0;
}

int kube_create(struct kube_client *client, const struct kube_object *collection, const json_t *body,
                const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
                struct kube_request **ret_request)
{
        return take(client, KUBE_CREATE, collection, body, callbacks, userdata, ret_request);
}

int kube_patch(struct kube_client *client, const struct kube_object *object, enum kube_patch_type type, const json_t *body,
               const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
               struct kube_request **ret_request)
{
        assert_int_equal(type, KUBE_PATCH_MERGE);
        return take(client, KUBE_PATCH, object, body, callbacks, userdata, ret_request);
}

struct kube_request *kube_request_cancel(struct kube_request *request)
{
        if (request) {
                struct kube_client *client = container_of(request, struct kube_client, request);

                assert_true(client->pending);
                client->pending = false;
                client->cancelled++;
                json_decref(request->body);
        }
        return NULL;
}

sd_event *kube_client_event(const struct kube_client *client)
{
        return client->event;
}

static void answer(struct kube_client *client, unsigned code)
{
        struct kube_request request = client->request;
        struct kube_reply reply = { .error = code ? 0 : -ETIMEDOUT, .status.code = code };

        assert_true(client->pending);
        client->pending = false;
        client->request.body = NULL;
        request.callbacks.done(&reply, request.userdata);
        json_decref(request.body);
}

static const char *text_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static json_int_t count_sent(const struct kube_client *client)
{
        return json_integer_value(json_object_get(json_object_get(client->request.body, "series"), "count"));
}

static void assert_sent(const struct kube_client *client, enum kube_verb verb, json_int_t count)
{
        assert_true(client->pending);
        assert_int_equal(client->request.verb, verb);
        assert_int_equal(count_sent(client), count);
}

static void start(struct kube_client *client)
{
        const struct kube_recorder_settings settings = { .controller = "lull.dev/lulld", .instance = "lulld-abc" };

        the_time_ns = 1000 * SECONDS;
        the_timer = NULL;
        *client = (struct kube_client){ 0 };
        assert_true(sd_event_new(&client->event) >= 0);
        assert_int_equal(kube_recorder_new(client, &settings, the_time, &client->recorder), 0);
}

static void stop(struct kube_client *client)
{
        kube_recorder_free(client->recorder);
        assert_false(client->pending);
        sd_event_unref(client->event);
}

/* Instead of libsystemd's: the recorder's timer goes by the tests' clock. */
int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
        the_timer = source;
        the_timer_due_ns = the_time_ns + usec * NSEC_PER_USEC;
        return 0;
}

static void pass(struct kube_client *client, uint64_t duration_ns)
{
        the_time_ns += duration_ns;
        if (!the_timer || the_time_ns < the_timer_due_ns)
                return;
        assert_true(sd_event_source_set_time(TAKE_PTR(the_timer), 0) >= 0);
        assert_true(sd_event_run(client->event, 10 * UINT64_C(1000000)) > 0);
}

static const struct kube_reference web = {
        .api = "apps/v1", .kind = "Deployment", .namespace = "shop", .name = "web", .uid = "1234", .resource_version = "77"
};

static void record(struct kube_client *client, const char *reason)
{
        kube_recorder_event(client->recorder, &web, KUBE_EVENT_NORMAL, reason, "Wake", "woken for %s", "10.0.0.1");
}

static void an_event_says_all_that_the_api_demands(void **state)
{
        struct kube_client client;
        const json_t *body, *regarding;

        start(&client);
        record(&client, "Woken");
        assert_sent(&client, KUBE_CREATE, 0);
        body = client.request.body;
        regarding = json_object_get(body, "regarding");
        assert_string_equal(client.request.namespace, "shop");
        assert_string_equal(client.request.name, "");
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
        answer(&client, 201);
        assert_int_equal(kube_recorder_counters(client.recorder)->written, 1);
        stop(&client);
}

static void an_event_about_what_has_no_namespace_is_in_default(void **state)
{
        const struct kube_reference node = { .api = "v1", .kind = "Node", .name = "n1" };
        struct kube_client client;

        start(&client);
        kube_recorder_event(client.recorder, &node, KUBE_EVENT_WARNING, "HooksMissing", "Attach", "no hooks");
        assert_string_equal(client.request.namespace, "default");
        assert_string_equal(text_of(json_object_get(client.request.body, "metadata"), "namespace"), "default");
        assert_string_equal(text_of(client.request.body, "type"), "Warning");
        assert_null(json_object_get(json_object_get(client.request.body, "regarding"), "namespace"));
        assert_null(json_object_get(json_object_get(client.request.body, "regarding"), "uid"));
        answer(&client, 201);
        stop(&client);
}

static void no_two_events_have_the_same_name(void **state)
{
        struct kube_client client;
        char previous[256] = "";

        start(&client);
        for (int i = 0; i < 20; i++) {
                char reason[32];
                const char *name;

                snprintf(reason, sizeof(reason), "Reason%d", i);
                record(&client, reason);
                name = text_of(json_object_get(client.request.body, "metadata"), "name");
                assert_int_equal(strncmp(name, "lulld-abc.", strlen("lulld-abc.")), 0);
                assert_true(strcmp(name, previous) > 0);
                snprintf(previous, sizeof(previous), "%s", name);
                answer(&client, 201);
        }
        stop(&client);
}

static void repetitions_become_a_series_told_once_at_first_and_then_once_a_minute(void **state)
{
        struct kube_client client;
        char name[256];

        start(&client);
        record(&client, "Woken");
        snprintf(name, sizeof(name), "%s", text_of(json_object_get(client.request.body, "metadata"), "name"));
        answer(&client, 201);
        pass(&client, SECONDS);
        assert_false(client.pending);

        record(&client, "Woken");
        assert_sent(&client, KUBE_PATCH, 2);
        assert_string_equal(client.request.name, name);
        assert_string_equal(client.request.namespace, "shop");
        assert_non_null(text_of(json_object_get(client.request.body, "series"), "lastObservedTime"));
        assert_int_equal(json_object_size(client.request.body), 1);
        answer(&client, 200);

        for (int i = 0; i < 100; i++)
                record(&client, "Woken");
        pass(&client, 59 * SECONDS);
        assert_false(client.pending);
        pass(&client, 2 * SECONDS);
        assert_sent(&client, KUBE_PATCH, 102);
        answer(&client, 200);
        record(&client, "Woken");
        pass(&client, 61 * SECONDS);
        assert_sent(&client, KUBE_PATCH, 103);
        answer(&client, 200);
        pass(&client, 61 * SECONDS);
        assert_false(client.pending);
        assert_int_equal(kube_recorder_counters(client.recorder)->repeated, 102);
        assert_int_equal(kube_recorder_counters(client.recorder)->written, 4);
        stop(&client);
}

static void what_repeats_while_its_patch_is_under_way_waits_its_minute_too(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "Woken");
        answer(&client, 201);
        record(&client, "Woken");
        record(&client, "Woken");
        answer(&client, 200);
        assert_false(client.pending);
        pass(&client, 61 * SECONDS);
        assert_sent(&client, KUBE_PATCH, 3);
        answer(&client, 200);
        stop(&client);
}

static void what_repeats_while_its_event_waits_is_created_with_its_count(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "First");
        for (int i = 0; i < 3; i++)
                record(&client, "Second");
        record(&client, "First");
        answer(&client, 201);
        assert_sent(&client, KUBE_CREATE, 3);
        answer(&client, 201);
        assert_sent(&client, KUBE_PATCH, 2);
        answer(&client, 200);
        assert_false(client.pending);
        stop(&client);
}

static void a_series_ends_six_minutes_after_its_last_time(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "Woken");
        answer(&client, 201);
        pass(&client, 359 * SECONDS);
        record(&client, "Woken");
        assert_sent(&client, KUBE_PATCH, 2);
        answer(&client, 200);
        pass(&client, 359 * SECONDS);
        record(&client, "Woken");
        assert_sent(&client, KUBE_PATCH, 3);
        answer(&client, 200);
        the_time_ns += 360 * SECONDS; /* also where the timer is late */
        record(&client, "Woken");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        pass(&client, 361 * SECONDS);
        record(&client, "Woken");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        stop(&client);
}

static void what_differs_in_object_type_reason_or_action_is_another_event_but_not_in_version(void **state)
{
        struct kube_reference about = web;
        struct kube_client client;

        start(&client);
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "x");
        answer(&client, 201);
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_WARNING, "A", "B", "x");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_NORMAL, "C", "B", "x");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_NORMAL, "A", "C", "x");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        about.resource_version = "78";
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "another note");
        assert_sent(&client, KUBE_PATCH, 2);
        answer(&client, 200);
        about.uid = "5678";
        kube_recorder_event(client.recorder, &about, KUBE_EVENT_NORMAL, "A", "B", "x");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        stop(&client);
}

static void an_event_that_the_server_has_forgotten_is_created_anew_with_its_count(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "Woken");
        answer(&client, 201);
        record(&client, "Woken");
        answer(&client, 404);
        assert_sent(&client, KUBE_CREATE, 2);
        answer(&client, 201);
        assert_false(client.pending);
        assert_int_equal(kube_recorder_counters(client.recorder)->failed, 0);
        stop(&client);
}

static void a_write_that_fails_is_not_repeated_by_itself(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "Woken");
        answer(&client, 0);
        pass(&client, 61 * SECONDS);
        assert_false(client.pending);
        record(&client, "Woken");
        assert_sent(&client, KUBE_CREATE, 2);
        answer(&client, 404); /* a namespace that is gone */
        assert_false(client.pending);
        record(&client, "Woken");
        assert_false(client.pending);
        pass(&client, 61 * SECONDS);
        assert_sent(&client, KUBE_CREATE, 3);
        answer(&client, 201);
        assert_int_equal(kube_recorder_counters(client.recorder)->failed, 2);
        stop(&client);
}

static void a_client_that_takes_no_request_costs_events_and_nothing_else(void **state)
{
        struct kube_client client;

        start(&client);
        client.refuses = -ENOBUFS;
        record(&client, "First");
        assert_int_equal(kube_recorder_counters(client.recorder)->failed, 1);
        client.refuses = 0;
        record(&client, "Second");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        stop(&client);
}

static void record_about(struct kube_client *client, int object, const char *reason)
{
        char name[32];
        struct kube_reference about = { .api = "apps/v1", .kind = "Deployment", .namespace = "shop", .name = name };

        snprintf(name, sizeof(name), "web-%d", object);
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, reason, "Wake", "woken");
}

static void events_past_those_that_may_wait_are_dropped_and_counted(void **state)
{
        struct kube_client client;

        start(&client);
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX + 10; i++)
                record_about(&client, i, "Woken");
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 10);
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                answer(&client, 201);
        assert_false(client.pending);
        assert_int_equal(kube_recorder_counters(client.recorder)->written, 1 + RECORDER_WAITING_MAX);
        stop(&client);
}

static void repetitions_that_find_the_line_full_are_told_later(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "Woken");
        answer(&client, 201);
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                record_about(&client, i, "Woken");
        record(&client, "Woken");
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                answer(&client, 201);
        assert_false(client.pending);
        pass(&client, 61 * SECONDS);
        assert_sent(&client, KUBE_PATCH, 2);
        answer(&client, 200);
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 0);
        stop(&client);
}

static void one_object_cannot_spend_what_belongs_to_another(void **state)
{
        struct kube_client client;

        start(&client);
        for (int i = 0; i < RECORDER_OBJECT_BURST + 5; i++) {
                char reason[32];

                snprintf(reason, sizeof(reason), "Reason%d", i);
                record_about(&client, 1, reason);
                if (client.pending)
                        answer(&client, 201);
        }
        assert_int_equal(kube_recorder_counters(client.recorder)->written, RECORDER_OBJECT_BURST);
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 5);
        record_about(&client, 2, "Woken");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);

        the_time_ns += 299 * SECONDS;
        record_about(&client, 1, "Late");
        assert_false(client.pending);
        the_time_ns += SECONDS;
        record_about(&client, 1, "Late");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        record_about(&client, 1, "Later");
        assert_false(client.pending);
        stop(&client);
}

static void past_the_series_that_may_be_known_the_least_recently_used_is_forgotten(void **state)
{
        struct kube_client client;

        start(&client);
        for (int i = 0; i < RECORDER_SERIES_MAX; i++) {
                record_about(&client, i, "Woken");
                answer(&client, 201);
        }
        record_about(&client, 0, "Woken"); /* used: 1 is the oldest now */
        answer(&client, 200);
        record_about(&client, RECORDER_SERIES_MAX, "Woken");
        answer(&client, 201);
        record_about(&client, 0, "Woken");
        assert_false(client.pending); /* known, and patched a moment ago */
        record_about(&client, 1, "Woken");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 0);
        stop(&client);
}

static void a_series_whose_write_is_under_way_is_not_forgotten(void **state)
{
        struct kube_client client;

        start(&client);
        record_about(&client, 0, "Woken");
        answer(&client, 201);
        for (int i = 1; i < RECORDER_SERIES_MAX; i++) {
                record_about(&client, i, "Woken");
                answer(&client, 201);
                record_about(&client, i, "Woken");
                answer(&client, 200);
        }
        record_about(&client, 0, "Woken");
        for (int i = 1; i < RECORDER_SERIES_MAX; i++)
                record_about(&client, i, "Woken");
        record_about(&client, RECORDER_SERIES_MAX, "Woken");
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 1); /* the third of 1 */
        answer(&client, 200);
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        stop(&client);
}

static void past_the_objects_that_may_be_known_the_least_recently_used_may_have_its_burst_again(void **state)
{
        struct kube_client client;
        char reason[32];

        start(&client);
        for (int i = 0; i < RECORDER_OBJECT_BURST; i++) {
                snprintf(reason, sizeof(reason), "Reason%d", i);
                record_about(&client, 0, reason);
                answer(&client, 201);
        }
        for (int i = 1; i <= RECORDER_OBJECTS_MAX; i++) {
                record_about(&client, i, "Woken");
                answer(&client, 201);
        }
        record_about(&client, 0, "Again");
        assert_sent(&client, KUBE_CREATE, 0);
        answer(&client, 201);
        stop(&client);
}

static void what_a_forgotten_series_had_not_told_is_counted(void **state)
{
        struct kube_client client;

        start(&client);
        for (int i = 0; i < 4; i++) {
                record_about(&client, 0, "Woken");
                if (client.pending)
                        answer(&client, 200);
        }
        for (int i = 1; i <= RECORDER_SERIES_MAX; i++) {
                record_about(&client, i, "Woken");
                answer(&client, 201);
        }
        assert_int_equal(kube_recorder_counters(client.recorder)->dropped, 2);
        stop(&client);
}

static void freed_amid_a_request_it_is_never_called_back(void **state)
{
        struct kube_client client;

        start(&client);
        record(&client, "First");
        record(&client, "Second");
        stop(&client);
        assert_int_equal(client.cancelled, 1);
}

static void an_instance_that_events_cannot_be_named_after_is_refused(void **state)
{
        static const char *const wrong[] = { "", "Node", "a_b", "-a", "a.", "a..b", "a/b" };
        struct kube_client client;
        char longest[RECORDER_INSTANCE_MAX + 2] = { 0 };

        start(&client);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                struct kube_recorder_settings settings = { .controller = "lull.dev/lulld", .instance = wrong[i] };
                struct kube_recorder *recorder = NULL;

                assert_int_equal(kube_recorder_new(&client, &settings, NULL, &recorder), -EINVAL);
                assert_null(recorder);
        }
        memset(longest, 'a', RECORDER_INSTANCE_MAX + 1);
        assert_int_equal(kube_recorder_new(&client, &(struct kube_recorder_settings){ "c", longest }, NULL,
                                           &(struct kube_recorder *){ NULL }),
                         -EINVAL);
        stop(&client);
}

static char *format(char note[static NOTE_MAX + 1], const char *text, ...) _printf_(2, 3);
static char *format(char note[static NOTE_MAX + 1], const char *text, ...)
{
        va_list arguments;

        va_start(arguments, text);
        note_format(note, text, arguments);
        va_end(arguments);
        return note;
}

static void a_note_is_cut_before_a_character_and_only_where_it_must(void **state)
{
        char note[NOTE_MAX + 1];

        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX, "x")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX + 1, "x")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX, "ä")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*sä", NOTE_MAX - 1, "x")), NOTE_MAX - 1);
        assert_int_equal(strlen(format(note, "%*s…", NOTE_MAX - 2, "x")), NOTE_MAX - 2);
        assert_int_equal(strlen(format(note, "%*s😀", NOTE_MAX - 3, "x")), NOTE_MAX - 3);
        assert_int_equal(strlen(format(note, "%*s😀yz", NOTE_MAX - 4, "x")), NOTE_MAX);
        assert_string_equal(format(note, "%s", ""), "");
}

static void what_is_no_utf8_becomes_a_question_mark(void **state)
{
        char note[NOTE_MAX + 1];

        assert_string_equal(format(note, "äö…😀"), "äö…😀");
        assert_string_equal(format(note, "a%sb", "\xff"), "a?b");
        assert_string_equal(format(note, "a%sb", "\xc3"), "a?b");
        assert_string_equal(format(note, "%s", "\xc0\xaf"), "??");           /* overlong */
        assert_string_equal(format(note, "%s", "\xe0\x9f\xbf"), "???");      /* overlong */
        assert_string_equal(format(note, "%s", "\xed\xa0\x80"), "???");      /* a surrogate */
        assert_string_equal(format(note, "%s", "\xf0\x8f\xbf\xbf"), "????"); /* overlong */
        assert_string_equal(format(note, "%s", "\xf4\x90\x80\x80"), "????"); /* past the last */
        assert_string_equal(format(note, "%s", "\xf0\x9f\x98"), "???");      /* cut off */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_event_says_all_that_the_api_demands),
                cmocka_unit_test(an_event_about_what_has_no_namespace_is_in_default),
                cmocka_unit_test(no_two_events_have_the_same_name),
                cmocka_unit_test(repetitions_become_a_series_told_once_at_first_and_then_once_a_minute),
                cmocka_unit_test(what_repeats_while_its_patch_is_under_way_waits_its_minute_too),
                cmocka_unit_test(what_repeats_while_its_event_waits_is_created_with_its_count),
                cmocka_unit_test(a_series_ends_six_minutes_after_its_last_time),
                cmocka_unit_test(what_differs_in_object_type_reason_or_action_is_another_event_but_not_in_version),
                cmocka_unit_test(an_event_that_the_server_has_forgotten_is_created_anew_with_its_count),
                cmocka_unit_test(a_write_that_fails_is_not_repeated_by_itself),
                cmocka_unit_test(a_client_that_takes_no_request_costs_events_and_nothing_else),
                cmocka_unit_test(events_past_those_that_may_wait_are_dropped_and_counted),
                cmocka_unit_test(repetitions_that_find_the_line_full_are_told_later),
                cmocka_unit_test(one_object_cannot_spend_what_belongs_to_another),
                cmocka_unit_test(past_the_series_that_may_be_known_the_least_recently_used_is_forgotten),
                cmocka_unit_test(a_series_whose_write_is_under_way_is_not_forgotten),
                cmocka_unit_test(past_the_objects_that_may_be_known_the_least_recently_used_may_have_its_burst_again),
                cmocka_unit_test(what_a_forgotten_series_had_not_told_is_counted),
                cmocka_unit_test(freed_amid_a_request_it_is_never_called_back),
                cmocka_unit_test(an_instance_that_events_cannot_be_named_after_is_refused),
                cmocka_unit_test(a_note_is_cut_before_a_character_and_only_where_it_must),
                cmocka_unit_test(what_is_no_utf8_becomes_a_question_mark),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
