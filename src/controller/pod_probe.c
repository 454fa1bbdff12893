/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/pod_probe.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "kube/micro_time.h"

enum { SECONDS_MAX = 24 * 3600 };

void status_probe_done(struct status_probe *probe)
{
        free(probe->path);
        free(probe->host);
        for (size_t i = 0; probe->headers && probe->headers[i]; i++)
                free(probe->headers[i]);
        free(probe->headers);
        *probe = (struct status_probe){ 0 };
}

void pod_probe_done(struct pod_probe *probe)
{
        status_probe_done(&probe->probe);
        *probe = (struct pod_probe){ 0 };
}

static int text_copy(const char *text, char **ret_copy)
{
        *ret_copy = text ? strdup(text) : NULL;
        return text && !*ret_copy ? -ENOMEM : 0;
}

static int headers_copy(char *const *source, char ***ret_headers)
{
        size_t n = 0;
        char **headers;
        int r = 0;

        while (source[n])
                n++;
        headers = calloc(n + 1, sizeof(*headers));
        if (!headers)
                return -ENOMEM;
        *ret_headers = headers;
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = text_copy(source[i], &headers[i]);
        return r;
}

int status_probe_copy(const struct status_probe *source, struct status_probe *ret_probe)
{
        struct status_probe copy = *source;
        int r;

        copy.path = copy.host = NULL;
        copy.headers = NULL;
        r = text_copy(source->path, &copy.path);
        if (r >= 0)
                r = text_copy(source->host, &copy.host);
        if (r >= 0 && source->headers)
                r = headers_copy(source->headers, &copy.headers);
        if (r < 0) {
                status_probe_done(&copy);
                return r;
        }
        *ret_probe = copy;
        return 0;
}

static const char *text_of(const json_t *object, const char *key)
{
        return json_string_value(json_object_get(object, key));
}

static bool text_is(const json_t *object, const char *key, const char *wanted)
{
        const char *text = text_of(object, key);

        return text && strcmp(text, wanted) == 0;
}

static uint32_t seconds_of(const json_t *object, const char *key, uint32_t otherwise)
{
        const json_t *value = json_object_get(object, key);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return otherwise;
        return (uint32_t)MIN(json_integer_value(value), (json_int_t)SECONDS_MAX);
}

/* The API's default for what is 0 or absent is 1. */
static uint32_t at_least_one(const json_t *object, const char *key)
{
        return MAX(seconds_of(object, key, 1), 1U);
}

/* One that libcurl would send as the kubelet's client sends it, or refuses to send. */
static bool is_plain(const char *text, bool blanks)
{
        for (; *text; text++)
                if (iscntrl((unsigned char)*text) || (*text == ' ' && !blanks))
                        return false;
        return true;
}

/* A name means the port that the container declares under it. 0: none. */
static uint16_t port_of(const json_t *action, const json_t *container)
{
        const json_t *value = json_object_get(action, "port"), *declared;
        json_int_t number = json_integer_value(value);
        size_t i;

        if (json_is_string(value))
                json_array_foreach(json_object_get(container, "ports"), i, declared)
                        if (text_is(declared, "name", json_string_value(value))) {
                                number = json_integer_value(json_object_get(declared, "containerPort"));
                                break;
                        }
        return number > 0 && number <= UINT16_MAX ? (uint16_t)number : 0;
}

/* httpGet or tcpSocket to the pod itself, or NONE. */
static enum probe_type probe_type_of(const json_t *probe, const json_t **ret_action)
{
        const json_t *http = json_object_get(probe, "httpGet"), *tcp = json_object_get(probe, "tcpSocket");
        const json_t *action = json_is_object(http) ? http : tcp;
        const char *host = text_of(action, "host"), *protocol = text_of(action, "protocol");

        if (!json_is_object(action) || (host && *host) || (protocol && *protocol && strcmp(protocol, "HTTP1") != 0))
                return PROBE_NONE;
        *ret_action = action;
        return action == http ? PROBE_HTTP : PROBE_TCP;
}

/* Returns 1, 0 when the header cannot be sent, or -ENOMEM. */
static int header_read(const json_t *header, struct status_probe *probe, size_t *n_headers)
{
        const char *name = text_of(header, "name"), *value = text_of(header, "value");

        if (!name || !*name || !is_plain(name, false) || (value && !is_plain(value, true)))
                return 0;
        if (strcasecmp(name, "Host") == 0) {
                if (!probe->host && value && *value && text_copy(value, &probe->host) < 0)
                        return -ENOMEM;
                return 1;
        }
        if (*n_headers == STATUS_HEADERS_MAX)
                return 0;
        if (asprintf(&probe->headers[*n_headers], "%s: %s", name, value ? value : "") < 0) {
                probe->headers[*n_headers] = NULL;
                return -ENOMEM;
        }
        ++*n_headers;
        return 1;
}

/* Returns as header_read(). */
static int http_read(const json_t *action, struct status_probe *probe)
{
        const json_t *headers = json_object_get(action, "httpHeaders"), *header;
        const char *path = text_of(action, "path");
        size_t i, n_headers = 0;
        int r = 1;

        path = path && *path ? path : "/";
        probe->tls = text_is(action, "scheme", "HTTPS");
        if (!is_plain(path, false))
                return 0;
        if (asprintf(&probe->path, "%s%s", *path == '/' ? "" : "/", path) < 0) {
                probe->path = NULL;
                return -ENOMEM;
        }
        if (json_array_size(headers) == 0)
                return 1;
        probe->headers = calloc(STATUS_HEADERS_MAX + 1, sizeof(*probe->headers));
        if (!probe->headers)
                return -ENOMEM;
        json_array_foreach(headers, i, header)
                if (r > 0)
                        r = header_read(header, probe, &n_headers);
        return r;
}

/* Returns as header_read(). */
static int probe_read(const json_t *source, const json_t *container, struct status_probe *probe)
{
        const json_t *action = NULL;

        probe->type = probe_type_of(source, &action);
        if (probe->type == PROBE_NONE)
                return 0;
        probe->port = port_of(action, container);
        if (probe->port == 0)
                return 0;
        probe->timeout_ns = at_least_one(source, "timeoutSeconds") * NSEC_PER_SEC;
        probe->initial_delay_ns = seconds_of(source, "initialDelaySeconds", 0) * NSEC_PER_SEC;
        probe->success_threshold = at_least_one(source, "successThreshold");
        return probe->type == PROBE_HTTP ? http_read(action, probe) : 1;
}

static bool is_sidecar(const json_t *init_container)
{
        return text_is(init_container, "restartPolicy", "Always");
}

/* The only container with a readinessProbe, or NULL where there is none, or several. */
static const json_t *find_probed(const json_t *spec)
{
        const json_t *containers = json_object_get(spec, "containers"), *sidecars = json_object_get(spec, "initContainers");
        const json_t *container, *found = NULL;
        unsigned count = 0;
        size_t i;

        json_array_foreach(containers, i, container)
                if (json_is_object(json_object_get(container, "readinessProbe"))) {
                        found = container;
                        count++;
                }
        json_array_foreach(sidecars, i, container)
                if (is_sidecar(container) && json_is_object(json_object_get(container, "readinessProbe")))
                        count++; /* alone it is not what is waited for, either: found is NULL */
        return count == 1 ? found : NULL;
}

static const json_t *container_status(const json_t *pod, const json_t *container)
{
        const json_t *list = json_object_get(json_object_get(pod, "status"), "containerStatuses"), *status;
        const char *name = text_of(container, "name");
        size_t i;

        json_array_foreach(list, i, status)
                if (name && text_is(status, "name", name))
                        return status;
        return NULL;
}

static bool is_running(const json_t *status)
{
        return json_is_object(json_object_get(json_object_get(status, "state"), "running"));
}

/* Without a startupProbe a container has started as soon as it runs. */
static bool has_started(const json_t *status)
{
        return json_is_true(json_object_get(status, "started"));
}

static bool others_run(const json_t *pod, const json_t *probed)
{
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers"), *container;
        size_t i;

        json_array_foreach(containers, i, container) {
                const json_t *status = container_status(pod, container);

                if (container != probed && (!is_running(status) || !has_started(status)))
                        return false;
        }
        return true;
}

/* Whether success of @probe shows that @startup would succeed. */
static bool proves_startup(const struct status_probe *probe, const json_t *startup, const json_t *container)
{
        const json_t *action = NULL;
        enum probe_type type = probe_type_of(startup, &action);

        if (type == PROBE_NONE || port_of(action, container) != probe->port)
                return false;
        return type == PROBE_TCP || probe->type == PROBE_HTTP;
}

static void started_read(const json_t *status, struct pod_probe *probe)
{
        const char *text = text_of(json_object_get(json_object_get(status, "state"), "running"), "startedAt");
        uint64_t realtime_us;

        if (text && micro_time_parse(text, &realtime_us) >= 0)
                probe->started_realtime_ns = realtime_us * NSEC_PER_USEC;
}

/* What the pod is waiting for by itself, so that its probe says nothing yet. */
static bool must_wait(const json_t *pod, const json_t *container, struct pod_probe *probe)
{
        const json_t *startup = json_object_get(container, "startupProbe"), *status = container_status(pod, container);
        uint64_t startup_delay_ns = seconds_of(startup, "initialDelaySeconds", 0) * NSEC_PER_SEC;

        if (json_is_object(startup) && !has_started(status)) {
                if (!proves_startup(&probe->probe, startup, container))
                        return true;
                probe->probe.initial_delay_ns = MAX(probe->probe.initial_delay_ns, startup_delay_ns);
        }
        return !others_run(pod, container) || (probe->probe.initial_delay_ns > 0 && probe->started_realtime_ns == 0);
}

int pod_probe_read(const json_t *pod, struct pod_probe *ret_probe)
{
        const json_t *spec = json_object_get(pod, "spec");
        const json_t *container = find_probed(spec);
        _cleanup_(pod_probe_done) struct pod_probe probe = { 0 };
        int r;

        if (!json_is_array(json_object_get(spec, "containers")))
                return -EBADMSG;
        *ret_probe = (struct pod_probe){ 0 };
        if (!container || json_array_size(json_object_get(spec, "readinessGates")) > 0)
                return 0;
        r = probe_read(json_object_get(container, "readinessProbe"), container, &probe.probe);
        if (r <= 0)
                return r;

        started_read(container_status(pod, container), &probe);
        if (must_wait(pod, container, &probe)) {
                ret_probe->started_realtime_ns = probe.started_realtime_ns;
                ret_probe->pending = true;
                return 0;
        }
        *ret_probe = probe;
        probe = (struct pod_probe){ 0 };
        return 0;
}
