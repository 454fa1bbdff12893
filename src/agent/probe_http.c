/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe_http.h"

#include <string.h>
#include <strings.h>

#include "base/time.h"

/* The kubelet's name first, because applications tell probes by it and keep them out of logs and logins. */
#define USER_AGENT "kube-probe/1.37 (lull/" LULL_VERSION ")"

enum {
        BODY_MAX = 10 * 1024,      /* the kubelet's maxRespBodyLength */
        REDIRECTS_MAX = 9,         /* the kubelet's RedirectChecker() ends at the tenth */
        DEFAULT_TIMEOUT_MS = 1000, /* timeoutSeconds, where nothing is said */
        PROBLEM_MAX = CURL_ERROR_SIZE + 64,
};

struct probe_http {
        struct transport *transport;
        CURL *easy;
        struct curl_slist *headers;
        char *url, *host; /* host: of the URL, as libcurl writes it */
        probe_http_ended ended;
        void *userdata;
        uint64_t timeout_ns;
        bool running;

        /* of the attempt */
        uint64_t begun_ns;
        unsigned redirects;
        size_t body;
        char curl_message[CURL_ERROR_SIZE];
};

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
        struct probe_http *http = userdata;

        http->body += size * count;
        return http->body < BODY_MAX ? size * count : 0; /* 0 ends the transfer */
}

static bool has_control_characters(const char *text)
{
        for (; *text; text++)
                if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
                        return true;
        return false;
}

static int header_append(struct probe_http *http, const char *line)
{
        struct curl_slist *headers = curl_slist_append(http->headers, line);

        if (!headers)
                return -ENOMEM;
        http->headers = headers;
        return 0;
}

static bool is_named(const char *line, const char *name)
{
        return strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':';
}

/* To libcurl "Name:" without a value takes a header of its own away, which is what the kubelet does with these three; other headers
 * it sends empty, and so does libcurl when they are written "Name;". */
static int header_add(struct probe_http *http, const char *line)
{
        const char *colon = strchr(line, ':');
        _cleanup_(freep) char *empty = NULL;

        if (!colon || colon == line || has_control_characters(line))
                return -EINVAL;
        if (colon[1 + strspn(colon + 1, " \t")])
                return header_append(http, line);
        if (is_named(line, "Host"))
                return 0;
        if (is_named(line, "Accept") || is_named(line, "User-Agent"))
                return header_append(http, line);
        if (asprintf(&empty, "%.*s;", (int)(colon - line), line) < 0) {
                empty = NULL;
                return -ENOMEM;
        }
        return header_append(http, empty);
}

static int add_headers(struct probe_http *http, const struct status_probe *settings)
{
        _cleanup_(freep) char *host = NULL;
        int r = header_append(http, "Connection: close");

        if (r >= 0 && settings->host && *settings->host) {
                if (asprintf(&host, "Host: %s", settings->host) < 0) {
                        host = NULL;
                        return -ENOMEM;
                }
                r = header_add(http, host);
        }
        for (char **line = settings->headers; line && *line && r >= 0; line++)
                r = header_add(http, *line);
        return r;
}

/* Puts an absolute URL into libcurl's form, and says whose host it is. */
static int url_normalize(const char *text, char **ret_url, char **ret_host)
{
        CURLU *handle = curl_url();
        char *url = NULL, *host = NULL;
        int r = -EINVAL;

        if (!handle)
                return -ENOMEM;
        if (curl_url_set(handle, CURLUPART_URL, text, CURLU_URLENCODE | CURLU_PATH_AS_IS) == CURLUE_OK &&
            curl_url_get(handle, CURLUPART_URL, &url, 0) == CURLUE_OK &&
            curl_url_get(handle, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
                *ret_url = TAKE_PTR(url);
                *ret_host = TAKE_PTR(host);
                r = 0;
        }
        curl_free(url);
        curl_free(host);
        curl_url_cleanup(handle);
        return r;
}

static int set_url(struct probe_http *http, const struct status_probe *settings, const struct address *address)
{
        const char *path = settings->path ? settings->path : "";
        char endpoint[ENDPOINT_TEXT_MAX];
        _cleanup_(freep) char *text = NULL;

        if (has_control_characters(path))
                return -EINVAL;
        if (asprintf(&text, "%s://%s%s%s", settings->tls ? "https" : "http", endpoint_format(address, settings->port, endpoint),
                     *path == '/' ? "" : "/", path) < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return url_normalize(text, &http->url, &http->host);
}

static int set_options(struct probe_http *http)
{
        CURL *easy = http->easy;

        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        /* What is not verified needs no authorities, and reading them would take longer than all the rest. */
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, USER_AGENT);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, http);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
        return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http->curl_message) == CURLE_OK ? 0 : -ENOMEM;
}

int probe_http_new(struct transport *transport, const struct status_probe *settings, const struct address *address,
                   probe_http_ended ended, void *userdata, struct probe_http **ret_http)
{
        _cleanup_(probe_http_freep) struct probe_http *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return -ENOMEM;
        http->transport = transport;
        http->ended = ended;
        http->userdata = userdata;
        http->timeout_ns = settings->timeout_ns ? settings->timeout_ns : DEFAULT_TIMEOUT_MS * NSEC_PER_MSEC;
        http->easy = curl_easy_init();
        if (!http->easy)
                return -ENOMEM;

        r = add_headers(http, settings);
        if (r >= 0)
                r = set_url(http, settings, address);
        if (r >= 0)
                r = set_options(http);
        if (r < 0)
                return r;
        *ret_http = TAKE_PTR(http);
        return 0;
}

struct probe_http *probe_http_free(struct probe_http *http)
{
        if (!http)
                return NULL;
        probe_http_stop(http);
        curl_easy_cleanup(http->easy);
        curl_slist_free_all(http->headers);
        curl_free(http->url);
        curl_free(http->host);
        free(http);
        return NULL;
}

/* One request of the attempt; all of them share its time. */
static int request(struct probe_http *http, const char *url)
{
        uint64_t spent_ns = now_monotonic_ns() - http->begun_ns;
        uint64_t left_ms = http->timeout_ns > spent_ns ? (http->timeout_ns - spent_ns) / NSEC_PER_MSEC : 0;
        int r;

        if (left_ms == 0)
                return -ETIMEDOUT;
        http->body = 0;
        http->curl_message[0] = '\0';
        curl_easy_setopt(http->easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
        if (curl_easy_setopt(http->easy, CURLOPT_URL, url) != CURLE_OK)
                return -ENOMEM;
        r = transport_add(http->transport, http->easy);
        http->running = r >= 0;
        return r;
}

int probe_http_start(struct probe_http *http)
{
        http->begun_ns = now_monotonic_ns();
        http->redirects = 0;
        return request(http, http->url);
}

void probe_http_stop(struct probe_http *http)
{
        if (http->running)
                transport_remove(http->transport, http->easy);
        http->running = false;
}

bool probe_http_is_connected(const struct probe_http *http)
{
        curl_off_t connected_us = 0;

        curl_easy_getinfo(http->easy, CURLINFO_CONNECT_TIME_T, &connected_us);
        return http->redirects > 0 || connected_us > 0;
}

/* Goes on where a redirect leads, if that is the same host. Returns 1 when under way, 0 when this was the last answer, or -errno. */
static int follow(struct probe_http *http, long code)
{
        char *location = NULL, *url = NULL, *host = NULL;
        int r;

        if (code != 301 && code != 302 && code != 303 && code != 307 && code != 308)
                return 0;
        curl_easy_getinfo(http->easy, CURLINFO_REDIRECT_URL, &location);
        if (!location)
                return 0;
        r = url_normalize(location, &url, &host);
        if (r >= 0 && strcmp(host, http->host) != 0)
                r = 0;
        else if (r >= 0 && ++http->redirects > REDIRECTS_MAX)
                r = -ELOOP;
        else if (r >= 0)
                r = request(http, url) < 0 ? -ETIMEDOUT : 1;
        curl_free(url);
        curl_free(host);
        return r;
}

static const char *describe(const struct probe_http *http, CURLcode result)
{
        long error = 0;

        curl_easy_getinfo(http->easy, CURLINFO_OS_ERRNO, &error);
        if (result == CURLE_COULDNT_CONNECT && error > 0)
                return strerror((int)error);
        return *http->curl_message ? http->curl_message : curl_easy_strerror(result);
}

/* Returns 1 when the attempt goes on, 0 when it has passed, or -errno with the problem written. */
static int judge(struct probe_http *http, CURLcode result, char problem[static PROBLEM_MAX])
{
        bool cut = result == CURLE_WRITE_ERROR && http->body >= BODY_MAX;
        long code = 0;
        int r;

        if (result != CURLE_OK && !cut) {
                snprintf(problem, PROBLEM_MAX, "%s", describe(http, result));
                return -EIO;
        }
        curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &code);
        if (code < 200 || code >= 400) {
                snprintf(problem, PROBLEM_MAX, "HTTP status %ld", code);
                return -EIO;
        }
        r = follow(http, code);
        if (r < 0)
                snprintf(problem, PROBLEM_MAX, "HTTP status %ld: the redirect could not be followed: %s", code, strerror(-r));
        return r;
}

void probe_http_finished(CURL *easy, CURLcode result)
{
        char problem[PROBLEM_MAX] = "";
        char *private = NULL;
        struct probe_http *http;
        int r;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        http = (struct probe_http *)private;
        http->running = false;
        r = judge(http, result, problem);
        if (r <= 0)
                http->ended(r < 0 ? problem : NULL, http->userdata);
}
