/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "kube/chance.h"
#include "kube/client_private.h"

enum { TIMER_ACCURACY_US = 1000, REST_MS = 5 };

bool request_is_streamed(const struct kube_request *request)
{
        return request->callbacks.data != NULL;
}

static void secret_free(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

/* What one try has gathered. */
static void try_forget(struct kube_request *request)
{
        curl_easy_cleanup(request->easy);
        request->easy = NULL;
        for (struct curl_slist *line = request->headers; line; line = line->next)
                explicit_bzero(line->data, strlen(line->data));
        curl_slist_free_all(request->headers);
        request->headers = NULL;
        secret_free(request->token);
        request->token = NULL;
        kube_buffer_clear(&request->answer);
        request->gunzip = kube_gunzip_free(request->gunzip);
        request->transport = NULL;
        request->opened_ns = request->retry_after_ns = 0;
        request->curl_message[0] = '\0';
        request->failed = 0;
}

struct kube_request *request_free(struct kube_request *request)
{
        if (!request)
                return NULL;
        try_forget(request);
        kube_buffer_done(&request->answer);
        sd_event_source_disable_unref(request->timer);
        free(request->url);
        free(request->content_type);
        free(request->body);
        free(request);
        return NULL;
}
DEFINE_CLEANUP(struct kube_request, request_free)

/* A watch has been counted when it was opened. */
static void try_count(struct kube_request *request, const struct kube_reply *reply)
{
        if (request->verb == KUBE_WATCH && request->opened_ns > 0)
                return;
        kube_counters_request(&request->client->counters, request->verb, request->resource, reply->status.code,
                              now_monotonic_ns() - request->begun_ns);
}

static void request_done(struct kube_request *request, struct kube_reply *reply)
{
        struct kube_client *client = request->client;

        TAILQ_REMOVE(&client->requests, request, link);
        client->n_requests--;
        if (request->callbacks.done)
                request->callbacks.done(reply, request->userdata);
        json_decref(reply->body);
        request_free(request);
        client_run_soon(client);
}

static void request_fail(struct kube_request *request, int error, const char *message)
{
        struct kube_reply reply = { .error = error };

        request_stop(request);
        try_count(request, &reply);
        snprintf(reply.status.message, sizeof(reply.status.message), "%s", message);
        request_done(request, &reply);
}

static void request_again(struct kube_request *request, uint64_t delay_ns)
{
        try_forget(request);
        request->state = REQUEST_DELAYED;
        request->resume_ns = now_monotonic_ns() + delay_ns;
        sd_event_source_set_time(request->timer, request->resume_ns / NSEC_PER_USEC);
        sd_event_source_set_enabled(request->timer, SD_EVENT_ONESHOT);
}

static bool wake_is_unheard(const struct kube_request *request, uint64_t *ret_until_ns)
{
        if (request->priority != KUBE_PRIORITY_WAKE || request->heard_ns > request->begun_ns ||
            request->retries >= KUBE_RETRIES_MAX)
                return false;
        *ret_until_ns = request->begun_ns + KUBE_WAKE_SILENCE_SECONDS * NSEC_PER_SEC;
        return true;
}

/* When an HTTP/2 server answers before it has the request's body, as it does for 429, libcurl 7.88 takes the whole answer off
 * the socket while it still sends, and then waits for the socket to become readable. So it is made to read again, at growing
 * intervals. */
static bool rest_is_due(const struct kube_request *request, uint64_t now_ns, uint64_t *ret_next_ns)
{
        uint64_t delay_ns = REST_MS * NSEC_PER_MSEC;

        if (request->state != REQUEST_RUNNING || !request->body || request->heard_ns == request->begun_ns)
                return false;
        while (request->heard_ns + delay_ns <= now_ns)
                delay_ns *= 2;
        *ret_next_ns = request->heard_ns + delay_ns;
        return delay_ns > REST_MS * NSEC_PER_MSEC;
}

static void timer_arm(struct kube_request *request)
{
        uint64_t next_ns = request->deadline_ns, until_ns = UINT64_MAX;

        rest_is_due(request, now_monotonic_ns(), &until_ns);
        next_ns = MIN(next_ns, until_ns);
        if (request->state == REQUEST_DELAYED)
                next_ns = MIN(next_ns, request->resume_ns);
        if (request->state == REQUEST_RUNNING && request->silence_ns > 0)
                next_ns = MIN(next_ns, request->heard_ns + request->silence_ns);
        if (request->state == REQUEST_RUNNING && wake_is_unheard(request, &until_ns))
                next_ns = MIN(next_ns, until_ns);
        sd_event_source_set_time(request->timer, next_ns / NSEC_PER_USEC + 1);
        sd_event_source_set_enabled(request->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct kube_request *request = userdata;
        uint64_t now_ns = now_monotonic_ns(), until_ns;

        if (request->failed < 0 && request->state != REQUEST_RUNNING) {
                request_fail(request, request->failed, *request->curl_message ? request->curl_message : strerror(-request->failed));
                return 0;
        }
        if (now_ns >= request->deadline_ns) {
                request_fail(request, -ETIMEDOUT, "the request's deadline has passed");
                return 0;
        }
        if (request->state == REQUEST_RUNNING && request->silence_ns > 0 && now_ns >= request->heard_ns + request->silence_ns) {
                request_fail(request, -ETIMEDOUT, "the server has been silent for too long");
                return 0;
        }
        if (request->state == REQUEST_RUNNING && wake_is_unheard(request, &until_ns) && now_ns >= until_ns) {
                request_stop(request);
                request->retries++;
                request->client->counters.retries++;
                request->fresh_connection = true;
                request_again(request, 0);
        }
        if (request->state == REQUEST_DELAYED && now_ns >= request->resume_ns) {
                request->state = REQUEST_WAITING;
                client_run_soon(request->client);
        }
        if (rest_is_due(request, now_ns, &until_ns))
                transport_look_again(request->transport);
        timer_arm(request);
        return 0;
}

void request_await_rest(struct kube_request *request)
{
        timer_arm(request);
}

static int settings_copy(struct kube_request *request, const struct kube_request_settings *settings)
{
        bool has_query = settings->query && *settings->query;

        request->verb = settings->verb;
        request->priority = settings->priority;
        request->silence_ns = settings->silence_ns;
        snprintf(request->resource, sizeof(request->resource), "%s", settings->resource);
        if (asprintf(&request->url, "%s%s%s%s", request->client->base_url, settings->path, has_query ? "?" : "",
                     has_query ? settings->query : "") < 0) {
                request->url = NULL;
                return -ENOMEM;
        }
        if (!settings->body)
                return 0;
        request->body = json_dumps(settings->body, JSON_COMPACT);
        request->content_type = strdup(settings->content_type ? settings->content_type : "application/json");
        return request->body && request->content_type ? 0 : -ENOMEM;
}

int request_new(struct kube_client *client, const struct kube_request_settings *settings,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        _cleanup_(request_freep) struct kube_request *request = calloc(1, sizeof(*request));
        int r;

        if (!request)
                return -ENOMEM;
        request->client = client;
        request->callbacks = *callbacks;
        request->userdata = userdata;
        request->begun_ns = now_monotonic_ns();
        request->deadline_ns = request->begun_ns + settings->deadline_ns;
        r = settings_copy(request, settings);
        if (r < 0)
                return r;
        r = sd_event_add_time(client->event, &request->timer, CLOCK_MONOTONIC, request->deadline_ns / NSEC_PER_USEC,
                              TIMER_ACCURACY_US, on_timer, request);
        if (r < 0)
                return r;
        *ret_request = TAKE_PTR(request);
        return 0;
}

void request_start(struct kube_request *request)
{
        bool is_small = request->priority == KUBE_PRIORITY_WAKE || request->priority == KUBE_PRIORITY_NORMAL;
        int r;

        request->begun_ns = request->heard_ns = now_monotonic_ns();
        r = request_prepare(request);
        if (r >= 0)
                r = transport_add(is_small ? request->client->small : request->client->large, request->easy);
        if (r < 0) {
                /* reported by the timer, so that nobody is called back while the line is walked */
                request->failed = r;
                request->state = REQUEST_DELAYED;
                sd_event_source_set_time(request->timer, 0);
                sd_event_source_set_enabled(request->timer, SD_EVENT_ONESHOT);
                return;
        }
        request->transport = is_small ? request->client->small : request->client->large;
        request->state = REQUEST_RUNNING;
        timer_arm(request);
}

void request_stop(struct kube_request *request)
{
        if (request->transport)
                transport_remove(request->transport, request->easy);
        request->transport = NULL;
}

/* Whether the token that the server refused has meanwhile been replaced. */
static bool token_has_changed(struct kube_request *request)
{
        struct kube_credentials *credentials = request->client->credentials;
        const char *token, *file;

        request->client->counters.unauthorized++;
        if (request->token_retried || !request->token)
                return false;
        kube_credentials_drop_token(credentials, request->token);
        if (kube_credentials_refresh(credentials, now_monotonic_ns(), &file) < 0)
                return false;
        token = kube_credentials_token(credentials);
        return token && strcmp(token, request->token) != 0;
}

/* How long to wait before the next try. Returns false when there is none. */
static bool should_retry(struct kube_request *request, const struct kube_reply *reply, uint64_t *ret_delay_ns)
{
        const struct kube_status *status = &reply->status;
        uint64_t delay_ns;

        if (reply->error < 0)
                return false;
        if (status->code == 401 && token_has_changed(request)) {
                request->token_retried = true;
                *ret_delay_ns = 0;
                return true;
        }
        if (request_is_streamed(request) || status->retry_after_ns == 0 || request->retries >= KUBE_RETRIES_MAX ||
            (status->code != 429 && status->code < 500))
                return false;
        delay_ns = kube_retry_after(status->retry_after_ns, kube_chance());
        if (now_monotonic_ns() + delay_ns >= request->deadline_ns)
                return false;
        request->retries++;
        request->client->counters.retries++;
        *ret_delay_ns = delay_ns;
        return true;
}

void request_finished(struct kube_request *request, CURLcode result)
{
        struct kube_reply reply = { .error = request_error(request, result) };
        uint64_t delay_ns;

        request->transport = NULL; /* it is out of there */
        if (request->cancelled)
                return;
        request_read_answer(request, &reply);
        if (reply.error == -ECONNREFUSED || (reply.error == -ETIMEDOUT && request->opened_ns == 0))
                request->client->unreachable = true;
        try_count(request, &reply);
        if (should_retry(request, &reply, &delay_ns)) {
                request_again(request, delay_ns);
                return;
        }
        request_done(request, &reply);
}
