/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy remembers for people: its last wake and sleep, and the conditions that hold. Values; the JSON forms are those of
 * docs/control-api.md. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address.h"

enum cause {
        CAUSE_NONE, /* no such record */
        CAUSE_PACKET,
        CAUSE_OPERATOR,
        CAUSE_STARTED, /* somebody else started it, or it ran when the daemon came */
        CAUSE_IDLE,
        CAUSE_EXITED, /* the target ended by itself */
        CAUSE_MAX,
};

enum wake_phase {
        WAKE_DETECTED,  /* the daemon knew of the packet */
        WAKE_REQUESTED, /* the target's start was asked for */
        WAKE_STARTED,   /* its process ran */
        WAKE_READY,     /* it listened */
        WAKE_RELEASED,  /* the first packet was handed on */
        WAKE_ANSWERED,  /* and answered */
        WAKE_PHASE_MAX,
};

struct client { /* who asked; process and cgroup are empty where unknown */
        struct flow flow;
        bool known;
        char process[32];
        pid_t pid;
        char cgroup[256];
};

struct wake_record {
        enum cause cause;
        uint64_t realtime_ns;
        uint64_t zero_ns; /* monotonic: the first packet, or the request */
        struct client client;
        uint64_t reached_ns[WAKE_PHASE_MAX]; /* monotonic; 0: not yet */
};

struct sleep_record {
        enum cause cause;
        uint64_t realtime_ns;
        uint64_t began_ns, stopped_ns; /* monotonic; stopped 0: not yet */
        char reason[192];
};

enum condition_type {
        CONDITION_WAKE_FAILED,    /* not ready within holdTimeout */
        CONDITION_PROCESS_FAILED, /* the target could not be started, or ended by itself */
        CONDITION_FLAPPING,       /* a client that reconnects keeps waking it */
        CONDITION_IDLE_UNKNOWN,   /* its activity cannot be read: it stays awake */
        CONDITION_PORT_IN_USE,    /* somebody else listens on its frontend */
        CONDITION_NOT_LISTENING,  /* awake, but nobody listens on one of its frontends */
        CONDITION_DRY_RUN,        /* it would sleep now */
        CONDITION_HOLD_FAILED,    /* its frontends cannot be held: it does not sleep */
        CONDITION_GPU_IDLE,       /* its GPU is idle, and the policy only wants to hear of it */
        CONDITION_MAX,
};

struct condition {
        bool holds;
        uint64_t realtime_ns;
        const char *reason; /* CamelCase, static */
        char *message;      /* of the last time it held */
};

const char *cause_to_string(enum cause cause);             /* "packet", ... */
const char *wake_phase_to_string(enum wake_phase phase);   /* "detected", ... */
const char *condition_to_string(enum condition_type type); /* "WakeFailed", ... */

/* Notes that @phase was reached, once. */
void wake_record_reach(struct wake_record *record, enum wake_phase phase, uint64_t now_ns);

/* New JSON, or NULL without memory; json_null() for a record of CAUSE_NONE. */
json_t *wake_record_json(const struct wake_record *record);
json_t *sleep_record_json(const struct sleep_record *record);
/* @record, which it takes over, unless that is null and there is one of an earlier daemon. */
json_t *record_or_earlier(json_t *record, json_t *earlier);
json_t *conditions_json(const struct condition conditions[static CONDITION_MAX]);
json_t *timestamp_json(uint64_t realtime_ns);
