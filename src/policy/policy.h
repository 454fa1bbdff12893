/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: one ScaleToZero object each, as one machine reads them from YAML and a cluster from its API.
 *
 * A policy is a value tree without behaviour, complete and defaulted once it exists: nothing downstream asks whether a field was
 * given. Durations are nanoseconds. The policy owns all it points to.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

enum {
        POLICY_NAME_MAX = 63, /* a DNS label, as in Kubernetes */
        POLICY_FRONTENDS_MAX = 64,
        POLICY_RULES_MAX = 256, /* entries of ignore, and of wake.from */
};

enum target_kind {
        TARGET_PROCESS, /* one machine; the rest is in a cluster */
        TARGET_SCALE,   /* anything with a scale subresource */
        TARGET_JOB,     /* batch/v1 Job, by spec.suspend */
};

struct target_reference { /* in the policy's own namespace */
        char *api_version, *kind, *name;
};

enum readiness_source {
        READINESS_PROBE, /* the pod's own readiness probe, run by the agent that holds packets for it */
        READINESS_READY, /* the kubelet's word */
};

enum scaled_by {
        SCALED_BY_LULL,
        SCALED_BY_AUTOSCALER, /* HorizontalPodAutoscaler with minReplicas 0 */
};

struct cluster_settings { /* what only a policy in a cluster has */
        struct target_reference reference;
        char **services;   /* NULL-terminated; NULL: every Service that selects the target's pods */
        uint32_t replicas; /* wake.replicas; 0: as many as before the sleep */
        bool parking;
        enum readiness_source readiness;
        enum scaled_by scaled_by;
        struct pod_selector *ignore; /* whose pods neither wake nor keep awake */
        size_t n_ignore;
};

struct pod_selector {
        char *pods;       /* label selector in the API's text form ("app=prometheus,tier in (a,b)"); "": all */
        char *namespaces; /* likewise, of namespaces; NULL: the policy's own namespace only */
};

enum silence { /* what an open connection, or an outbound one, means */
               SILENCE_IGNORE,
               SILENCE_HOLD,
};

struct process_settings {
        char **command;           /* NULL-terminated, at least one */
        char *working_directory;  /* or NULL: "/" */
        char **environment;       /* NULL-terminated "NAME=value", added to the daemon's PATH, LANG and TZ; never NULL */
        char *user;               /* or NULL: the daemon's own */
        int stop_signal;          /* default SIGTERM */
        uint64_t stop_timeout_ns; /* default 10 s */
};

enum gpu_on_idle {                     /* what follows once the network and every GPU of the target are idle */
                   GPU_ON_IDLE_REPORT, /* nothing but saying so: while it has a GPU it is not put to sleep */
                   GPU_ON_IDLE_SLEEP,
};

struct gpu_settings {             /* of targets that have a GPU; they mean nothing to others */
        uint64_t after_ns;        /* default 30 m */
        enum gpu_on_idle on_idle; /* default Report */
};

struct idle_settings {
        uint64_t after_ns;           /* default 5 m; > 0 */
        uint64_t request_timeout_ns; /* default 30 m */
        uint64_t min_awake_ns;       /* default 1 m */
        enum silence connections;    /* default Ignore */
        enum silence outbound;       /* default Ignore */
        uint32_t cpu_millicores;     /* default 250; above that over the last minute it is not idle; 0 turns the veto off */
        struct gpu_settings gpu;
};

struct wake_settings {
        uint64_t hold_timeout_ns; /* default 60 s; 1 s to 10 m */
        uint32_t max_held;        /* packets, default 1024; 1 to 4096 */
        struct prefix *from;      /* empty: everybody */
        size_t n_from;
};

/* One entry of ignore: a peer that neither wakes nor keeps awake. What is not given matches everything; at least one is given. */
struct ignore_rule {
        struct prefix prefix; /* length 0: every source */
        uint16_t port;        /* 0: every port of the workload */
};

struct policy {
        char *name;
        char *file; /* where it was read; NULL: in the API */
        unsigned line;

        struct frontend *frontends; /* spec.listen, at least one; in a cluster none: they are in the status */
        size_t n_frontends;
        enum target_kind target;
        struct process_settings process; /* TARGET_PROCESS */
        struct cluster_settings cluster; /* the others */
        struct idle_settings idle;
        struct wake_settings wake;
        struct ignore_rule *ignore;
        size_t n_ignore;
        bool dry_run;
};

struct policy *policy_free(struct policy *policy); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct policy, policy_free)

/* Whether both say the same; name and place are not compared. */
bool policy_equal(const struct policy *a, const struct policy *b);

/* Whether @source to the workload's @port is to be ignored. */
bool policy_ignores(const struct policy *policy, const struct address *source, uint16_t port);
