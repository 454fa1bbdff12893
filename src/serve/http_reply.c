/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "serve/http_private.h"

static void response_destroyp(struct MHD_Response **response)
{
        if (*response)
                MHD_destroy_response(*response);
}

void http_reply(struct http_request *request, unsigned status, const char *content_type, struct MHD_Response *response)
{
        _cleanup_(response_destroyp) struct MHD_Response *owned = response;

        /* Without a reply the connection is closed: the one answer that needs no memory. */
        if (!owned || MHD_add_response_header(owned, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) == MHD_NO)
                return;
        if (MHD_queue_response(request->connection, status, owned) == MHD_YES)
                request->replied = true;
}

void http_reply_text(struct http_request *request, unsigned status, const char *content_type, char *body)
{
        struct MHD_Response *response = NULL;

        if (body) {
                response = MHD_create_response_from_buffer_with_free_callback(strlen(body), body, free);
                if (!response)
                        free(body);
        }
        http_reply(request, status, content_type, response);
}

static char *json_line(json_t *body)
{
        _cleanup_(freep) char *text = NULL;
        char *line = NULL;

        if (!body)
                return NULL;
        text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        json_decref(body);
        if (!text || asprintf(&line, "%s\n", text) < 0)
                return NULL;
        return line;
}

static json_t *error_body(const char *message)
{
        return json_pack("{s:{s:s}}", "error", "message", message);
}

void http_reply_json(struct http_request *request, unsigned status, json_t *body)
{
        char *line = json_line(body);

        if (!line) {
                line = json_line(error_body("the answer could not be made: out of memory"));
                status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
        http_reply_text(request, status, "application/json", line);
}

void http_reply_error(struct http_request *request, unsigned status, const char *format, ...)
{
        _cleanup_(freep) char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&message, format, arguments) < 0)
                message = NULL;
        va_end(arguments);

        http_reply_json(request, status, message ? error_body(message) : NULL);
}

const char *http_request_segment(const struct http_request *request, size_t index)
{
        return index < HTTP_SEGMENTS_MAX ? request->segments[index] : NULL;
}

const char *http_request_query(const struct http_request *request, const char *name)
{
        for (size_t i = 0; i < request->n_query; i++)
                if (strcmp(request->query[i].name, name) == 0)
                        return request->query[i].value;
        return NULL;
}
