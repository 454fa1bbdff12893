/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/time.h"
#include "controller/controller_private.h"
#include "serve/daemon.h"
#include "serve/event_log.h"

static const char lease_name[] = "lull-controller";
static const char recorder_name[] = "lull.dev/controller";

bool controller_leads(const struct controller *controller)
{
        return controller->leading_since_ns && kube_election_is_leader(controller->election) &&
               now_monotonic_ns() - controller->leading_since_ns >= LEADER_SETTLES_NS;
}

static bool leads(void *userdata)
{
        return controller_leads(userdata);
}

static uint64_t now(void *userdata)
{
        return now_monotonic_ns();
}

static void look_at_due(struct controller *controller)
{
        struct subject *subject;

        for (unsigned i = 0; i < LOOKS_MAX && (subject = TAILQ_FIRST(&controller->due)); i++) {
                TAILQ_REMOVE(&controller->due, subject, due);
                subject->is_due = false;
                subject_look(subject);
        }
        if (!TAILQ_EMPTY(&controller->due))
                sd_event_source_set_enabled(controller->look_source, SD_EVENT_ONESHOT);
}

static int on_look(sd_event_source *source, void *userdata)
{
        look_at_due(userdata);
        return 0;
}

static int on_all_due(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct controller *controller = userdata;
        struct subject *subject, *next;

        HASH_ITER(hh, controller->subjects, subject, next)
                subject_is_due(subject, false);
        return 0;
}

/* All sleeps that wait for the round begin in it. */
static int on_round(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct controller *controller = userdata;
        struct subject *subject, *next;

        controller->round = true;
        controller->round_ns = now_monotonic_ns();
        HASH_ITER(hh, controller->subjects, subject, next)
                if (subject->wants_round)
                        subject_look(subject);
        controller->round = false;
        return 0;
}

static void on_target_changed(struct target *target, void *userdata)
{
        struct subject *subject = userdata;

        subject->resolution_is_old = true;
        subject_is_due(subject, subject->machine.phase == PHASE_WAKING);
}

static void on_ignored_changed(void *userdata)
{
        struct controller *controller = userdata;
        struct subject *subject;

        for (subject = controller->subjects; subject; subject = subject->hh.next)
                if (subject->ignores)
                        subject_is_due(subject, false);
}

static int on_settled(sd_event_source *source, uint64_t usec, void *userdata)
{
        subjects_are_due(userdata);
        return 0;
}

static void on_leading(void *userdata)
{
        struct controller *controller = userdata;

        log_info("leading");
        event_log_add(controller->events, NULL, "Leading", "this replica leads");
        controller->leading_since_ns = now_monotonic_ns();
        sd_event_add_time_relative(controller->event, NULL, CLOCK_MONOTONIC, LEADER_SETTLES_NS / NSEC_PER_USEC + 1000, 0,
                                   on_settled, controller);
}

static void on_not_leading(void *userdata)
{
        struct controller *controller = userdata;

        log_info("no longer leading");
        event_log_add(controller->events, NULL, "NotLeading", "this replica leads no longer");
        controller->leading_since_ns = 0;
}

static void on_released(void *userdata)
{
        struct controller *controller = userdata;

        sd_event_exit(controller->event, 0);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
        struct controller *controller = userdata;

        if (controller->stopping)
                return sd_event_exit(controller->event, 0);
        sd_notify(false, "STOPPING=1");
        log_info("stopping; whatever sleeps is woken by the other replicas");
        controller->stopping = true;
        kube_election_release(controller->election, on_released, controller);
        return 0;
}

static int make_timer(struct controller *controller, sd_event_time_handler_t handler, sd_event_source **ret_timer)
{
        int r = sd_event_add_time(controller->event, ret_timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, handler, controller);

        return r < 0 ? r : sd_event_source_set_enabled(*ret_timer, SD_EVENT_OFF);
}

static int make_event_loop(struct controller *controller)
{
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        r = sd_event_new(&controller->event);
        if (r >= 0)
                r = sd_event_add_signal(controller->event, NULL, SIGTERM, on_stop, controller);
        if (r >= 0)
                r = sd_event_add_signal(controller->event, NULL, SIGINT, on_stop, controller);
        if (r >= 0)
                r = sd_event_add_defer(controller->event, &controller->look_source, on_look, controller);
        if (r >= 0)
                r = sd_event_source_set_enabled(controller->look_source, SD_EVENT_OFF);
        if (r >= 0)
                r = make_timer(controller, on_all_due, &controller->all_timer);
        if (r >= 0)
                r = make_timer(controller, on_round, &controller->round_timer);
        if (r >= 0)
                r = sd_event_set_watchdog(controller->event, true);
        return r;
}

static int make_client(struct controller *controller)
{
        _cleanup_(kube_config_freep) struct kube_config *config = NULL;
        char error[KUBE_CONFIG_ERROR_MAX];
        int r = kube_config_load(controller->options->kubeconfig, &config, error);

        if (r < 0) {
                log_error("%s", error);
                return r;
        }
        r = kube_client_new(controller->event, config, &controller->client);
        if (r < 0)
                log_error("cannot make a client of the API server: %s", strerror(-r));
        return r;
}

static int make_parts(struct controller *controller)
{
        static const struct kube_election_callbacks callbacks = { .started = on_leading, .stopped = on_not_leading };
        const struct kube_election_settings election = {
                .namespace = controller->options->namespace,
                .name = lease_name,
                .identity = controller->options->identity,
        };
        const struct kube_recorder_settings recorder = { .controller = recorder_name, .instance = controller->options->identity };
        struct gone_nodes_settings gone = { .namespace = controller->options->namespace, .leads = leads, .now_ns = now };
        int r = kube_recorder_new(controller->client, &recorder, NULL, &controller->recorder);

        if (r == -EINVAL)
                log_error("--identity: \"%s\" is no DNS name; Events are named after it", controller->options->identity);
        if (r >= 0)
                r = agents_new(&controller->agents);
        gone.agents = controller->agents;
        if (r >= 0)
                r = targets_new(controller->client, on_target_changed, &controller->targets);
        if (r >= 0)
                r = park_start(controller);
        if (r >= 0)
                r = ignored_new(controller->client, on_ignored_changed, controller, &controller->ignored);
        if (r >= 0)
                r = gone_nodes_new(controller->client, &gone, controller, &controller->gone_nodes);
        if (r >= 0)
                r = views_start(controller);
        if (r >= 0)
                r = kube_election_new(controller->client, &election, &callbacks, controller, NULL, &controller->election);
        if (r < 0)
                log_error("cannot start: %s", strerror(-r));
        return r;
}

int controller_new(const struct controller_options *options, struct controller **ret_controller)
{
        _cleanup_(controller_freep) struct controller *controller = calloc(1, sizeof(*controller));
        int r;

        if (!controller)
                return -ENOMEM;
        controller->options = options;
        controller->lock_fd = -1;
        controller->started_ns = now_monotonic_ns();
        TAILQ_INIT(&controller->due);
        TAILQ_INIT(&controller->waiting);

        r = make_event_loop(controller);
        if (r >= 0)
                r = event_log_new(&controller->events);
        if (r < 0) {
                log_error("cannot make an event loop: %s", strerror(-r));
                return r;
        }
        r = daemon_lock(options->run_dir, &controller->lock_fd);
        if (r < 0)
                return r;
        r = make_client(controller);
        if (r < 0)
                return r;
        r = serve_start(controller);
        if (r < 0)
                return r;
        r = make_parts(controller);
        if (r < 0)
                return r;

        *ret_controller = TAKE_PTR(controller);
        return 0;
}

int controller_run(struct controller *controller)
{
        log_info("controller %s, in namespace %s", controller->options->identity, controller->options->namespace);
        sd_notify(false, "READY=1");
        return sd_event_loop(controller->event);
}

struct controller *controller_free(struct controller *controller)
{
        struct subject *subject, *next_subject;
        struct area *area, *next_area;

        if (!controller)
                return NULL;
        serve_end(controller);
        kube_election_free(controller->election);
        HASH_ITER(hh, controller->subjects, subject, next_subject)
                subject_free(subject);
        HASH_ITER(hh, controller->areas, area, next_area) {
                area->services.n = area->slices.n = area->autoscalers.n = 0; /* the views' */
                area_forget_if_empty(controller, area);
        }
        views_end(controller);
        gone_nodes_free(controller->gone_nodes);
        parking_keeper_free(controller->parking);
        ignored_free(controller->ignored);
        targets_free(controller->targets);
        agents_free(controller->agents);
        kube_recorder_free(controller->recorder);
        kube_client_free(controller->client);
        event_log_free(controller->events);
        sd_event_source_disable_unref(controller->look_source);
        sd_event_source_disable_unref(controller->all_timer);
        sd_event_source_disable_unref(controller->round_timer);
        sd_event_unref(controller->event);
        close_fd(controller->lock_fd);
        free(controller);
        return NULL;
}
