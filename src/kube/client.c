/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <string.h>

#include "kube/client_private.h"

static void requests_start(struct kube_client *client)
{
        size_t lists = 0, small = 0;
        struct kube_request *request;

        TAILQ_FOREACH(request, &client->requests, link) {
                lists += request->state == REQUEST_RUNNING && request->priority == KUBE_PRIORITY_LIST;
                small += request->state == REQUEST_RUNNING && request->priority == KUBE_PRIORITY_NORMAL;
        }
        TAILQ_FOREACH(request, &client->requests, link) {
                if (request->state != REQUEST_WAITING || (request->priority == KUBE_PRIORITY_LIST && lists >= KUBE_LISTS_MAX) ||
                    (request->priority == KUBE_PRIORITY_NORMAL && small >= KUBE_SMALL_MAX))
                        continue;
                request_start(request);
                lists += request->priority == KUBE_PRIORITY_LIST;
                small += request->priority == KUBE_PRIORITY_NORMAL;
        }
}

static void cancelled_free(struct kube_client *client)
{
        struct kube_request *request;

        while ((request = TAILQ_FIRST(&client->cancelled))) {
                TAILQ_REMOVE(&client->cancelled, request, link);
                request_stop(request);
                request_free(request);
        }
}

static void on_ran(void *userdata)
{
        struct kube_client *client = userdata;

        cancelled_free(client);
        requests_start(client);
}

static void on_finished(CURL *easy, CURLcode result, void *userdata)
{
        struct kube_request *request = NULL;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
        request_finished(request, result);
}

static int on_again(sd_event_source *source, void *userdata)
{
        on_ran(userdata);
        return 0;
}

void client_run_soon(struct kube_client *client)
{
        sd_event_source_set_enabled(client->again, SD_EVENT_ONESHOT);
}

void client_is_reachable(struct kube_client *client)
{
        struct kube_listener *listener;

        if (!client->unreachable)
                return;
        client->unreachable = false;
        TAILQ_FOREACH(listener, &client->listeners, link)
                listener->reachable(listener->userdata);
}

void kube_client_listen(struct kube_client *client, struct kube_listener *listener)
{
        TAILQ_INSERT_TAIL(&client->listeners, listener, link);
}

void kube_client_unlisten(struct kube_client *client, struct kube_listener *listener)
{
        TAILQ_REMOVE(&client->listeners, listener, link);
}

/* "https://NAME:PORT/path", connected to the real host: what the certificate is verified for is the name in the address. */
static int server_rename(struct kube_client *client, const struct kube_config *config)
{
        _cleanup_(freep) char *connect_to = NULL;
        char *host = NULL, *port = NULL, *renamed = NULL;
        CURLU *url = curl_url();
        bool done;

        done = url && curl_url_set(url, CURLUPART_URL, config->server, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
               curl_url_set(url, CURLUPART_HOST, config->tls_server_name, 0) == CURLUE_OK &&
               curl_url_get(url, CURLUPART_URL, &renamed, 0) == CURLUE_OK;
        if (done && asprintf(&connect_to, "::%s:%s", host, port) < 0) {
                connect_to = NULL;
                done = false;
        }
        if (done) {
                client->base_url = strdup(renamed);
                client->connect_to = curl_slist_append(NULL, connect_to);
        }
        curl_free(host);
        curl_free(port);
        curl_free(renamed);
        curl_url_cleanup(url);
        if (!done)
                return -EINVAL;
        return client->base_url && client->connect_to ? 0 : -ENOMEM;
}

static int server_set(struct kube_client *client, const struct kube_config *config)
{
        size_t length;
        int r;

        if (config->tls_server_name) {
                r = server_rename(client, config);
                if (r < 0)
                        return r;
        } else {
                client->base_url = strdup(config->server);
                if (!client->base_url)
                        return -ENOMEM;
        }
        length = strlen(client->base_url);
        while (length > 0 && client->base_url[length - 1] == '/')
                client->base_url[--length] = '\0';
        return 0;
}

static int transports_new(struct kube_client *client)
{
        const struct transport_callbacks callbacks = { .finished = on_finished, .ran = on_ran };
        int r = transport_new(client->event, &callbacks, client, &client->small);

        return r < 0 ? r : transport_new(client->event, &callbacks, client, &client->large);
}

int kube_client_new(sd_event *event, const struct kube_config *config, struct kube_client **ret_client)
{
        _cleanup_(kube_client_freep) struct kube_client *client = NULL;
        int r;

        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return -ENOMEM;
        client = calloc(1, sizeof(*client));
        if (!client) {
                curl_global_cleanup();
                return -ENOMEM;
        }
        client->event = sd_event_ref(event);
        TAILQ_INIT(&client->requests);
        TAILQ_INIT(&client->cancelled);
        TAILQ_INIT(&client->listeners);
        client->namespace = strdup(config->namespace ? config->namespace : "default");
        if (!client->namespace)
                return -ENOMEM;

        r = server_set(client, config);
        if (r >= 0)
                r = kube_credentials_new(config, &client->credentials);
        if (r >= 0)
                r = sd_event_add_defer(event, &client->again, on_again, client);
        if (r >= 0)
                r = sd_event_source_set_enabled(client->again, SD_EVENT_OFF);
        if (r >= 0)
                r = transports_new(client);
        if (r < 0)
                return r;
        *ret_client = TAKE_PTR(client);
        return 0;
}

struct kube_client *kube_client_free(struct kube_client *client)
{
        struct kube_request *request;

        if (!client)
                return NULL;
        while ((request = TAILQ_FIRST(&client->requests)))
                kube_request_cancel(request);
        cancelled_free(client);
        transport_free(client->small);
        transport_free(client->large);
        kube_credentials_free(client->credentials);
        sd_event_source_disable_unref(client->again);
        sd_event_unref(client->event);
        curl_slist_free_all(client->connect_to);
        free(client->base_url);
        free(client->namespace);
        free(client);
        curl_global_cleanup();
        return NULL;
}

int kube_client_request(struct kube_client *client, const struct kube_request_settings *settings,
                        const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        struct kube_request *request;
        int r;

        if (!settings->path || *settings->path != '/' || !settings->resource || settings->deadline_ns == 0)
                return -EINVAL;
        if (client->n_requests >= KUBE_REQUESTS_MAX) {
                client->counters.refused_by_bounds++;
                return -ENOBUFS;
        }
        r = request_new(client, settings, callbacks, userdata, &request);
        if (r < 0)
                return r;
        TAILQ_INSERT_TAIL(&client->requests, request, link);
        client->n_requests++;
        client_run_soon(client);
        if (ret_request)
                *ret_request = request;
        return 0;
}

void kube_request_is_watch(struct kube_request *request, uint64_t silence_ns)
{
        request->priority = KUBE_PRIORITY_WATCH;
        request->silence_ns = silence_ns;
        client_run_soon(request->client);
}

struct kube_request *kube_request_cancel(struct kube_request *request)
{
        struct kube_client *client;

        if (!request)
                return NULL;
        client = request->client;
        TAILQ_REMOVE(&client->requests, request, link);
        client->n_requests--;
        request->cancelled = true;
        sd_event_source_set_enabled(request->timer, SD_EVENT_OFF);
        TAILQ_INSERT_TAIL(&client->cancelled, request, link);
        client_run_soon(client);
        return NULL;
}

const struct kube_counters *kube_client_counters(const struct kube_client *client)
{
        return &client->counters;
}

sd_event *kube_client_event(const struct kube_client *client)
{
        return client->event;
}

const char *kube_client_namespace(const struct kube_client *client)
{
        return client->namespace;
}
