/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/time.h"
#include "serve/http_private.h"

enum {
        /* One pool a connection for the headers of a request and of its answer. */
        CONNECTION_MEMORY_BYTES = HTTP_HEADERS_MAX_BYTES + 4 * 1024,
        /* A body of unknown length over the limit is read on so that its sender sees the answer, but not past this. */
        BODY_DISCARD_BYTES = 16 * HTTP_BODY_MAX_BYTES,
        TIMER_ACCURACY_US = 1000,
};

static struct http_request *request_free(struct http_request *request)
{
        if (!request)
                return NULL;
        for (size_t i = 0; i < HTTP_SEGMENTS_MAX; i++)
                free(request->segments[i]);
        for (size_t i = 0; i < request->n_query; i++) {
                free(request->query[i].name);
                free(request->query[i].value);
        }
        free(request);
        return NULL;
}

/* Escapes are decoded by http_percent_decode(), which is strict: libmicrohttpd's own lets wrong ones and %00 through. */
static size_t leave_encoded(void *userdata, struct MHD_Connection *connection, char *text)
{
        return strlen(text);
}

static enum MHD_Result query_add(void *userdata, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct http_request *request = userdata;
        _cleanup_(freep) char *decoded_name = strdup(name);
        _cleanup_(freep) char *decoded_value = strdup(value ? value : "");

        if (request->n_query == HTTP_QUERY_MAX || !decoded_name || !decoded_value || http_percent_decode(decoded_name) < 0 ||
            http_percent_decode(decoded_value) < 0) {
                request->query_is_bad = true;
                return MHD_NO;
        }
        request->query[request->n_query].name = TAKE_PTR(decoded_name);
        request->query[request->n_query++].value = TAKE_PTR(decoded_value);
        return MHD_YES;
}

static struct http_request *request_new(struct http_server *server, struct MHD_Connection *connection)
{
        struct http_request *request = calloc(1, sizeof(*request));

        if (!request)
                return NULL;
        request->server = server;
        request->connection = connection;
        MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, query_add, request);
        return request;
}

static bool method_matches(const struct http_route *route, const char *method)
{
        if (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
                method = MHD_HTTP_METHOD_GET; /* libmicrohttpd leaves the body out */
        return strcmp(route->method, method) == 0;
}

static void reply_no_route(struct http_request *request, const char *method, const char *path, int matched)
{
        if (matched == -EINVAL)
                http_reply_error(request, MHD_HTTP_BAD_REQUEST, "%s has a percent sign that begins no valid escape", path);
        else if (matched == -ENOMEM)
                http_reply_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
        else if (matched == -EOPNOTSUPP)
                http_reply_error(request, MHD_HTTP_METHOD_NOT_ALLOWED, "%s does not take the method %s", path, method);
        else
                http_reply_error(request, MHD_HTTP_NOT_FOUND, "there is no %s here", path);
}

static void request_route(struct http_request *request, const char *method, const char *path)
{
        const struct http_server *server = request->server;
        int matched = -ENOENT;

        for (const struct http_route *route = server->routes; route->method; route++) {
                char *segments[HTTP_SEGMENTS_MAX];
                int r = http_path_match(route->path, path, segments);

                if (r < 0) {
                        if (r != -ENOENT)
                                matched = r;
                        continue;
                }
                if (method_matches(route, method)) {
                        memcpy(request->segments, segments, sizeof(segments));
                        route->handle(request, server->userdata);
                        return;
                }
                for (size_t i = 0; i < HTTP_SEGMENTS_MAX; i++)
                        free(segments[i]);
                matched = -EOPNOTSUPP;
        }
        reply_no_route(request, method, path, matched);
}

static bool body_is_announced_too_long(struct MHD_Connection *connection)
{
        const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

        return length && strtoull(length, NULL, 10) > HTTP_BODY_MAX_BYTES;
}

static void reply_too_long(struct http_request *request)
{
        http_reply_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is longer than %d bytes", HTTP_BODY_MAX_BYTES);
}

static void request_answer(struct http_request *request, const char *method, const char *path)
{
        if (request->body_bytes > HTTP_BODY_MAX_BYTES)
                reply_too_long(request);
        else if (request->query_is_bad)
                http_reply_error(request, MHD_HTTP_BAD_REQUEST, "the query has a wrong escape or more than %d parameters",
                                 HTTP_QUERY_MAX);
        else
                request_route(request, method, path);
}

/* libmicrohttpd calls this once with the headers, then for every piece of the body, and at last to have it answered. No request has a
 * body that means anything. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *body, size_t *body_size, void **state)
{
        struct http_request *request = *state;

        if (!request) {
                *state = request = request_new(userdata, connection);
                if (!request)
                        return MHD_NO;
                if (body_is_announced_too_long(connection)) {
                        reply_too_long(request);
                        return request->replied ? MHD_YES : MHD_NO;
                }
                return MHD_YES;
        }

        if (*body_size > 0) {
                request->body_bytes += *body_size;
                *body_size = 0;
                return request->body_bytes > BODY_DISCARD_BYTES ? MHD_NO : MHD_YES;
        }

        request_answer(request, method, path);
        return request->replied ? MHD_YES : MHD_NO;
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode code)
{
        *state = request_free(*state);
}

/* Asks to be called when libmicrohttpd next has something to do by itself; with no connection open that is never. */
static int timer_arm(struct http_server *server)
{
        MHD_UNSIGNED_LONG_LONG milliseconds;
        int r;

        if (MHD_get_timeout(server->daemon, &milliseconds) != MHD_YES)
                return sd_event_source_set_enabled(server->timer, SD_EVENT_OFF);

        r = sd_event_source_set_time_relative(server->timer, milliseconds * 1000);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(server->timer, SD_EVENT_ONESHOT);
}

void http_server_run_soon(struct http_server *server)
{
        sd_event_source_set_enabled(server->again, SD_EVENT_ONESHOT);
}

static bool server_is_full(const struct http_server *server)
{
        return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections >= HTTP_CONNECTIONS_MAX;
}

static int server_run(struct http_server *server)
{
        bool was_full = server_is_full(server);

        MHD_run(server->daemon);
        /* A full daemon stops listening; it listens again at the beginning of the run after the one that made room. */
        if (was_full && !server_is_full(server))
                http_server_run_soon(server);
        return timer_arm(server);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        return server_run(userdata);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        return server_run(userdata);
}

static int on_again(sd_event_source *source, void *userdata)
{
        return server_run(userdata);
}

static int server_attach(struct http_server *server)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (!info || info->epoll_fd < 0)
                return -EOPNOTSUPP;

        r = sd_event_add_io(server->event, &server->readable, info->epoll_fd, EPOLLIN, on_readable, server);
        if (r < 0)
                return r;
        r = sd_event_add_defer(server->event, &server->again, on_again, server);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(server->event, &server->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_timer, server);
        if (r < 0)
                return r;
        return timer_arm(server);
}

int http_server_new(sd_event *event, int listen_fd, const struct http_route *routes, void *userdata,
                    struct http_server **ret_server)
{
        _cleanup_(close_fdp) int fd = listen_fd;
        _cleanup_(http_server_freep) struct http_server *server = calloc(1, sizeof(*server));
        int r;

        if (!server)
                return -ENOMEM;
        server->event = sd_event_ref(event);
        server->routes = routes;
        server->userdata = userdata;
        LIST_INIT(&server->streams);

        server->daemon =
                MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
                                 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SILENCE_MAX_SECONDS,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_UNESCAPE_CALLBACK,
                                 leave_encoded, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_END);
        if (!server->daemon)
                return -EIO;
        (void)TAKE_FD(fd); /* the daemon's */

        r = server_attach(server);
        if (r < 0)
                return r;

        *ret_server = TAKE_PTR(server);
        return 0;
}

struct http_server *http_server_free(struct http_server *server)
{
        if (!server)
                return NULL;
        http_streams_end(server);
        if (server->daemon)
                MHD_stop_daemon(server->daemon);
        sd_event_source_disable_unref(server->readable);
        sd_event_source_disable_unref(server->timer);
        sd_event_source_disable_unref(server->again);
        sd_event_unref(server->event);
        free(server);
        return NULL;
}
