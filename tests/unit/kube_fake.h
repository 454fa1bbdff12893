/* SPDX-License-Identifier: Apache-2.0 */
/* A client of an API server that the test is itself: reflectors and requests are real, and wait to be answered. For one test file
 * each, instead of src/kube/client.c.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include <cmocka.h>

#include "kube/client.h"

struct kube_request {
        struct kube_client *client;
        enum kube_verb verb;
        enum kube_priority priority;
        uint64_t deadline_ns;
        char *path;
        json_t *body;
        struct kube_request_callbacks callbacks;
        void *userdata;
        LIST_ENTRY(kube_request) of_all;
};

struct kube_client {
        sd_event *event;
        LIST_HEAD(, kube_request) requests;
};

int kube_client_request(struct kube_client *client, const struct kube_request_settings *settings,
                        const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        struct kube_request *request = calloc(1, sizeof(*request));

        request->client = client;
        request->verb = settings->verb;
        request->priority = settings->priority;
        request->deadline_ns = settings->deadline_ns;
        request->path = strdup(settings->path);
        request->body = json_deep_copy(settings->body);
        request->callbacks = *callbacks;
        request->userdata = userdata;
        LIST_INSERT_HEAD(&client->requests, request, of_all);
        if (ret_request)
                *ret_request = request;
        return 0;
}

static _unused_ void request_free(struct kube_request *request)
{
        LIST_REMOVE(request, of_all);
        free(request->path);
        json_decref(request->body);
        free(request);
}

struct kube_request *kube_request_cancel(struct kube_request *request)
{
        if (request)
                request_free(request);
        return NULL;
}

void kube_client_listen(struct kube_client *client, struct kube_listener *listener)
{
}

void kube_client_unlisten(struct kube_client *client, struct kube_listener *listener)
{
}

void kube_request_is_watch(struct kube_request *request, uint64_t silence_ns)
{
}

sd_event *kube_client_event(const struct kube_client *client)
{
        return client->event;
}

static _unused_ void run(struct kube_client *client)
{
        while (sd_event_run(client->event, 0) > 0)
                ;
}

static _unused_ struct kube_request *find(struct kube_client *client, const char *path)
{
        struct kube_request *request;

        LIST_FOREACH(request, &client->requests, of_all)
        if (strcmp(request->path, path) == 0)
                return request;
        return NULL;
}

/* Until it is asked for: the event loop has it to do. */
static _unused_ struct kube_request *await(struct kube_client *client, const char *path)
{
        struct kube_request *request;

        while (!(request = find(client, path)))
                assert_true(sd_event_run(client->event, 5000000) > 0);
        return request;
}

static _unused_ void answer(struct kube_request *request, unsigned code, const char *text)
{
        struct kube_client *client = request->client;
        json_t *body = json_loads(text, JSON_DECODE_ANY, NULL);
        struct kube_reply reply = { .status.code = code, .body = code < 300 ? body : NULL };
        struct kube_request_callbacks callbacks = request->callbacks;
        void *userdata = request->userdata;

        assert_non_null(body);
        if (code >= 300)
                snprintf(reply.status.message, sizeof(reply.status.message), "%s", text);
        request_free(request);
        callbacks.done(&reply, userdata);
        json_decref(body);
        run(client);
}

static _unused_ void event(struct kube_request *watch, const char *type, const char *object)
{
        _cleanup_(freep) char *line = NULL;
        int length = asprintf(&line, "{\"type\":\"%s\",\"object\":%s}\n", type, object);

        assert_int_equal(watch->callbacks.data(line, (size_t)length, watch->userdata), 0);
        run(watch->client);
}

static _unused_ void synced(struct kube_request *watch)
{
        event(watch, "BOOKMARK",
              "{\"metadata\":{\"resourceVersion\":\"100\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}");
}
