/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "kube/client_private.h"

enum { FAILURE_BODY_MAX = 64 * 1024 };

static unsigned answer_code(const struct kube_request *request)
{
        long code = 0;

        if (request->easy)
                curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &code);
        return (unsigned)code;
}

static bool is_ok(unsigned code)
{
        return code >= 200 && code < 300;
}

static void headers_over(struct kube_request *request)
{
        client_is_reachable(request->client);
        if (request->body)
                request_await_rest(request);
        if (!is_ok(answer_code(request)) || request->opened_ns > 0)
                return;
        request->opened_ns = now_monotonic_ns();
        if (request->verb == KUBE_WATCH)
                kube_counters_request(&request->client->counters, request->verb, request->resource, answer_code(request),
                                      request->opened_ns - request->begun_ns);
        if (request_is_streamed(request) && request->callbacks.opened)
                request->callbacks.opened(request->userdata);
}

/* Only seconds: the API server never sends a date. */
static void retry_after_read(struct kube_request *request, const char *value, size_t length)
{
        uint64_t seconds = 0;

        while (length > 0 && (*value == ' ' || *value == '\t')) {
                value++;
                length--;
        }
        for (; length > 0 && *value >= '0' && *value <= '9' && seconds < 100000; value++, length--)
                seconds = seconds * 10 + (uint64_t)(*value - '0');
        request->retry_after_ns = MIN(seconds * NSEC_PER_SEC, KUBE_RETRY_AFTER_MAX_NS);
}

/* Of another encoding than the one that was asked for, the body will not be JSON. */
static void content_encoding_read(struct kube_request *request, const char *value, size_t length)
{
        int r = 0;

        if (memmem(value, length, "gzip", strlen("gzip")) && !request->gunzip)
                r = kube_gunzip_new(&request->gunzip);
        if (r < 0)
                request->failed = r;
}

size_t request_on_header(char *line, size_t size, size_t count, void *userdata)
{
        static const char retry_after[] = "retry-after:", content_encoding[] = "content-encoding:";
        struct kube_request *request = userdata;
        size_t length = size * count;

        if (request->cancelled)
                return 0;
        request->heard_ns = now_monotonic_ns();
        if (length >= strlen("HTTP/") && strncmp(line, "HTTP/", strlen("HTTP/")) == 0)
                request->retry_after_ns = 0;
        else if (length > strlen(retry_after) && strncasecmp(line, retry_after, strlen(retry_after)) == 0)
                retry_after_read(request, line + strlen(retry_after), length - strlen(retry_after));
        else if (length > strlen(content_encoding) && strncasecmp(line, content_encoding, strlen(content_encoding)) == 0)
                content_encoding_read(request, line + strlen(content_encoding), length - strlen(content_encoding));
        else if (length <= 2 && (*line == '\r' || *line == '\n'))
                headers_over(request);
        return request->cancelled || request->failed < 0 ? 0 : length;
}

/* Decompressed. */
static int body_take(const char *data, size_t length, void *userdata)
{
        struct kube_request *request = userdata;
        int r;

        request->client->counters.bytes_received += length;
        if (request->opened_ns == 0)
                r = kube_buffer_append(&request->answer, data, length, FAILURE_BODY_MAX);
        else if (request_is_streamed(request))
                r = request->callbacks.data(data, length, request->userdata);
        else
                r = kube_buffer_append(&request->answer, data, length, KUBE_BODY_MAX);

        /* what a failure says further is not needed */
        if (r == -EMSGSIZE && request->opened_ns == 0)
                r = 0;
        return r < 0 || !request->cancelled ? r : -ECANCELED;
}

size_t request_on_body(char *data, size_t size, size_t count, void *userdata)
{
        struct kube_request *request = userdata;
        size_t length = size * count;
        int r;

        if (request->cancelled)
                return 0;
        request->heard_ns = now_monotonic_ns();
        r = request->gunzip ? kube_gunzip_feed(request->gunzip, data, length, body_take, request)
                            : body_take(data, length, request);
        if (r < 0)
                request->failed = r;
        return r < 0 || request->cancelled ? 0 : length;
}

int request_error(const struct kube_request *request, CURLcode result)
{
        if (request->failed < 0)
                return request->failed;

        switch (result) {
        case CURLE_OK:
                return request->gunzip && !kube_gunzip_is_whole(request->gunzip) ? -EPIPE : 0;
        case CURLE_COULDNT_CONNECT:
        case CURLE_COULDNT_RESOLVE_HOST:
                return -ECONNREFUSED;
        case CURLE_OPERATION_TIMEDOUT:
                return -ETIMEDOUT;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        case CURLE_BAD_CONTENT_ENCODING:
        case CURLE_WEIRD_SERVER_REPLY:
                return -EBADMSG;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CERTPROBLEM:
        case CURLE_SSL_ISSUER_ERROR:
                return -EKEYREJECTED;
        default:
                return -EPIPE;
        }
}

static void failure_read(struct kube_request *request, struct kube_reply *reply)
{
        json_t *object = request->answer.length > 0 ? json_loadb(request->answer.data, request->answer.length, 0, NULL) : NULL;

        kube_status_read(object, &reply->status);
        json_decref(object);
}

void request_read_answer(struct kube_request *request, struct kube_reply *reply)
{
        unsigned code = answer_code(request);

        if (reply->error < 0) {
                snprintf(reply->status.message, sizeof(reply->status.message), "%.200s",
                         *request->curl_message ? request->curl_message : strerror(-reply->error));
                return;
        }
        if (!is_ok(code)) {
                failure_read(request, reply);
                reply->status.code = code;
                if (request->retry_after_ns > 0)
                        reply->status.retry_after_ns = request->retry_after_ns;
                if (*reply->status.message == '\0')
                        snprintf(reply->status.message, sizeof(reply->status.message), "the server answered %u", code);
                return;
        }

        reply->status.code = code;
        if (request_is_streamed(request) || request->answer.length == 0)
                return;
        reply->body = json_loadb(request->answer.data, request->answer.length, JSON_ALLOW_NUL, NULL);
        if (!reply->body) {
                reply->error = -EBADMSG;
                snprintf(reply->status.message, sizeof(reply->status.message), "the server's answer is not JSON");
        }
}
