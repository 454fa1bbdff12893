/* SPDX-License-Identifier: Apache-2.0 */
/* One policy on this node: what its status asks for, carried out.
 *
 * The status decides, the files carry out: agent_policy.c follows the object and what the hooks say, releasing.c its endpoints and their
 * probes, pods.c the pods on this node, judge.c their idleness and the quiet vote, gpu.c what their GPUs have to do with it. Open to this
 * directory only.
 */
#pragma once

#include <jansson.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "activity/idle.h"
#include "agent/node.h"
#include "agent/plan.h"
#include "agent/probe.h"
#include "kube/label_selector.h"
#include "kube/node_activity.h"

/* How long the controllers have to answer a demand in Sleeping, while the pods still run. */
#define PASS_ON_NS (2 * UINT64_C(1000000000))
/* How long what was held waits for an endpoint or the data plane once the policy is Awake. */
#define GIVE_UP_NS (30 * UINT64_C(1000000000))
/* For that long after a wake a controller names endpoints: where there are none, they are gone, and others will come. It keeps them for
 * 10 s; this node may have heard later that it is Awake. */
#define ENDPOINTS_NAMED_NS (8 * UINT64_C(1000000000))
#define HOLD_AGAIN_NS (10 * UINT64_C(1000000000))
#define QUIET_NS (100 * UINT64_C(1000000))

struct agent_endpoint { /* one of the status, followed while this node may release to it */
        struct address address;
        char *pod_uid;
        bool seen; /* while the list is gone through */
        bool ready, passed;
        struct probe *probe;
        struct agent_policy *policy;
};

struct agent_pod { /* one of the policy's pods on this node */
        LIST_ENTRY(agent_pod) others;
        char *key; /* "namespace/name" */
        char *uid;
        struct workload *workload; /* NULL: it cannot be watched, because of @error */
        int error;
        struct gpu_tenant *gpu; /* NULL: this agent does not watch GPUs, or not this pod's */
        char gpu_request[64];   /* what it asks for that is a GPU, or may be one; "" */
        uint32_t n_gpus;        /* that it asks for */
        uint64_t since_ns;      /* known since */
        bool seen;
        struct workload_snapshot snapshot; /* the last that could be read */
};

struct watched { /* the settings of workloads, but for the policy's own */
        int64_t generation;
        struct workload_port *ports;
        size_t n_ports;
        struct prefix *ignored;
        size_t n_ignored;
};

struct wake_story {           /* the last wake, as this node saw it */
        uint64_t realtime_ns; /* 0: none yet */
        uint64_t zero_ns;     /* the first packet */
        struct flow flow;
        bool from_this_host;
        uint64_t reached_ns[WAKE_STEP_MAX];
};

struct agent_policy {
        UT_hash_handle by_name;
        LIST_ENTRY(agent_policy) demanded, with_pods, unprogrammed;
        struct node *node;
        char *name;                         /* "namespace/name" */
        const struct scale_to_zero *object; /* the newest, in the reflector's keeping */
        sd_event_source *timer;             /* NULL until it is first needed */

        /* what was followed last */
        int64_t epoch;
        enum phase phase;
        bool followed;
        bool failed;

        /* holding */
        struct hold_plan *plan;        /* what the holding was made of; NULL without one */
        struct holding *holding;       /* NULL: nothing to hold here */
        uint64_t held_since_ns;        /* since it began to hold in this epoch */
        uint64_t hold_again_ns;        /* when to try again what failed; 0: it did not */
        uint64_t unprogrammed_version; /* of the object that could not be put into force; 0: it could */
        uint64_t pass_on_ns;           /* in Sleeping, a demand that nobody has answered goes on then; 0: none */
        uint64_t give_up_ns;           /* 0: never */
        uint64_t woken_ns;             /* became Awake by a wake; 0: did not, or is not any more */
        uint64_t waking_ns;            /* became Waking; 0: is not */
        uint64_t cold_start_ns;        /* what its last wake took, as this node saw it; 0: it saw none */
        bool passed_on;                /* in this epoch */
        bool expecting;                /* the data plane */
        bool drained;                  /* the data plane was proven while the status still says to hold */

        /* demand */
        bool armed; /* the next packet is told of */
        bool has_demand;
        bool demand_sent;          /* it is in the write under way, or in the API server */
        struct node_demand demand; /* policy is the name; source is owned */

        /* releasing */
        struct agent_endpoint *endpoints[STATUS_ENDPOINTS_MAX];
        size_t n_endpoints;
        struct holding_endpoint *released_to; /* of each frontend, STATUS_ENDPOINTS_MAX; NULL: nothing yet */
        size_t *n_released_to;

        /* pods */
        char *selector_text;
        struct label_selector *selector; /* NULL: it has none */
        LIST_HEAD(, agent_pod) pods;
        unsigned n_pods;
        struct watched *watched;     /* what the workloads were told last; NULL without pods */
        struct idle_verdict verdict; /* on all of them */
        enum workload_state state;
        uint64_t state_since_ns; /* CLOCK_REALTIME */
        int64_t quiet_epoch;     /* the vote; -1: none */
        bool unquiet;            /* it had demand or activity in this epoch's Sleeping */
        uint64_t look_ns;
        struct node_gpu gpu; /* as controllers are told */

        struct wake_story wake;
        uint64_t n_demands;
};

/* agent_policy.c. Returns 0 or -ENOMEM; nothing is held before agent_policy_follow(). */
int agent_policy_new(struct node *node, const char *name, struct agent_policy **ret_policy);
/* @keep_pins: a planned stop. The hold is suspended before, or goes on without it. */
struct agent_policy *agent_policy_free(struct agent_policy *policy, bool keep_pins);
/* The object, in the reflector's keeping, is the newest. */
void agent_policy_follow(struct agent_policy *policy, const struct scale_to_zero *object);
void agent_policy_arm_timer(struct agent_policy *policy);
bool agent_policy_is_releasing(const struct agent_policy *policy); /* flows go to endpoints or the data plane */

/* demand.c: what the hold reports */
struct hold_demand;
void agent_policy_on_demand(struct agent_policy *policy, const struct hold_demand *demand);
void agent_policy_on_released(struct agent_policy *policy, uint64_t at_ns);
void agent_policy_on_answered(struct agent_policy *policy, uint64_t at_ns);
void agent_policy_on_drained(struct agent_policy *policy);
void agent_policy_on_reported(struct agent_policy *policy);
/* Drops the demand when the status has moved on; tells again what still waits when the status asks for it. */
void agent_policy_follow_demand(struct agent_policy *policy);
bool agent_policy_reports(const struct agent_policy *policy); /* whether its demand means something to controllers now */
void agent_policy_reach(struct agent_policy *policy, enum wake_step step, uint64_t at_ns);

/* releasing.c */
void agent_policy_follow_endpoints(struct agent_policy *policy);
void agent_policy_forget_endpoints(struct agent_policy *policy);

/* pods.c */
struct kube_pod;
void agent_policy_follow_pods(struct agent_policy *policy); /* the selector, the ports or what is ignored may have changed */
void agent_policy_pod_changed(struct agent_policy *policy, const char *key, const struct kube_pod *pod); /* NULL: it is gone */
void agent_policy_forget_pods(struct agent_policy *policy, bool keep_pins);
void agent_policy_watch(struct agent_policy *policy,
                        struct agent_pod *pod); /* its cgroup, if it is there; or with changed settings */

/* judge.c */
void agent_policy_judge(struct agent_policy *policy);
/* Looks at everything now, for people. */
void agent_policy_look(struct agent_policy *policy);
void agent_policy_withdraw(struct agent_policy *policy,
                           const char *reason); /* there was demand or activity: no vote, and none taken later */

/* gpu.c. What it asks for may have become known. */
void agent_policy_note_gpu(struct agent_pod *pod, const struct kube_pod *kube_pod);
/* Its cgroup is known; idempotent. */
void agent_policy_watch_gpu(struct agent_policy *policy, struct agent_pod *pod, const char *cgroup);
void agent_policy_forget_gpu(struct agent_pod *pod);
/* Which devices are allocated to it may be known by now, or others than before. */
void agent_policy_tell_allocations(const struct agent_policy *policy, struct agent_pod *pod);
/* Turns @verdict, if it is idle, into another one, with the reason, unless the pods' GPUs are certainly idle too, or they have none. Of
 * the pods of another verdict nothing is looked at. Controllers are told what has changed. */
void agent_policy_judge_gpu(struct agent_policy *policy, struct idle_verdict *verdict);
bool agent_policy_gpu_permits(const struct agent_policy *policy); /* as of the last look */
json_t *agent_policy_gpu_json(const struct agent_policy *policy);

/* view.c: what all its pods here did, added up. */
void agent_policy_add_up(const struct agent_policy *policy, struct workload_snapshot *ret_sum);
