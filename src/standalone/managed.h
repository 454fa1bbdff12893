/* SPDX-License-Identifier: Apache-2.0 */
/* One policy at work: its phase machine wired to its target process, its holding and its workload's activity.
 *
 * The machine decides, the files around it carry out: managed.c makes and ends one, step.c performs transitions, watch.c judges
 * idleness, and the callbacks of the parts are in events.c. The struct is open to this directory only.
 */
#pragma once

#include <jansson.h>
#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "activity/idle.h"
#include "policy/phase.h"
#include "policy/policy.h"
#include "serve/metrics.h"
#include "standalone/record.h"
#include "target/process.h"

struct activity;
struct client_search;
struct event_log;
struct gpu_tenant;
struct gpu_watch;
struct hold;
struct holding;
struct hold_demand;
struct managed;
struct readiness;
struct sockets;
struct workload;

/* What all policies of a daemon share. */
struct context {
        sd_event *event;
        struct hold *hold;
        struct activity *activity;
        struct gpu_watch *gpu;
        struct sockets *sockets;
        struct event_log *events;
        char *cgroup;      /* parent of the targets' cgroups */
        char *cgroup_root; /* the cgroup2 mount */
        const char *log_dir;
        char *state_dir;
        rlim_t open_files; /* the soft limit that the daemon was given: its targets' */
        struct histogram wake_phases[WAKE_PHASE_MAX];

        /* A retired policy has nothing left to do: free it, but not from within this call. */
        void (*retired)(struct managed *managed, void *userdata);
        void *userdata;
};

struct managed {
        struct context *context;
        struct policy *policy;
        char *cgroup;
        uint64_t cgroup_id;

        struct phase_machine machine;
        struct phase_settings settings;
        struct process *process; /* NULL, as readiness and workload are, until the target first runs: what sleeps costs little */
        struct holding *holding;
        struct workload *workload;
        struct readiness *readiness;
        sd_event_source *timer; /* NULL until it is first needed */

        bool stopping; /* the end of the process is our own doing */
        bool retiring; /* its policy is gone: it wakes, and then it is forgotten */
        bool retired;  /* to be forgotten at the next turn of the event loop */
        uint64_t retire_deadline_ns;

        struct workload_snapshot snapshot;
        bool snapshot_known;
        struct idle_verdict verdict;
        unsigned idle_factor;        /* flapping */
        struct gpu_tenant *gpu;      /* NULL, as workload is, while it does not run */
        unsigned gpu_factor;         /* gpu_window_factor() */
        unsigned gpus_before;        /* that it had open when it was put to sleep */
        double gpu_saved_seconds;    /* of sleeps that are over */
        struct address *cut_clients; /* whose connections the last sleep cut, 64 at most */
        size_t n_cut_clients;

        uint64_t since_realtime_ns; /* when the phase began, for people */
        struct wake_record wake;
        struct sleep_record sleep;
        struct client_search *client_search;
        json_t *earlier_wake, *earlier_sleep; /* of an earlier daemon, or NULL */
        struct condition conditions[CONDITION_MAX];

        uint64_t transitions[PHASE_MAX][PHASE_MAX];
        uint64_t wakes[CAUSE_MAX];
        uint64_t wake_failures;
        uint64_t asleep_ns; /* of sleeps that are over */
};

/* managed.c. Takes @policy over. Begins Awake or Waking where the process runs already, else Asleep. Logs nothing. */
int managed_new(struct context *context, struct policy *policy, struct managed **ret_managed);
/* Leaves the process alone. @keep_pins: a planned stop, the next daemon goes on; otherwise the policy is forgotten. */
struct managed *managed_free(struct managed *managed, bool keep_pins);
/* Follows a changed policy of the same name, which it takes over on success. */
int managed_update(struct managed *managed, struct policy *policy);
/* Makes what a running target needs, once. Returns 0 or -errno. */
int managed_equip(struct managed *managed);
/* 0: never. */
int managed_set_timer(struct managed *managed, uint64_t due_ns);
/* The policy is gone: a sleeping workload is woken first, then context.retired() is called; after holdTimeout in any case. */
void managed_retire(struct managed *managed);

/* step.c */
void managed_step(struct managed *managed, enum phase_event event);
void managed_begin(struct managed *managed, enum phase phase);
/* An operator's wish. *ret_message says what happened, or why nothing did; static. Returns 0, or -EBUSY when nothing happened. */
int managed_wake(struct managed *managed, const char **ret_message);
int managed_sleep(struct managed *managed, const char **ret_message);
void managed_arm_timer(struct managed *managed);
void managed_stop_target(struct managed *managed);
/* Holds its frontends. A failure becomes a condition, and is tried again every 10 s where it has to hold. */
void managed_hold(struct managed *managed);
bool managed_lacks_holding(const struct managed *managed); /* it has to hold, and does not */
void managed_set_condition(struct managed *managed, enum condition_type type, const char *reason, const char *format, ...)
        _printf_(4, 5);
void managed_clear_condition(struct managed *managed, enum condition_type type);
void managed_reach(struct managed *managed, enum wake_phase phase, uint64_t now_ns);
uint64_t managed_asleep_ns(const struct managed *managed, uint64_t now_ns); /* all sleeps, the present one included */

/* watch.c */
/* Sees to it that what runs in the target's cgroup is watched; what sleeps is not, so that it costs nothing. A failure is logged, and
 * keeps the workload awake. */
void managed_watch(struct managed *managed);
int managed_watch_changed(struct managed *managed); /* its policy is another now; returns 0 or -errno */
/* Whether it is idle. Looks at its connections only if nothing else says that it is busy: the snapshot may know none. */
void managed_judge(struct managed *managed);
/* The same, with a snapshot that tells all. */
void managed_look(struct managed *managed);
/* Answers the end of the quiet time in Sleeping. */
enum phase_event managed_verify(struct managed *managed);
void managed_remember_cut_clients(struct managed *managed);
/* Whether @client's connection was cut by the last sleep, and its wake comes so soon that sleeping was not worth it. */
bool managed_was_cut(const struct managed *managed, const struct address *client, uint64_t now_ns);

/* gpu.c. Like managed_watch(), of its GPUs; the opposite, once it is asleep; and what follows from a sleep that is over. */
void managed_watch_gpu(struct managed *managed);
void managed_forget_gpu(struct managed *managed);
void managed_woke_gpu(struct managed *managed, uint64_t slept_ns);
/* Turns an idle verdict into another one, with the reason, unless its GPUs are certainly idle too, or it has none. */
void managed_judge_gpu(struct managed *managed);
bool managed_gpu_allows_sleep(struct managed *managed);                           /* looks afresh */
double managed_gpu_saved_seconds(const struct managed *managed, uint64_t now_ns); /* all sleeps, the present one included */
json_t *managed_gpu_json(const struct managed *managed);                          /* json_null() without one */

/* events.c: what the parts report. */
void managed_on_demand(struct managed *managed, const struct hold_demand *demand);
void managed_on_released(struct managed *managed, uint64_t at_ns);
void managed_on_answered(struct managed *managed, uint64_t at_ns);
void managed_on_drained(struct managed *managed);
void managed_on_bound(struct managed *managed);
extern const struct process_callbacks managed_process_callbacks;
extern const struct readiness_callbacks managed_readiness_callbacks;

/* state.c: what outlives the daemon, one JSON file a policy below the state directory. */
void managed_save_state(struct managed *managed);
struct saved_phase { /* all 0, Awake, where nothing was saved since the machine was started */
        enum phase phase;
        uint64_t since_ns; /* monotonic */
        uint64_t since_realtime_ns;
};
/* Restores the records and the flapping factor. */
int managed_load_state(struct managed *managed, struct saved_phase *ret_saved);
void managed_forget_state(struct managed *managed);

/* view.c: the policy as in docs/control-api.md. */
json_t *managed_json(struct managed *managed);
