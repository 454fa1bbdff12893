/* SPDX-License-Identifier: Apache-2.0 */
/* The event stream: a chunked answer without an end. While there is nothing to send its connection is suspended, and libmicrohttpd does
 * not look at it at all; a new event resumes it. So that a client that leaves meanwhile is noticed, the socket is watched here. */
#include <string.h>
#include <sys/epoll.h>

#include "serve/event_log.h"
#include "serve/http_private.h"

enum { BLOCK_BYTES = 4096 };

struct http_stream {
        LIST_ENTRY(http_stream) entry;
        struct http_server *server;
        struct MHD_Connection *connection;
        struct event_log *log;
        sd_event_source *hangup;
        uint64_t after;   /* the newest event that was put into a line */
        char *line;       /* the one being sent, or NULL */
        size_t line_sent; /* bytes of it */
        bool suspended;
        bool ended;
};

static void stream_resume(struct http_stream *stream)
{
        if (!stream->suspended)
                return;
        stream->suspended = false;
        MHD_resume_connection(stream->connection);
        http_server_run_soon(stream->server);
}

static void on_event(void *userdata)
{
        stream_resume(userdata);
}

static void stream_end(struct http_stream *stream)
{
        stream->ended = true;
        stream_resume(stream);
}

static int on_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        stream_end(userdata);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static void stream_free(void *userdata)
{
        struct http_stream *stream = userdata;

        LIST_REMOVE(stream, entry);
        event_log_unlisten(stream->log, on_event, stream);
        sd_event_source_disable_unref(stream->hangup);
        free(stream->line);
        free(stream);
}

/* Makes a line of the next event. Returns 1, 0 when there is none, or -ENOMEM. */
static int stream_next_line(struct http_stream *stream)
{
        const json_t *event = event_log_next(stream->log, stream->after);
        _cleanup_(freep) char *text = NULL;

        if (!event)
                return 0;
        text = json_dumps(event, JSON_COMPACT);
        if (!text || asprintf(&stream->line, "%s\n", text) < 0) {
                stream->line = NULL;
                return -ENOMEM;
        }
        stream->line_sent = 0;
        stream->after = (uint64_t)json_integer_value(json_object_get(event, "seq"));
        return 1;
}

static ssize_t stream_copy_line(struct http_stream *stream, char *buffer, size_t size)
{
        size_t rest = strlen(stream->line + stream->line_sent);
        size_t length = MIN(rest, size);

        memcpy(buffer, stream->line + stream->line_sent, length);
        stream->line_sent += length;
        if (length == rest) {
                free(stream->line);
                stream->line = NULL;
        }
        return (ssize_t)length;
}

static ssize_t on_room(void *userdata, uint64_t position, char *buffer, size_t size)
{
        struct http_stream *stream = userdata;

        if (!stream->ended && !stream->line && stream_next_line(stream) < 0)
                stream->ended = true;
        if (stream->ended)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (stream->line)
                return stream_copy_line(stream, buffer, size);

        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
        return 0;
}

static int stream_watch(struct http_stream *stream, sd_event *event)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(stream->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        if (!info)
                return -EOPNOTSUPP;
        /* The usual client closes: EPOLLRDHUP. Shutting down only the sending side is taken for that too. */
        return sd_event_add_io(event, &stream->hangup, info->connect_fd, EPOLLRDHUP, on_hangup, stream);
}

static int stream_new(struct http_request *request, struct event_log *log, uint64_t after, struct http_stream **ret_stream)
{
        struct http_stream *stream = calloc(1, sizeof(*stream));
        int r;

        if (!stream)
                return -ENOMEM;
        stream->server = request->server;
        stream->connection = request->connection;
        stream->log = log;
        stream->after = after;
        LIST_INSERT_HEAD(&request->server->streams, stream, entry);

        r = event_log_listen(log, on_event, stream);
        if (r == 0)
                r = stream_watch(stream, request->server->event);
        if (r < 0) {
                stream_free(stream);
                return r;
        }
        *ret_stream = stream;
        return 0;
}

void http_reply_event_stream(struct http_request *request, struct event_log *log, uint64_t after)
{
        struct MHD_Response *response;
        struct http_stream *stream;
        int r;

        r = stream_new(request, log, after, &stream);
        if (r == -ENOSPC) {
                http_reply_error(request, MHD_HTTP_SERVICE_UNAVAILABLE, "as many clients as possible follow the events already");
                return;
        }
        if (r < 0) {
                http_reply_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "the stream cannot be set up: %s", strerror(-r));
                return;
        }

        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_room, stream, stream_free);
        if (!response)
                stream_free(stream);
        http_reply(request, MHD_HTTP_OK, "application/x-ndjson", response);
}

void http_streams_end(struct http_server *server)
{
        struct http_stream *stream;

        LIST_FOREACH(stream, &server->streams, entry)
        stream_end(stream);
}
