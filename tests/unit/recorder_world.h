/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's world: a client that the tests answer for and a clock that they move. For one test file each, instead of
 * src/kube/client.c.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/time.h"
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

static inline uint64_t the_time(void)
{
        return the_time_ns;
}

static inline int take(struct kube_client *client, enum kube_verb verb, const struct kube_object *object, const json_t *body,
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

static inline void answer(struct kube_client *client, unsigned code)
{
        struct kube_request request = client->request;
        struct kube_reply reply = { .error = code ? 0 : -ETIMEDOUT, .status.code = code };

        assert_true(client->pending);
        client->pending = false;
        client->request.body = NULL;
        request.callbacks.done(&reply, request.userdata);
        json_decref(request.body);
}

static inline const char *text_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static inline json_int_t count_sent(const struct kube_client *client)
{
        return json_integer_value(json_object_get(json_object_get(client->request.body, "series"), "count"));
}

static inline void assert_sent(const struct kube_client *client, enum kube_verb verb, json_int_t count)
{
        assert_true(client->pending);
        assert_int_equal(client->request.verb, verb);
        assert_int_equal(count_sent(client), count);
}

static inline int start(void **state)
{
        const struct kube_recorder_settings settings = { .controller = "lull.dev/lulld", .instance = "lulld-abc" };
        struct kube_client *client = calloc(1, sizeof(*client));

        assert_non_null(client);
        the_time_ns = 1000 * SECONDS;
        the_timer = NULL;
        assert_true(sd_event_new(&client->event) >= 0);
        assert_int_equal(kube_recorder_new(client, &settings, the_time, &client->recorder), 0);
        *state = client;
        return 0;
}

static inline int stop(void **state)
{
        struct kube_client *client = *state;

        kube_recorder_free(client->recorder);
        assert_false(client->pending);
        sd_event_unref(client->event);
        free(client);
        return 0;
}

/* Instead of libsystemd's: the recorder's timer goes by the tests' clock. */
int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
        the_timer = source;
        the_timer_due_ns = the_time_ns + usec * NSEC_PER_USEC;
        return 0;
}

static inline void pass(struct kube_client *client, uint64_t duration_ns)
{
        the_time_ns += duration_ns;
        if (!the_timer || the_time_ns < the_timer_due_ns)
                return;
        assert_true(sd_event_source_set_time(TAKE_PTR(the_timer), 0) >= 0);
        assert_true(sd_event_run(client->event, 10 * UINT64_C(1000000)) > 0);
}

static _unused_ const struct kube_reference web = {
        .api = "apps/v1", .kind = "Deployment", .namespace = "shop", .name = "web", .uid = "1234", .resource_version = "77"
};

static inline void record(struct kube_client *client, const char *reason)
{
        kube_recorder_event(client->recorder, &web, KUBE_EVENT_NORMAL, reason, "Wake", "woken for %s", "10.0.0.1");
}

static inline void record_about(struct kube_client *client, int object, const char *reason)
{
        char name[32];
        struct kube_reference about = { .api = "apps/v1", .kind = "Deployment", .namespace = "shop", .name = name };

        snprintf(name, sizeof(name), "web-%d", object);
        kube_recorder_event(client->recorder, &about, KUBE_EVENT_NORMAL, reason, "Wake", "woken");
}

#define WITH_RECORDER(test) cmocka_unit_test_setup_teardown(test, start, stop)
