/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "kube/client_private.h"

enum {
        CONNECT_MS_MAX = 10 * 1000,
        /* A peer that acknowledges nothing for this long is gone; it also bounds keepalive (tcp(7), TCP_USER_TIMEOUT). */
        UNACKNOWLEDGED_MS_MAX = 20 * 1000,
        KEEPALIVE_IDLE_SECONDS = 15,
        KEEPALIVE_INTERVAL_SECONDS = 5,
        POOL_SECONDS_MAX = 3600,
};
static_assert(KEEPALIVE_IDLE_SECONDS + UNACKNOWLEDGED_MS_MAX / 1000 <= KUBE_SILENCE_SECONDS, "noticed in time");

static int on_new_socket(void *userdata, curl_socket_t fd, curlsocktype purpose)
{
        struct kube_client *client = userdata;
        unsigned milliseconds = UNACKNOWLEDGED_MS_MAX;

        client->counters.connections++;
        return setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds)) < 0 ? CURL_SOCKOPT_ERROR
                                                                                                      : CURL_SOCKOPT_OK;
}

static int header_add(struct kube_request *request, const char *name, const char *value)
{
        _cleanup_(freep) char *line = NULL;
        struct curl_slist *headers;

        if (asprintf(&line, "%s: %s", name, value) < 0) {
                line = NULL;
                return -ENOMEM;
        }
        headers = curl_slist_append(request->headers, line);
        explicit_bzero(line, strlen(line));
        if (!headers)
                return -ENOMEM;
        request->headers = headers;
        return 0;
}

static int set_headers(struct kube_request *request)
{
        const char *token = kube_credentials_token(request->client->credentials);
        _cleanup_(freep) char *bearer = NULL;
        int r = header_add(request, "Accept", "application/json");

        /* decompressed by gunzip.h, not by libcurl */
        if (r >= 0)
                r = header_add(request, "Accept-Encoding", "gzip");
        if (r >= 0 && token) {
                request->token = strdup(token);
                if (!request->token || asprintf(&bearer, "Bearer %s", token) < 0)
                        return -ENOMEM;
                r = header_add(request, "Authorization", bearer);
                explicit_bzero(bearer, strlen(bearer));
        }
        if (r >= 0 && request->content_type)
                r = header_add(request, "Content-Type", request->content_type);
        /* no waiting for "100 Continue" */
        if (r >= 0 && request->body)
                r = header_add(request, "Expect", "");
        if (r >= 0)
                curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers);
        return r;
}

static int set_blob(CURL *easy, CURLoption option, const char *text)
{
        struct curl_blob blob = { .data = (char *)text, .len = text ? strlen(text) : 0, .flags = CURL_BLOB_COPY };

        if (!text)
                return 0;
        return curl_easy_setopt(easy, option, &blob) == CURLE_OK ? 0 : -ENOMEM;
}

/* As blobs rather than files: libcurl reuses a connection only for requests with the same contents then. */
static int set_tls(struct kube_request *request)
{
        const struct kube_credentials *credentials = request->client->credentials;
        CURL *easy = request->easy;
        int r;

        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
        curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        r = set_blob(easy, CURLOPT_CAINFO_BLOB, kube_credentials_ca(credentials));
        if (r >= 0)
                r = set_blob(easy, CURLOPT_SSLCERT_BLOB, kube_credentials_certificate(credentials));
        if (r >= 0)
                r = set_blob(easy, CURLOPT_SSLKEY_BLOB, kube_credentials_key(credentials));
        return r;
}

static void set_method(struct kube_request *request)
{
        static const char *const methods[] = {
                [KUBE_CREATE] = "POST", [KUBE_UPDATE] = "PUT", [KUBE_PATCH] = "PATCH", [KUBE_DELETE] = "DELETE"
        };
        CURL *easy = request->easy;

        if (request->verb == KUBE_GET || request->verb == KUBE_LIST || request->verb == KUBE_WATCH)
                return;
        if (request->body) {
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(request->body));
        }
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, methods[request->verb]);
}

static void set_connection(struct kube_request *request)
{
        /* RFC 7540, section 5.3; servers are free to ignore it */
        static const long weights[] = {
                [KUBE_PRIORITY_WAKE] = 256, [KUBE_PRIORITY_NORMAL] = 64, [KUBE_PRIORITY_LIST] = 1, [KUBE_PRIORITY_WATCH] = 128
        };
        CURL *easy = request->easy;

        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        curl_easy_setopt(easy, CURLOPT_STREAM_WEIGHT, weights[request->priority]);
        /* a wake would rather have a connection of its own than wait until another's turns out to be shareable */
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, request->priority == KUBE_PRIORITY_WAKE ? 0L : 1L);
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->fresh_connection ? 1L : 0L);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS_MAX);
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)POOL_SECONDS_MAX);
        curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_SECONDS);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_SECONDS);
        curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
        curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, request->client);
        if (request->client->connect_to)
                curl_easy_setopt(easy, CURLOPT_CONNECT_TO, request->client->connect_to);
}

static void set_callbacks(struct kube_request *request)
{
        CURL *easy = request->easy;

        curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, request_on_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, request_on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->curl_message);
}

/* The first credential file that cannot be read fails the request, and its message says which. */
static int refresh_credentials(struct kube_request *request)
{
        const char *file = NULL;
        int r = kube_credentials_refresh(request->client->credentials, now_monotonic_ns(), &file);

        if (r < 0)
                snprintf(request->curl_message, sizeof(request->curl_message), "%.200s cannot be read: %s", file, strerror(-r));
        return r;
}

int request_prepare(struct kube_request *request)
{
        int r = refresh_credentials(request);

        if (r < 0)
                return r;
        request->easy = curl_easy_init();
        if (!request->easy)
                return -ENOMEM;

        curl_easy_setopt(request->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(request->easy, CURLOPT_PROTOCOLS_STR, "https");
        curl_easy_setopt(request->easy, CURLOPT_USERAGENT, "lull/" LULL_VERSION);
        if (curl_easy_setopt(request->easy, CURLOPT_URL, request->url) != CURLE_OK)
                return -ENOMEM;
        set_method(request);
        set_connection(request);
        set_callbacks(request);
        r = set_tls(request);
        return r < 0 ? r : set_headers(request);
}
