/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/managed.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "gpu/watch.h"
#include "hold/hold.h"
#include "serve/event_log.h"
#include "standalone/client.h"
#include "standalone/readiness.h"

/* How long nothing may happen between the start of holding and the stop of the target. */
#define QUIET_NS (100 * NSEC_PER_MSEC)

static struct phase_settings settings_of(const struct policy *policy)
{
        return (struct phase_settings){
                .min_awake_ns = policy->idle.min_awake_ns,
                .hold_timeout_ns = policy->wake.hold_timeout_ns,
                .quiet_ns = QUIET_NS,
                .dry_run = policy->dry_run,
        };
}

/* A target that listens on some of its frontends when the time is up is as awake as it gets. */
static bool accept_partly_ready(struct managed *managed)
{
        char frontend[FRONTEND_TEXT_MAX];

        if (managed->machine.phase != PHASE_WAKING || !phase_holds(&managed->machine) || !managed->readiness ||
            readiness_count(managed->readiness) == 0)
                return false;

        for (size_t i = 0; i < managed->policy->n_frontends; i++)
                if (!readiness_is_ready(managed->readiness, i)) {
                        managed_set_condition(managed, CONDITION_NOT_LISTENING, "NoListener", "nobody listens on %s",
                                              frontend_format(&managed->policy->frontends[i], frontend));
                        break;
                }
        readiness_end(managed->readiness);
        managed_step(managed, PHASE_EVENT_READY);
        return true;
}

/* Awake because of somebody else's server, which is gone. */
static bool nobody_serves(struct managed *managed)
{
        return process_state(managed->process) == PROCESS_STOPPED && readiness_count_now(managed->readiness) == 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct managed *managed = userdata;
        uint64_t deadline = phase_deadline(&managed->machine), now = now_monotonic_ns();

        if (managed->retiring && managed->retire_deadline_ns <= now) {
                managed->context->retired(managed, managed->context->userdata);
                return 0;
        }
        if (deadline && deadline <= now) {
                if (!accept_partly_ready(managed))
                        managed_step(managed, PHASE_EVENT_TIME);
                return 0;
        }

        if (managed_lacks_holding(managed))
                managed_hold(managed);
        if (managed->machine.phase == PHASE_AWAKE && !managed->retiring) {
                if (nobody_serves(managed)) {
                        managed_clear_condition(managed, CONDITION_PORT_IN_USE);
                        managed_step(managed, PHASE_EVENT_GONE);
                        return 0;
                }
                managed_judge(managed);
                if (managed->verdict.verdict == VERDICT_IDLE) {
                        managed_step(managed, PHASE_EVENT_IDLE);
                        return 0;
                }
        }
        managed_arm_timer(managed);
        return 0;
}

int managed_set_timer(struct managed *managed, uint64_t due_ns)
{
        uint64_t due = due_ns / NSEC_PER_USEC + 1;
        int r;

        if (due_ns == 0)
                return managed->timer ? sd_event_source_set_enabled(managed->timer, SD_EVENT_OFF) : 0;
        if (!managed->timer)
                return sd_event_add_time(managed->context->event, &managed->timer, CLOCK_MONOTONIC, due,
                                         NSEC_PER_MSEC / NSEC_PER_USEC, on_timer, managed);
        r = sd_event_source_set_time(managed->timer, due);
        return r < 0 ? r : sd_event_source_set_enabled(managed->timer, SD_EVENT_ONESHOT);
}

static int make_process(struct managed *managed)
{
        struct context *context = managed->context;
        _cleanup_(freep) char *log_file = NULL;

        if (context->log_dir && asprintf(&log_file, "%s/%s.log", context->log_dir, managed->policy->name) < 0)
                return -ENOMEM;

        struct process_config config = {
                .event = context->event,
                .name = managed->policy->name,
                .cgroup = managed->cgroup,
                .log_file = log_file,
                .open_files = context->open_files,
                .settings = &managed->policy->process,
        };
        return process_new(&config, &managed_process_callbacks, managed, &managed->process);
}

static int make_holding(struct managed *managed)
{
        const struct policy *policy = managed->policy;
        _cleanup_(freep) struct holding_ignore *ignore = calloc(MAX(policy->n_ignore, (size_t)1), sizeof(*ignore));

        if (!ignore)
                return -ENOMEM;
        for (size_t i = 0; i < policy->n_ignore; i++)
                ignore[i] = (struct holding_ignore){ policy->ignore[i].prefix, policy->ignore[i].port };

        struct holding_config config = {
                .name = policy->name,
                .frontends = policy->frontends,
                .n_frontends = policy->n_frontends,
                .from = policy->wake.from,
                .n_from = policy->wake.n_from,
                .ignore = ignore,
                .n_ignore = policy->n_ignore,
                .max_held = policy->wake.max_held,
                .hold_timeout_ns = policy->wake.hold_timeout_ns,
        };
        return holding_new(managed->context->hold, &config, managed, &managed->holding);
}

static int make_readiness(struct managed *managed)
{
        return readiness_new(managed->context->event, managed->context->sockets, managed->policy->frontends,
                             managed->policy->n_frontends, &managed_readiness_callbacks, managed, &managed->readiness);
}

int managed_equip(struct managed *managed)
{
        int r = 0;

        if (!managed->process)
                r = make_process(managed);
        if (r >= 0 && !managed->readiness)
                r = make_readiness(managed);
        return r;
}

static int make_parts(struct managed *managed)
{
        int r = make_holding(managed);

        if (r >= 0 && process_runs_in(managed->cgroup))
                r = managed_equip(managed);
        return r;
}

/* What runs already is awake, or about to be; unless it runs because an earlier daemon was stopped while it was stopping it. */
static void begin(struct managed *managed)
{
        struct saved_phase saved = { 0 };
        int r;

        r = managed_load_state(managed, &saved);
        if (r < 0 && r != -ENOENT)
                log_warning("policy \"%s\": its state is not readable and starts anew: %s", managed->policy->name, strerror(-r));

        if (process_state(managed->process) != PROCESS_RUNNING) {
                managed_begin(managed, PHASE_ASLEEP);
                return;
        }
        if (saved.phase == PHASE_ASLEEP) {
                managed_begin(managed, PHASE_ASLEEP);
                managed_stop_target(managed);
                return;
        }
        managed_watch(managed);
        if (readiness_count_now(managed->readiness) < managed->policy->n_frontends) {
                managed_begin(managed, PHASE_WAKING);
                readiness_begin(managed->readiness);
                return;
        }

        managed_begin(managed, PHASE_AWAKE);
        if (saved.phase == PHASE_AWAKE && saved.since_ns && saved.since_ns < managed->machine.since_ns) {
                managed->machine.since_ns = saved.since_ns;
                managed->since_realtime_ns = saved.since_realtime_ns;
        }
}

int managed_new(struct context *context, struct policy *policy, struct managed **ret_managed)
{
        struct managed *managed = calloc(1, sizeof(*managed));
        int r;

        if (!managed)
                return -ENOMEM;
        managed->context = context;
        managed->policy = policy;
        managed->settings = settings_of(policy);
        managed->idle_factor = managed->gpu_factor = 1;

        r = asprintf(&managed->cgroup, "%s/%s", context->cgroup, policy->name) < 0 ? -ENOMEM : 0;
        if (r == 0)
                r = make_parts(managed);
        if (r < 0) {
                managed->policy = NULL; /* the caller's still */
                managed_free(managed, false);
                return r;
        }

        begin(managed);
        *ret_managed = managed;
        return 0;
}

struct managed *managed_free(struct managed *managed, bool keep_pins)
{
        if (!managed)
                return NULL;

        if (!keep_pins && managed->policy)
                managed_forget_state(managed);
        client_search_free(managed->client_search);
        sd_event_source_disable_unref(managed->timer);
        readiness_free(managed->readiness);
        gpu_tenant_free(managed->gpu);
        workload_free(managed->workload, keep_pins);
        holding_free(managed->holding);
        process_free(managed->process);
        json_decref(managed->earlier_wake);
        json_decref(managed->earlier_sleep);
        policy_free(managed->policy);
        for (size_t i = 0; i < CONDITION_MAX; i++)
                free(managed->conditions[i].message);
        free(managed->cut_clients);
        free(managed->cgroup);
        free(managed);
        return NULL;
}

static bool same_frontends(const struct policy *a, const struct policy *b)
{
        if (a->n_frontends != b->n_frontends)
                return false;
        for (size_t i = 0; i < a->n_frontends; i++)
                if (!frontend_equal(&a->frontends[i], &b->frontends[i]))
                        return false;
        return true;
}

/* Frontends and who may wake are the holding's for its life: a change makes a new one, which takes over what is parked. Where nothing
 * is to be held, what is still being released goes on at once. */
static int replace_holding(struct managed *managed)
{
        _cleanup_(readiness_freep) struct readiness *old_readiness = managed->readiness;
        _cleanup_(holding_freep) struct holding *old = managed->holding;
        int r;

        r = make_holding(managed);
        managed->readiness = NULL;
        if (r >= 0 && old_readiness && (r = make_readiness(managed)) < 0)
                holding_free(managed->holding);
        if (r < 0) {
                managed->holding = TAKE_PTR(old);
                managed->readiness = TAKE_PTR(old_readiness);
                return r;
        }

        if (phase_holds(&managed->machine)) {
                managed_hold(managed);
                holding_move(old, managed->holding);
        }
        if (managed->machine.phase == PHASE_WAKING)
                r = readiness_begin(managed->readiness);
        return r;
}

static bool same_holding(const struct policy *a, const struct policy *b)
{
        if (!same_frontends(a, b) || a->wake.max_held != b->wake.max_held || a->wake.hold_timeout_ns != b->wake.hold_timeout_ns ||
            a->wake.n_from != b->wake.n_from || a->n_ignore != b->n_ignore)
                return false;
        for (size_t i = 0; i < a->wake.n_from; i++)
                if (memcmp(&a->wake.from[i], &b->wake.from[i], sizeof(a->wake.from[i])) != 0)
                        return false;
        for (size_t i = 0; i < a->n_ignore; i++)
                if (a->ignore[i].port != b->ignore[i].port ||
                    memcmp(&a->ignore[i].prefix, &b->ignore[i].prefix, sizeof(a->ignore[i].prefix)) != 0)
                        return false;
        return true;
}

int managed_update(struct managed *managed, struct policy *policy)
{
        struct policy *old = managed->policy;
        int r;

        r = managed->process ? process_update(managed->process, &policy->process) : 0;
        if (r < 0)
                return r;
        managed->policy = policy;
        r = same_holding(old, policy) ? 0 : replace_holding(managed);
        if (r < 0) {
                managed->policy = old;
                return r;
        }
        r = managed_watch_changed(managed);
        if (r < 0) { /* what it counted is not the new policy's: unknown, until it runs anew */
                managed->workload = workload_free(managed->workload, false);
                log_error("policy \"%s\": cannot watch what it now says: %s; it will stay awake", policy->name, strerror(-r));
        }

        policy_free(old);
        managed->settings = settings_of(policy);
        managed->retiring = false;
        managed_arm_timer(managed);
        return 0;
}

void managed_retire(struct managed *managed)
{
        managed->retiring = true;
        managed->retire_deadline_ns = now_monotonic_ns() + managed->policy->wake.hold_timeout_ns;

        if (managed->machine.phase == PHASE_AWAKE && !holding_is_started(managed->holding)) {
                managed->context->retired(managed, managed->context->userdata);
                return;
        }
        if (managed->machine.phase == PHASE_ASLEEP) {
                uint64_t now = now_monotonic_ns();

                managed->wake = (struct wake_record){ .cause = CAUSE_OPERATOR, .realtime_ns = now_realtime_ns(), .zero_ns = now };
                event_log_add(managed->context->events, managed->policy->name, "Woken", "its policy was removed");
        }
        managed_step(managed, PHASE_EVENT_WAKE);
}
