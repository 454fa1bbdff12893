/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c (lines of waiting requests) and request.c (one of them) share.
 *
 * libcurl must not be called from its own callbacks, which is where data() and opened() are called from. So requests are only
 * put in line there, and cancelled ones are kept until libcurl has returned.
 */
#pragma once

#include <curl/curl.h>
#include <sys/queue.h>

#include "kube/buffer.h"
#include "kube/client.h"
#include "kube/credentials.h"
#include "kube/gunzip.h"
#include "kube/transport.h"

enum request_state {
        REQUEST_WAITING, /* in line */
        REQUEST_DELAYED, /* until resume_ns */
        REQUEST_RUNNING,
};

struct kube_request {
        TAILQ_ENTRY(kube_request) link; /* client->requests, in the order they came; or client->cancelled */
        struct kube_client *client;
        struct kube_request_callbacks callbacks;
        void *userdata;
        enum kube_verb verb;
        enum kube_priority priority;
        char resource[KUBE_RESOURCE_MAX];
        char *url;
        char *content_type;
        char *body;
        uint64_t deadline_ns, silence_ns;
        enum request_state state;
        sd_event_source *timer;
        bool cancelled;
        unsigned retries;
        bool token_retried;
        bool fresh_connection; /* the next try's */

        /* of the try that runs */
        struct transport *transport;
        CURL *easy;
        struct curl_slist *headers;
        char *token; /* it was sent with */
        uint64_t resume_ns, begun_ns, heard_ns;
        uint64_t opened_ns; /* 0: no answer 2xx yet */
        uint64_t retry_after_ns;
        int failed;                 /* by ourselves: what the request ends with */
        struct kube_gunzip *gunzip; /* NULL: the answer is not compressed */
        struct kube_buffer answer;
        char curl_message[CURL_ERROR_SIZE];
};

TAILQ_HEAD(request_queue, kube_request);
TAILQ_HEAD(listener_queue, kube_listener);

struct kube_client {
        sd_event *event;
        sd_event_source *again;
        char *base_url;
        char *namespace;
        struct curl_slist *connect_to;
        struct kube_credentials *credentials;
        struct transport *small, *large; /* lists and watches */
        struct request_queue requests, cancelled;
        size_t n_requests;
        struct listener_queue listeners;
        bool unreachable; /* no try has been answered since one found nobody there */
        struct kube_counters counters;
};

/* client.c */
void client_run_soon(struct kube_client *client);
void client_is_reachable(struct kube_client *client);

/* request.c */
int request_new(struct kube_client *client, const struct kube_request_settings *settings,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request);
struct kube_request *request_free(struct kube_request *request);
bool request_is_streamed(const struct kube_request *request);
void request_start(struct kube_request *request);
void request_stop(struct kube_request *request);       /* takes the try that runs out of libcurl */
void request_await_rest(struct kube_request *request); /* the headers of the answer are there */
void request_finished(struct kube_request *request, CURLcode result);

/* easy.c: what libcurl is told about one try. */
int request_prepare(struct kube_request *request);

/* answer.c: what it tells about one try. */
size_t request_on_header(char *line, size_t size, size_t count, void *userdata);
size_t request_on_body(char *data, size_t size, size_t count, void *userdata);
int request_error(const struct kube_request *request, CURLcode result);
void request_read_answer(struct kube_request *request, struct kube_reply *reply);
