/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "hold/sockets.h"
#include "serve/event_log.h"
#include "standalone/client.h"
#include "standalone/managed.h"
#include "standalone/readiness.h"
#include "standalone/settled.h"

static void note_flapping(struct managed *managed, const struct client *client)
{
        bool cut = client->known && managed_was_cut(managed, &client->flow.source, now_monotonic_ns());
        char address[ADDRESS_TEXT_MAX], after[DURATION_TEXT_MAX];

        managed->idle_factor = flapping_factor(managed->idle_factor, cut);
        if (managed->idle_factor == 1) {
                managed_clear_condition(managed, CONDITION_FLAPPING);
                return;
        }
        if (cut)
                managed_set_condition(managed, CONDITION_FLAPPING, "ClientReconnects",
                                      "%s reconnects as soon as sleep cuts its connection; it now sleeps only after %s",
                                      address_format(&client->flow.source, address),
                                      duration_format(managed->policy->idle.after_ns * managed->idle_factor, after));
}

static void begin_wake(struct managed *managed, const struct hold_demand *demand)
{
        struct wake_record *wake = &managed->wake;
        char source[ENDPOINT_TEXT_MAX], frontend[FRONTEND_TEXT_MAX];
        uint64_t now = now_monotonic_ns();

        managed->client_search = client_search_free(managed->client_search);
        *wake = (struct wake_record){
                .cause = CAUSE_PACKET,
                .zero_ns = demand->first_ns,
                .realtime_ns = now_realtime_ns() - (now - demand->first_ns),
                .client = { .flow = demand->flow, .known = true },
        };
        managed->wakes[CAUSE_PACKET]++;
        managed_reach(managed, WAKE_DETECTED, now);
        event_log_add(managed->context->events, managed->policy->name, "Woken", "a packet from %s to %s woke it",
                      endpoint_format(&demand->flow.source, demand->flow.source_port, source),
                      frontend_format(&managed->policy->frontends[demand->frontend], frontend));
}

static void find_client(struct managed *managed, const struct hold_demand *demand)
{
        struct context *context = managed->context;
        int r;

        if (!demand->from_this_host || demand->flow.source_port == 0)
                return;

        r = client_search_new(context->event, context->sockets, context->cgroup_root, &managed->wake.client,
                              &managed->client_search);
        if (r < 0)
                log_debug("policy \"%s\": the client that woke it is not known: %s", managed->policy->name, strerror(-r));
}

void managed_on_demand(struct managed *managed, const struct hold_demand *demand)
{
        bool begins = managed->machine.phase == PHASE_ASLEEP ||
                      (managed->machine.phase == PHASE_WAKING && managed->conditions[CONDITION_WAKE_FAILED].holds);

        if (begins) {
                begin_wake(managed, demand);
                if (managed->machine.phase == PHASE_ASLEEP)
                        note_flapping(managed, &managed->wake.client);
        }
        managed_step(managed, PHASE_EVENT_DEMAND);
        if (begins)
                find_client(managed, demand);
}

void managed_on_released(struct managed *managed, uint64_t at_ns)
{
        if (managed->wake.reached_ns[WAKE_RELEASED] == 0)
                managed_reach(managed, WAKE_RELEASED, at_ns);
}

void managed_on_answered(struct managed *managed, uint64_t at_ns)
{
        if (managed->wake.reached_ns[WAKE_ANSWERED])
                return;
        managed_reach(managed, WAKE_ANSWERED, at_ns);
        managed_save_state(managed);
}

void managed_on_drained(struct managed *managed)
{
        managed_save_state(managed);
        if (managed->retiring)
                managed->context->retired(managed, managed->context->userdata);
}

void managed_on_bound(struct managed *managed)
{
        readiness_look(managed->readiness);
        if (managed->conditions[CONDITION_NOT_LISTENING].holds &&
            readiness_count_now(managed->readiness) == managed->policy->n_frontends)
                managed_clear_condition(managed, CONDITION_NOT_LISTENING);
}

static void on_started(struct process *process, pid_t pid, uint64_t at_ns, void *userdata)
{
        struct managed *managed = userdata;

        managed_reach(managed, WAKE_STARTED, at_ns);
        log_info("policy \"%s\": started, pid %d", managed->policy->name, pid);
}

static void tell_of_exit(struct managed *managed, const struct process_exit *exit)
{
        uint64_t now = now_monotonic_ns(), again = process_start_after_ns(managed->process);
        char delay[DURATION_TEXT_MAX];

        if (process_crashes(managed->process) > 1 && again > now)
                managed_set_condition(managed, CONDITION_PROCESS_FAILED, "CrashLoop", "%s, %u times in a row; not started for %s",
                                      exit->message, process_crashes(managed->process), duration_format(again - now, delay));
        else
                managed_set_condition(managed, CONDITION_PROCESS_FAILED, exit->error ? "CannotStart" : "ProcessExited", "%s",
                                      exit->message);
}

/* A process that ends while packets are still being released leaves clients behind whose demand is long known. */
static void wake_for_those_left(struct managed *managed)
{
        uint64_t now = now_monotonic_ns();

        if (managed->machine.phase != PHASE_ASLEEP || holding_parked(managed->holding) == 0)
                return;

        managed->client_search = client_search_free(managed->client_search);
        managed->wake = (struct wake_record){ .cause = CAUSE_PACKET, .zero_ns = now, .realtime_ns = now_realtime_ns() };
        managed->wakes[CAUSE_PACKET]++;
        managed_reach(managed, WAKE_DETECTED, now);
        event_log_add(managed->context->events, managed->policy->name, "Woken", "packets were still held when its process ended");
        managed_step(managed, PHASE_EVENT_DEMAND);
}

static void on_exited(struct process *process, const struct process_exit *exit, void *userdata)
{
        struct managed *managed = userdata;

        if (managed->stopping) {
                managed->stopping = false;
                managed->sleep.stopped_ns = now_monotonic_ns();
                event_log_add(managed->context->events, managed->policy->name, "Stopped", "%s", exit->message);
                managed_save_state(managed);
                return;
        }
        tell_of_exit(managed, exit);
        managed_step(managed, PHASE_EVENT_GONE);
        wake_for_those_left(managed);
}

const struct process_callbacks managed_process_callbacks = { .started = on_started, .exited = on_exited };

/* Whether the cgroup with this id is the target's own or below it. */
static bool cgroup_is_ours(const struct managed *managed, uint64_t id)
{
        _cleanup_(freep) char *path = NULL;
        const char *root = managed->context->cgroup_root, *ours = managed->cgroup + strlen(root);
        size_t length = strlen(ours);

        if (id == managed->cgroup_id || id == 0)
                return true;
        if (strncmp(managed->cgroup, root, strlen(root)) != 0 || cgroup_path_by_id(root, id, &path) < 0)
                return false;
        return strncmp(path, ours, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* A process that is being stopped may go on listening for a while; what comes then is for the next one. */
static bool accept_listener(size_t index, const struct listener *listener, void *userdata)
{
        struct managed *managed = userdata;
        char frontend[FRONTEND_TEXT_MAX];

        if (cgroup_is_ours(managed, listener->cgroup)) {
                if (process_state(managed->process) != PROCESS_RUNNING || managed->stopping)
                        return false;
                managed_clear_condition(managed, CONDITION_PORT_IN_USE);
                return true;
        }

        managed_set_condition(managed, CONDITION_PORT_IN_USE, "ForeignListener",
                              "a process outside the target's cgroup listens on %s; it gets the connections",
                              frontend_format(&managed->policy->frontends[index], frontend));
        return true;
}

static bool has_settled(void *userdata)
{
        const struct managed *managed = userdata;

        return cgroup_has_settled(managed->cgroup);
}

static void on_ready(size_t index, void *userdata)
{
        struct managed *managed = userdata;

        if (managed->machine.phase != PHASE_WAKING || !phase_holds(&managed->machine))
                return;
        managed_reach(managed, WAKE_READY, now_monotonic_ns());
        holding_release(managed->holding, index);
}

static void on_all_ready(void *userdata)
{
        struct managed *managed = userdata;

        managed_clear_condition(managed, CONDITION_NOT_LISTENING);
        managed_step(managed, PHASE_EVENT_READY);
}

const struct readiness_callbacks managed_readiness_callbacks = {
        .accept = accept_listener,
        .settled = has_settled,
        .ready = on_ready,
        .all_ready = on_all_ready,
};
