/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe.h"

#include <string.h>

#include "agent/probe_http.h"
#include "agent/probe_tcp.h"
#include "base/time.h"

enum { TIMER_ACCURACY_US = 1000, PROBLEM_MAX = 256 };

struct prober {
        sd_event *event;
        struct transport *transport;
        size_t n_probes;
};

struct probe {
        struct prober *prober;
        struct probe_http *http; /* or */
        struct probe_tcp *tcp;
        struct probe_callbacks callbacks;
        void *userdata;
        sd_event_source *timer; /* the next attempt; while one runs, the end of the time for connecting */
        bool running;
        uint64_t begun_ns, connect_ns;
        uint64_t attempts;
        uint32_t successes, success_threshold;
        char problem[PROBLEM_MAX];
};

static void on_finished(CURL *easy, CURLcode result, void *userdata)
{
        probe_http_finished(easy, result);
}

static void on_ran(void *userdata)
{
}

int prober_new(sd_event *event, struct prober **ret_prober)
{
        const struct transport_callbacks callbacks = { .finished = on_finished, .ran = on_ran };
        _cleanup_(prober_freep) struct prober *prober = calloc(1, sizeof(*prober));
        int r;

        if (!prober)
                return -ENOMEM;
        prober->event = sd_event_ref(event);
        r = transport_new(event, &callbacks, prober, &prober->transport);
        if (r < 0)
                return r;
        *ret_prober = TAKE_PTR(prober);
        return 0;
}

struct prober *prober_free(struct prober *prober)
{
        if (!prober)
                return NULL;
        transport_free(prober->transport);
        sd_event_unref(prober->event);
        free(prober);
        return NULL;
}

static int set_timer(struct probe *probe, uint64_t at_ns)
{
        int r = sd_event_source_set_time(probe->timer, at_ns / NSEC_PER_USEC);

        return r < 0 ? r : sd_event_source_set_enabled(probe->timer, SD_EVENT_ONESHOT);
}

static uint64_t period_ns(const struct prober *prober)
{
        return MAX(PROBE_PERIOD_NS, prober->n_probes * (NSEC_PER_SEC / PROBE_RATE_MAX));
}

/* @problem: NULL when it has passed. The caller must not touch the probe afterwards: passed() may free it. */
static void attempt_ended(const char *problem, void *userdata)
{
        struct probe *probe = userdata;

        probe->running = false;
        probe->successes = problem ? 0 : probe->successes + 1;
        if (problem)
                snprintf(probe->problem, sizeof(probe->problem), "%s", problem);
        if (probe->successes >= probe->success_threshold) {
                sd_event_source_set_enabled(probe->timer, SD_EVENT_OFF);
                probe->callbacks.passed(probe, now_monotonic_ns(), probe->userdata);
                return;
        }
        set_timer(probe, probe->begun_ns + period_ns(probe->prober)); /* at once where that is past */
}

static void attempt_stop(struct probe *probe)
{
        if (probe->http)
                probe_http_stop(probe->http);
        if (probe->tcp)
                probe_tcp_stop(probe->tcp);
}

static void attempt_start(struct probe *probe)
{
        int r;

        probe->attempts++;
        probe->begun_ns = now_monotonic_ns();
        probe->running = true;
        r = probe->http ? probe_http_start(probe->http) : probe_tcp_start(probe->tcp);
        if (r < 0)
                attempt_ended(strerror(-r), probe);
        else
                set_timer(probe, probe->begun_ns + probe->connect_ns);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct probe *probe = userdata;

        if (!probe->running) {
                attempt_start(probe);
        } else if (!probe->http || !probe_http_is_connected(probe->http)) {
                attempt_stop(probe);
                attempt_ended("no connection in time", probe);
        }
        return 0;
}

static int transport_of(struct probe *probe, const struct status_probe *settings, const struct address *address)
{
        switch (settings->type) {
        case PROBE_HTTP:
                return probe_http_new(probe->prober->transport, settings, address, attempt_ended, probe, &probe->http);
        case PROBE_TCP:
                return probe_tcp_new(probe->prober->event, address, settings->port, attempt_ended, probe, &probe->tcp);
        case PROBE_NONE:
                break;
        }
        return -EINVAL;
}

int probe_new(struct prober *prober, const struct status_probe *settings, const struct address *address, uint64_t not_before_ns,
              const struct probe_callbacks *callbacks, void *userdata, struct probe **ret_probe)
{
        _cleanup_(probe_freep) struct probe *probe = NULL;
        int r;

        if (prober->n_probes >= PROBES_MAX)
                return -ENOBUFS;
        probe = calloc(1, sizeof(*probe));
        if (!probe)
                return -ENOMEM;
        probe->prober = prober;
        prober->n_probes++;
        probe->callbacks = *callbacks;
        probe->userdata = userdata;
        probe->success_threshold = MAX(settings->success_threshold, 1U);
        probe->connect_ns = settings->timeout_ns ? MIN(settings->timeout_ns, PROBE_CONNECT_NS) : PROBE_CONNECT_NS;

        r = transport_of(probe, settings, address);
        if (r >= 0)
                r = sd_event_add_time(prober->event, &probe->timer, CLOCK_MONOTONIC, not_before_ns / NSEC_PER_USEC,
                                      TIMER_ACCURACY_US, on_timer, probe);
        if (r < 0)
                return r;
        *ret_probe = TAKE_PTR(probe);
        return 0;
}

struct probe *probe_free(struct probe *probe)
{
        if (!probe)
                return NULL;
        probe_http_free(probe->http);
        probe_tcp_free(probe->tcp);
        sd_event_source_disable_unref(probe->timer);
        probe->prober->n_probes--;
        free(probe);
        return NULL;
}

uint64_t probe_attempts(const struct probe *probe)
{
        return probe->attempts;
}

const char *probe_problem(const struct probe *probe)
{
        return probe->problem;
}
