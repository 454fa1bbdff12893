/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/manager.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "activity/activity.h"
#include "base/cgroup.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "hold/hold.h"
#include "hold/sockets.h"
#include "serve/daemon.h"
#include "serve/event_log.h"
#include "standalone/readiness.h"

static void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
        managed_on_demand(holding_userdata(holding), demand);
}

static void on_released(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        managed_on_released(holding_userdata(holding), at_ns);
}

static void on_answered(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        managed_on_answered(holding_userdata(holding), at_ns);
}

static void on_drained(struct holding *holding, void *userdata)
{
        managed_on_drained(holding_userdata(holding));
}

static void on_bound(struct workload *workload, uint16_t port, uint8_t protocol, void *userdata)
{
        managed_on_bound(userdata);
}

void manager_reap(struct manager *manager)
{
        size_t kept = 0;

        for (size_t i = 0; i < manager->n_policies; i++) {
                struct managed *managed = manager->policies[i];

                if (managed->retired) {
                        event_log_add(manager->context.events, managed->policy->name, "PolicyRemoved",
                                      "its workload is left running");
                        managed_free(managed, false);
                } else {
                        manager->policies[kept++] = managed;
                }
        }
        manager->n_policies = kept;
}

static int on_reap(sd_event_source *source, void *userdata)
{
        manager_reap(userdata);
        return 0;
}

static void on_retired(struct managed *managed, void *userdata)
{
        struct manager *manager = userdata;

        managed->retired = true;
        sd_event_source_set_enabled(manager->reaper, SD_EVENT_ONESHOT);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
        struct manager *manager = userdata;
        char message[64];
        int r;

        snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%lu", (unsigned long)(now_monotonic_ns() / NSEC_PER_USEC));
        sd_notify(false, message);
        r = manager_load(manager);
        if (r < 0)
                log_error("reload: %s", strerror(-r));
        sd_notify(false, "READY=1");
        return 0;
}

static int make_event_loop(struct manager *manager)
{
        struct context *context = &manager->context;
        sigset_t signals;
        int r;

        r = daemon_event_new(&context->event);
        if (r < 0)
                return r;
        sigemptyset(&signals);
        sigaddset(&signals, SIGHUP);
        sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(context->event, NULL, SIGHUP, on_reload, manager);
        if (r < 0)
                return r;
        r = sd_event_add_defer(context->event, &manager->reaper, on_reap, manager);
        if (r < 0)
                return r;
        sd_event_source_set_enabled(manager->reaper, SD_EVENT_OFF);
        return 0;
}

static int make_directories(struct manager *manager)
{
        struct context *context = &manager->context;
        const struct options *options = manager->options;
        int r;

        if (asprintf(&context->state_dir, "%s/state", options->run_dir) < 0) {
                context->state_dir = NULL;
                return -ENOMEM;
        }
        context->cgroup = strdup(options->cgroup);
        if (!context->cgroup)
                return -ENOMEM;
        context->log_dir = options->log_dir;

        r = directory_make(context->state_dir, 0700);
        if (r < 0) {
                log_error("cannot make %s: %s", context->state_dir, strerror(-r));
                return r;
        }
        if (options->log_dir && (r = directory_make(options->log_dir, 0750)) < 0) {
                log_error("cannot make %s: %s", options->log_dir, strerror(-r));
                return r;
        }

        r = cgroup_find_root(&context->cgroup_root);
        if (r >= 0)
                r = cgroup_make(context->cgroup);
        if (r < 0)
                log_error("cannot use %s as the parent of the targets' cgroups: %s%s", context->cgroup, strerror(-r),
                          r == -EINVAL ? " (it is not on a cgroup2 mount)" : "");
        return r;
}

static int make_parts(struct manager *manager)
{
        static const struct hold_callbacks hold_callbacks = {
                .demand = on_demand,
                .released = on_released,
                .answered = on_answered,
                .drained = on_drained,
        };
        static const struct activity_callbacks activity_callbacks = { .bound = on_bound };
        struct context *context = &manager->context;
        const char *bpffs = manager->options->bpffs;
        int r;

        r = event_log_new(&context->events);
        if (r < 0)
                return r;
        r = sockets_new(&context->sockets);
        if (r < 0) {
                log_error("cannot ask the kernel for its sockets: %s", strerror(-r));
                return r;
        }
        r = hold_new(&(struct hold_config){ .event = context->event, .bpffs = bpffs }, &hold_callbacks, manager, &context->hold);
        if (r < 0)
                return r;
        r = activity_new(context->event, bpffs, &activity_callbacks, &context->activity);
        if (r < 0)
                return r;
        return gpu_watch_new(&(struct gpu_watch_config){ .event = context->event,
                                                         .cgroup_root = context->cgroup_root,
                                                         .rules = manager->options->gpu_rules },
                             &context->gpu);
}

int manager_new(const struct options *options, struct manager **ret_manager)
{
        _cleanup_(manager_freep) struct manager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->options = options;
        manager->lock_fd = -1;
        manager->started_ns = now_monotonic_ns();
        manager->context.retired = on_retired;
        manager->context.userdata = manager;

        manager->context.open_files = daemon_raise_open_files();
        r = make_event_loop(manager);
        if (r < 0) {
                log_error("cannot make an event loop: %s", strerror(-r));
                return r;
        }
        r = make_directories(manager);
        if (r < 0)
                return r;
        r = daemon_lock(options->run_dir, &manager->lock_fd);
        if (r < 0)
                return r;
        r = daemon_serve_control(manager->context.event, options->run_dir, manager_control_routes, manager, &manager->control);
        if (r < 0)
                return r;
        r = daemon_serve_metrics(manager->context.event, options->metrics, manager_metrics_routes, manager, &manager->metrics);
        if (r < 0)
                return r;
        r = make_parts(manager);
        if (r < 0)
                return r;

        r = manager_load(manager);
        if (r < 0) {
                log_error("cannot read the policies: %s", strerror(-r));
                return r;
        }
        hold_settle(manager->context.hold);
        activity_settle(manager->context.activity);
        memory_settle();
        manager->ready = true;

        *ret_manager = TAKE_PTR(manager);
        return 0;
}

int manager_run(struct manager *manager)
{
        log_info("ready: %zu policies", manager->n_policies);
        sd_notify(false, "READY=1");
        return sd_event_loop(manager->context.event);
}

struct manager *manager_free(struct manager *manager)
{
        struct context *context;

        if (!manager)
                return NULL;
        context = &manager->context;

        context->hold = hold_suspend(context->hold);
        for (size_t i = 0; i < manager->n_policies; i++)
                managed_free(manager->policies[i], true);
        free(manager->policies);
        for (size_t i = 0; i < manager->n_configuration_errors; i++)
                free(manager->configuration_errors[i]);
        free(manager->configuration_errors);

        http_server_free(manager->control);
        http_server_free(manager->metrics);
        gpu_watch_free(context->gpu);
        activity_free(context->activity, true);
        sockets_free(context->sockets);
        event_log_free(context->events);
        free(context->cgroup);
        free(context->cgroup_root);
        free(context->state_dir);
        sd_event_source_unref(manager->reaper);
        sd_event_unref(context->event);
        close_fd(manager->lock_fd);
        free(manager);
        return NULL;
}

static int managed_by_name(const void *name, const void *element)
{
        const struct managed *const *managed = element;

        return strcmp(name, (*managed)->policy->name);
}

struct managed *managed_find(struct managed **policies, size_t n_policies, const char *name)
{
        struct managed **found = NULL;

        if (n_policies > 0)
                found = bsearch(name, policies, n_policies, sizeof(*policies), managed_by_name);
        return found ? *found : NULL;
}
