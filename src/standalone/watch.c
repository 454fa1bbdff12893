/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "standalone/managed.h"

enum { CUT_CLIENTS_MAX = 64 };

#define HOLD_AGAIN_NS (10 * NSEC_PER_SEC)
#define LOOK_NS (100 * NSEC_PER_MSEC) /* within it, all policies are told of from one look at all connections */

/* What it serves is what clients are held for: nothing is translated on one machine. */
static void settings_of(const struct policy *policy, struct workload_port ports[static POLICY_FRONTENDS_MAX],
                        struct workload_settings *ret_settings)
{
        for (size_t i = 0; i < policy->n_frontends; i++)
                ports[i] = (struct workload_port){ .port = policy->frontends[i].port, .protocol = policy->frontends[i].protocol };
        *ret_settings = (struct workload_settings){
                .name = policy->name, .policy = policy, .ports = ports, .n_ports = policy->n_frontends
        };
}

/* A cgroup that was removed and made again has another id, and nothing attached. */
static int watch_cgroup(struct managed *managed)
{
        struct context *context = managed->context;
        struct workload_port ports[POLICY_FRONTENDS_MAX];
        struct workload_settings settings;
        uint64_t id;
        int r;

        r = cgroup_make(managed->cgroup);
        if (r < 0)
                return r;
        r = cgroup_id(managed->cgroup, &id);
        if (r < 0)
                return r;
        if (managed->workload && managed->cgroup_id == id)
                return 0;

        managed->cgroup_id = id;
        managed->workload = workload_free(managed->workload, false);
        settings_of(managed->policy, ports, &settings);
        return workload_new(context->activity, &settings, managed->cgroup, managed, &managed->workload);
}

int managed_watch_changed(struct managed *managed)
{
        struct workload_port ports[POLICY_FRONTENDS_MAX];
        struct workload_settings settings;

        if (!managed->workload)
                return 0;
        settings_of(managed->policy, ports, &settings);
        return workload_update(managed->workload, &settings);
}

void managed_watch(struct managed *managed)
{
        int r = watch_cgroup(managed);

        if (r < 0)
                log_error("policy \"%s\": cannot watch what happens in %s: %s; it will stay awake", managed->policy->name,
                          managed->cgroup, strerror(-r));
        managed_watch_gpu(managed);
}

/* @r is the result of reading its activity. */
static void judge(struct managed *managed, int r)
{
        if (r >= 0 && process_state(managed->process) != PROCESS_RUNNING)
                r = -ESRCH; /* what serves instead is not seen */
        managed->snapshot_known = r >= 0;
        idle_judge(managed->policy, r < 0 ? NULL : &managed->snapshot, r < 0 ? r : 0, managed->machine.since_ns,
                   managed->idle_factor, now_monotonic_ns(), &managed->verdict);
}

static void judge_connections(struct managed *managed, uint64_t not_before_ns)
{
        judge(managed, managed->workload ? workload_read(managed->workload, not_before_ns, &managed->snapshot) : -ENODEV);
}

static void tell_verdict(struct managed *managed)
{
        if (managed->verdict.verdict == VERDICT_UNKNOWN)
                managed_set_condition(managed, CONDITION_IDLE_UNKNOWN, "ActivityUnreadable", "%s; it stays awake",
                                      managed->verdict.reason);
        else
                managed_clear_condition(managed, CONDITION_IDLE_UNKNOWN);

        if (managed->policy->dry_run && managed->verdict.verdict == VERDICT_IDLE)
                managed_set_condition(managed, CONDITION_DRY_RUN, "DryRun", "it would go to sleep now");
        else
                managed_clear_condition(managed, CONDITION_DRY_RUN);
}

void managed_judge(struct managed *managed)
{
        uint64_t lately_ns = MIN(managed->policy->idle.after_ns / 4, 5 * NSEC_PER_SEC);

        judge(managed, managed->workload ? workload_read_totals(managed->workload, &managed->snapshot) : -ENODEV);
        if (managed->verdict.verdict == VERDICT_IDLE)
                judge_connections(managed, now_monotonic_ns() - lately_ns);
        if (managed->verdict.verdict == VERDICT_IDLE)
                managed_judge_gpu(managed);
        tell_verdict(managed);
}

void managed_look(struct managed *managed)
{
        judge_connections(managed, now_monotonic_ns() - LOOK_NS);
        if (managed->verdict.verdict == VERDICT_IDLE)
                managed_judge_gpu(managed);
        tell_verdict(managed);
}

/* A connection that opened since the verdict keeps awake whose policy says so; only an operator may cut it. */
static bool is_held_by_connection(const struct managed *managed)
{
        return managed->policy->idle.connections == SILENCE_HOLD && managed->sleep.cause != CAUSE_OPERATOR &&
               managed->snapshot.connections > 0;
}

/* The last look before the stop: anything that happened since holding began, or that cannot be read or held, keeps it awake, and so do
 * packets that wait since before. A connection whose handshake ended just before holding began shows as payload or as an open request
 * here. */
enum phase_event managed_verify(struct managed *managed)
{
        judge_connections(managed, now_monotonic_ns());
        tell_verdict(managed);

        if (managed_lacks_holding(managed))
                return PHASE_EVENT_ACTIVE;
        if (managed->verdict.verdict == VERDICT_UNKNOWN || managed->snapshot.open_requests > 0 ||
            managed->snapshot.last_ns >= managed->machine.since_ns || is_held_by_connection(managed))
                return PHASE_EVENT_ACTIVE;
        if (managed->sleep.cause != CAUSE_OPERATOR && !managed_gpu_allows_sleep(managed))
                return PHASE_EVENT_ACTIVE;
        if (holding_has_demand(managed->holding) || holding_parked(managed->holding) > 0)
                return PHASE_EVENT_DEMAND;
        return PHASE_EVENT_QUIET;
}

void managed_remember_cut_clients(struct managed *managed)
{
        struct workload_connection connections[CUT_CLIENTS_MAX];
        int n = managed->workload ? workload_connections(managed->workload, connections, CUT_CLIENTS_MAX) : 0;

        managed->n_cut_clients = 0;
        free(managed->cut_clients);
        managed->cut_clients = n > 0 ? calloc((size_t)n, sizeof(*managed->cut_clients)) : NULL;
        for (int i = 0; managed->cut_clients && i < n; i++)
                managed->cut_clients[managed->n_cut_clients++] = connections[i].remote;
}

bool managed_was_cut(const struct managed *managed, const struct address *client, uint64_t now_ns)
{
        uint64_t worthwhile = managed->policy->idle.after_ns * managed->idle_factor;

        if (now_ns - managed->machine.since_ns > worthwhile)
                return false;
        for (size_t i = 0; i < managed->n_cut_clients; i++)
                if (address_equal(&managed->cut_clients[i], client))
                        return true;
        return false;
}

/* When an idle policy is too young to sleep, the verdict alone would have it looked at again and again. */
static uint64_t next_look(const struct managed *managed)
{
        uint64_t old_enough = managed->machine.since_ns + managed->settings.min_awake_ns;
        uint64_t now = now_monotonic_ns();

        if (managed->verdict.look_again_ns > now)
                return managed->verdict.look_again_ns;
        return MAX(old_enough, now + NSEC_PER_SEC);
}

void managed_arm_timer(struct managed *managed)
{
        uint64_t due = phase_deadline(&managed->machine);
        int r;

        if (managed->machine.phase == PHASE_AWAKE && !managed->retiring) {
                uint64_t look = next_look(managed);

                due = due ? MIN(due, look) : look;
        }
        if (managed_lacks_holding(managed)) {
                uint64_t again = now_monotonic_ns() + HOLD_AGAIN_NS;

                due = due ? MIN(due, again) : again;
        }
        if (managed->retiring)
                due = due ? MIN(due, managed->retire_deadline_ns) : managed->retire_deadline_ns;

        r = managed_set_timer(managed, due);
        if (r < 0)
                log_error("policy \"%s\": cannot set its timer: %s", managed->policy->name, strerror(-r));
}
