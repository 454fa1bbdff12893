/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/gpu_only.h"

#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "serve/answers.h"
#include "serve/daemon.h"
#include "serve/event_log.h"
#include "serve/families.h"
#include "serve/gpu.h"

struct gpu_only {
        sd_event *event;
        char *cgroup_root;
        int lock_fd;
        struct http_server *control, *metrics;
        struct event_log *events;
        struct gpu_watch *watch;
        uint64_t started_ns;
};

static void get_status(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        http_reply_json(request, 200,
                        json_pack("{ss, ss, si, sf}", "version", LULL_VERSION, "role", "gpu", "pid", (int)getpid(),
                                  "uptime_seconds", (double)(now_monotonic_ns() - only->started_ns) / NSEC_PER_SEC));
}

static void get_gpus(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        answer_gpus(request, only->watch);
}

static void get_gpu(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        answer_gpu(request, only->watch);
}

static void get_gpu_why(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        answer_gpu_why(request, only->watch);
}

static int metrics_text(struct gpu_only *only, char **ret_text)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *writer = NULL;
        int r;

        r = metrics_writer_new(&writer);
        if (r < 0)
                return r;
        write_daemon_families(writer, only->events);
        write_gpu_families(writer, only->watch);
        return metrics_writer_finish(writer, ret_text);
}

static void get_metrics(struct http_request *request, void *userdata)
{
        char *text = NULL;
        int r = metrics_text(userdata, &text);

        answer_metrics(request, r, text);
}

static void get_features(struct http_request *request, void *userdata)
{
        answer_features(request);
}

static void get_healthz(struct http_request *request, void *userdata)
{
        answer_ok(request);
}

static void get_events(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        answer_events(request, only->events);
}

static void get_event_stream(struct http_request *request, void *userdata)
{
        struct gpu_only *only = userdata;

        answer_event_stream(request, only->events);
}

static const struct http_route control_routes[] = {
        { "GET", "/v1/status", get_status },
        { "GET", "/v1/gpus", get_gpus },
        { "GET", "/v1/gpus/{}", get_gpu },
        { "GET", "/v1/gpus/{}/why", get_gpu_why },
        { "GET", "/v1/events", get_events },
        { "GET", "/v1/events/stream", get_event_stream },
        { "GET", "/v1/features", get_features },
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_healthz },
        { NULL, NULL, NULL },
};

static const struct http_route metrics_routes[] = {
        { "GET", "/metrics", get_metrics },
        { "GET", "/healthz", get_healthz },
        { "GET", "/readyz", get_healthz },
        { NULL, NULL, NULL },
};

static int begin(struct gpu_only *only, const struct options *options)
{
        struct gpu_watch_config config = { .find = true, .rules = options->gpu_rules };
        int r;

        r = daemon_event_new(&only->event);
        if (r >= 0)
                r = event_log_new(&only->events);
        if (r >= 0)
                r = cgroup_find_root(&only->cgroup_root);
        if (r < 0) {
                log_error("cannot begin: %s", strerror(-r));
                return r;
        }
        config.event = only->event;
        config.cgroup_root = only->cgroup_root;
        config.below = options->cgroup;
        if (config.below && !cgroup_is_inside(config.below, config.cgroup_root)) {
                log_error("--cgroup: \"%s\" is not a cgroup; name a directory below %s", config.below, config.cgroup_root);
                return -EINVAL;
        }

        r = daemon_lock(options->run_dir, &only->lock_fd);
        if (r >= 0)
                r = gpu_watch_new(&config, &only->watch);
        if (r >= 0)
                r = daemon_serve_control(only->event, options->run_dir, control_routes, only, &only->control);
        if (r >= 0)
                r = daemon_serve_metrics(only->event, options->metrics, metrics_routes, only, &only->metrics);
        return r;
}

int gpu_only_run(const struct options *options)
{
        struct gpu_only only = { .lock_fd = -1, .started_ns = now_monotonic_ns() };
        int r;

        r = begin(&only, options);
        if (r >= 0) {
                log_info("ready: watching GPUs");
                sd_notify(false, "READY=1");
                r = sd_event_loop(only.event);
        }

        http_server_free(only.control);
        http_server_free(only.metrics);
        gpu_watch_free(only.watch);
        event_log_free(only.events);
        sd_event_unref(only.event);
        free(only.cgroup_root);
        close_fd(only.lock_fd);
        return r;
}
