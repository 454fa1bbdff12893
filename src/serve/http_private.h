/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the HTTP server know of each other; nobody else includes this. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "serve/http.h"
#include "serve/http_path.h"

enum {
        HTTP_CONNECTIONS_MAX = 64,
        HTTP_HEADERS_MAX_BYTES = 8 * 1024,
        HTTP_BODY_MAX_BYTES = 64 * 1024,
        HTTP_SILENCE_MAX_SECONDS = 30,
        HTTP_QUERY_MAX = 8,
};

struct http_stream; /* one client of the event stream */

struct http_server {
        struct MHD_Daemon *daemon;
        sd_event *event;
        sd_event_source *readable; /* the daemon's epoll descriptor */
        sd_event_source *timer;    /* off while the daemon waits for nothing */
        sd_event_source *again;    /* runs the daemon once more, soon */
        const struct http_route *routes;
        void *userdata;
        LIST_HEAD(, http_stream) streams;
};

struct http_request {
        struct http_server *server;
        struct MHD_Connection *connection;
        char *segments[HTTP_SEGMENTS_MAX];
        struct {
                char *name, *value;
        } query[HTTP_QUERY_MAX];
        size_t n_query;
        bool query_is_bad;
        size_t body_bytes;
        bool replied;
};

/* Sends @response, which it takes over; NULL stands for a failed allocation. */
void http_reply(struct http_request *request, unsigned status, const char *content_type, struct MHD_Response *response);

/* Has the daemon run from the event loop, soon: it does not say by its epoll descriptor that a connection was resumed. */
void http_server_run_soon(struct http_server *server);

/* Wakes every client of the event stream for good, so that none is suspended when the daemon stops. */
void http_streams_end(struct http_server *server);
