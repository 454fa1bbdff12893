/* SPDX-License-Identifier: Apache-2.0 */
/* What all policies on this node share, and the policies themselves. Open to this directory only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "serve/metrics.h"

struct activity;
struct claims;
struct agent_policy;
struct event_log;
struct gpu_watch;
struct hold;
struct kube_reflector;
struct object;
struct prober;
struct report;

/* How far a wake has come, as this node sees it. */
enum wake_step {
        WAKE_STEP_DETECTED, /* the agent knew of the packet */
        WAKE_STEP_REPORTED, /* its demand was in the API server */
        WAKE_STEP_ENDPOINT, /* the status had an endpoint */
        WAKE_STEP_READY,    /* an endpoint had passed its probe, or was Ready */
        WAKE_STEP_RELEASED, /* the first packet was handed on */
        WAKE_STEP_ANSWERED, /* and answered */
        WAKE_STEP_MAX,
};

struct node_counters {
        uint64_t probes_passed, probes_refused; /* refused: too many at once, or a kind that cannot be run */
        uint64_t passed_on;                     /* demands in Sleeping that nobody answered in time */
        uint64_t votes, votes_withdrawn;
};

struct node {
        sd_event *event;
        const char *name;
        char instance[320]; /* this process, as the Lease and the NodeActivity name it */
        const char *cgroup; /* below which the node's pods are */
        struct hold *hold;
        struct activity *activity;
        struct gpu_watch *gpu; /* NULL: GPUs are not watched */
        uint64_t gpu_since_ns; /* they are watched since then */
        struct claims *claims;
        struct prober *prober;
        struct report *report;
        struct event_log *events;
        struct kube_reflector *objects; /* ScaleToZero */
        struct kube_reflector *pods;    /* of this node */

        struct agent_policy *policies;          /* uthash, by name */
        LIST_HEAD(, agent_policy) demanded;     /* those with a demand to report */
        LIST_HEAD(, agent_policy) with_pods;    /* those with pods here */
        LIST_HEAD(, agent_policy) unprogrammed; /* those that should be held and cannot be */
        LIST_HEAD(, object) unreadable;         /* objects of which the newest version cannot be read */
        bool told_stale;                        /* that the policies are not current */
        bool settled;                           /* all policies are known: the status may be written */
        uint64_t version;                       /* of the newest object that was applied */
        uint64_t sleeping_version;              /* the newest version with which some policy became Sleeping */
        uint64_t programmed;                    /* as last put into the status */
        uint64_t programmed_ns;                 /* when */
        struct histogram wake_steps[WAKE_STEP_MAX];
        struct node_counters counters;
};

/* node.c: the NodeActivity. Nothing is written before node.settled. */
void node_report(struct node *node, bool urgent);
void node_report_at(struct node *node, uint64_t at_ns);
extern const struct report_callbacks node_report_callbacks;

const char *wake_step_to_string(enum wake_step step); /* "detected", … */
