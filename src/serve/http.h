/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server on the daemon's event loop (libmicrohttpd, no threads of its own).
 *
 * One struct http_server is one listening socket and its routes. Handlers answer before they return. Bounded: 64 connections, 8 KiB of
 * request headers, 64 KiB of body, 30 s of silence.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/macros.h"

struct http_server;
struct http_request;
struct event_log;

struct http_route {
        const char *method; /* "GET", "POST" */
        const char *path;   /* "/v1/policies/{}/why": {} stands for one segment, percent-decoded */
        void (*handle)(struct http_request *request, void *userdata);
};

/* @routes ends with a NULL method and must outlive the server. Unknown paths are answered 404, known ones with another method 405, both
 * as JSON {"error": {"message": …}}. Takes @listen_fd over. */
int http_server_new(sd_event *event, int listen_fd, const struct http_route *routes, void *userdata,
                    struct http_server **ret_server);
struct http_server *http_server_free(struct http_server *server);
DEFINE_CLEANUP(struct http_server, http_server_free)

/* Listening sockets, non-blocking and close-on-exec. The Unix socket has mode 0600; a stale one is replaced, a live one is -EADDRINUSE. */
int http_listen_unix(const char *path, int *ret_fd);
int http_listen_tcp(const char *address_and_port, int *ret_fd); /* "127.0.0.1:9474", "[::1]:9474"; -EINVAL for other text */

const char *http_request_segment(const struct http_request *request, size_t index);   /* what the index-th {} matched */
const char *http_request_query(const struct http_request *request, const char *name); /* or NULL */

/* Each handler calls exactly one of these once. @body is owned by the server afterwards, whatever happens. */
void http_reply_json(struct http_request *request, unsigned status, json_t *body);
void http_reply_text(struct http_request *request, unsigned status, const char *content_type, char *body);
void http_reply_error(struct http_request *request, unsigned status, const char *format, ...) _printf_(3, 4);
/* The events after sequence number @after, one JSON object a line, and then each new one as it happens, until the client leaves. */
void http_reply_event_stream(struct http_request *request, struct event_log *log, uint64_t after);
