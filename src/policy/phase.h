/* SPDX-License-Identifier: Apache-2.0 */
/* The phase machine: Awake → Sleeping → Asleep → Waking → Awake.
 *
 * Pure: an event and the time go in, a new phase and the actions to take come out. Nothing else decides about phases. The caller
 * performs the actions, owns the clock, and calls phase_step() with PHASE_EVENT_TIME once phase_deadline() has passed. All times are
 * CLOCK_MONOTONIC nanoseconds.
 *
 *   Awake     the target runs, nothing is held. IDLE → Sleeping, unless awake for less than min_awake. GONE → Asleep.
 *   Sleeping  new flows are held, the target still runs. DEMAND, ACTIVE or WAKE → Awake. QUIET → Asleep, once @quiet has passed.
 *   Asleep    the target is at zero, new flows are held. DEMAND or WAKE → Waking. STARTED (by someone else) → Waking, READY → Awake.
 *   Waking    the target starts, new flows are held. READY → Awake. hold_timeout after the first packet of the wake, all that is
 *             held goes on to its normal refusal and nothing is held for a back-off that doubles with every failure (1 s to 1 m);
 *             then it holds again. GONE starts it again while packets wait, else → Asleep, where a back-off goes on.
 *
 * A back-off ends by time or by READY and nothing else. An event that comes after a deadline which nobody acted upon yet finds it
 * acted upon, except where the event makes it pointless (READY in time for packets still held). docs/phases.md has every pair of
 * phase and event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum phase {
        PHASE_AWAKE,
        PHASE_SLEEPING,
        PHASE_ASLEEP,
        PHASE_WAKING,
        PHASE_MAX,
};

enum phase_event {
        PHASE_EVENT_IDLE,    /* fresh, complete evidence that it has been idle for long enough */
        PHASE_EVENT_ACTIVE,  /* it works: payload, an open request, the CPU veto */
        PHASE_EVENT_QUIET,   /* answers the deadline in Sleeping: nobody asked and nothing moved */
        PHASE_EVENT_DEMAND,  /* a first packet was held */
        PHASE_EVENT_STARTED, /* somebody else started or scaled up the target */
        PHASE_EVENT_READY,   /* the target answers on its frontends */
        PHASE_EVENT_GONE,    /* the target is at zero though nobody asked for it: exited, crashed, scaled down by hand */
        PHASE_EVENT_WAKE,    /* an operator wants it awake */
        PHASE_EVENT_SLEEP,   /* an operator wants it asleep: min_awake does not count */
        PHASE_EVENT_TIME,    /* the deadline has passed */
        PHASE_EVENT_MAX,
};

enum phase_action {
        PHASE_ACTION_HOLD = 1 << 0,    /* begin to hold new flows (idempotent) */
        PHASE_ACTION_START = 1 << 1,   /* start the target */
        PHASE_ACTION_STOP = 1 << 2,    /* stop the target */
        PHASE_ACTION_RELEASE = 1 << 3, /* ready: release what is held, paced, and stop holding once nothing is left */
        PHASE_ACTION_REFUSE = 1 << 4,  /* send all that is held on to its normal refusal and stop holding */
        PHASE_ACTION_VERIFY = 1 << 5,  /* read activity and demand afresh now and answer with ACTIVE (also when it cannot be known),
                                          DEMAND or QUIET */
};

struct phase_settings {
        uint64_t min_awake_ns;
        uint64_t hold_timeout_ns;
        uint64_t quiet_ns; /* one machine: 100 ms */
        bool dry_run;      /* stays Awake; the transition's note says what it would have done */
};

struct phase_machine {
        enum phase phase;
        uint64_t since_ns;         /* when the phase began */
        uint64_t hold_deadline_ns; /* 0: none */
        uint64_t quiet_deadline_ns;
        uint64_t hold_again_ns; /* 0: holding, or nothing to hold */
        unsigned failures;      /* wakes that were not ready in time, in a row; READY clears it */
};

struct phase_transition {
        enum phase from, to; /* equal: the phase stays */
        uint32_t actions;    /* enum phase_action; HOLD and REFUSE never come together */
        const char *note;    /* why nothing happened though something was asked, static, or NULL */
};

/* Begins in @phase; *ret_transition (from == to) has what must be done to be in it: HOLD where that phase holds. */
void phase_begin(struct phase_machine *machine, const struct phase_settings *settings, enum phase phase, uint64_t now_ns,
                 struct phase_transition *ret_transition);

void phase_step(struct phase_machine *machine, const struct phase_settings *settings, enum phase_event event, uint64_t now_ns,
                struct phase_transition *ret_transition);

/* When PHASE_EVENT_TIME is due, or 0 for never. */
uint64_t phase_deadline(const struct phase_machine *machine);

bool phase_holds(const struct phase_machine *machine); /* whether new flows are being held now */

const char *phase_to_string(enum phase phase);                  /* "Awake", "Sleeping", "Asleep", "Waking" */
int phase_from_string(const char *text, enum phase *ret_phase); /* 0 or -EINVAL */
const char *phase_event_to_string(enum phase_event event);      /* "idle", "demand", ... */
