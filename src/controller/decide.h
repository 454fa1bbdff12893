/* SPDX-License-Identifier: Apache-2.0 */
/* What to write and do next about one policy. Pure: all that is known goes in, a decision comes out.
 *
 * Phases are the phase machine's (policy/phase.h); here is what its events mean in a cluster. Whoever carries a decision out does one
 * thing, and asks again: so a controller that dies between two steps leaves a state from which the next one goes on.
 *
 *   Awake     no replicas, by other hands → Asleep. Idle on every node, nothing forbids it → Sleeping.
 *   Sleeping  demand or activity → Awake. Quiet and programmed everywhere → the target is scaled to zero; no replicas → Asleep.
 *             Neither within DECIDE_SLEEPING_MAX_NS → Awake, condition SleepBlocked.
 *   Asleep    demand → Waking. Replicas, by other hands → Waking.
 *   Waking    no replicas yet → the target is scaled up. An endpoint is ready → Awake.
 *
 * Any replica makes an Asleep policy wake on demand; all else is the leader's. Where there is none, any replica ends a Sleeping
 * that has demand after DECIDE_LEADERLESS_NS, and scales up a Waking target. It ends it in Waking: the leader's change to zero may
 * have been made, or come yet.
 */
#pragma once

#include <assert.h>

#include "controller/conditions.h"
#include "controller/evidence.h"
#include "controller/resolve.h"
#include "controller/target.h"
#include "kube/scale_to_zero.h"
#include "policy/phase.h"

#define DECIDE_SLEEPING_MAX_NS (10 * UINT64_C(1000000000))
#define DECIDE_BLOCKED_NS (60 * UINT64_C(1000000000)) /* after a blocked sleep, until the next is tried */
#define DECIDE_LEADERLESS_NS (1 * UINT64_C(1000000000))
static_assert(TARGET_SLEEP_DEADLINE_NS + 200 * UINT64_C(1000000) < DECIDE_LEADERLESS_NS, "a dead leader's change comes first");
#define DECIDE_LEFTOVER_NS (1 * UINT64_C(1000000000)) /* for which pods may look alive after the scale was set to zero */
#define DECIDE_QUIET_NS (100 * UINT64_C(1000000))
#define DECIDE_FLAPPING_MIN_NS (30 * UINT64_C(1000000000))

enum wake_cause { WAKE_PACKET, WAKE_SCALED, WAKE_MANUAL, WAKE_DELETED, WAKE_CAUSE_MAX };
enum sleep_reason { SLEEP_IDLE, SLEEP_MANUAL, SLEEP_SCALED, SLEEP_REASON_MAX };
enum decide_scale { SCALE_NOT, SCALE_UP, SCALE_DOWN };

struct decide_input {
        const struct scale_to_zero *object;  /* its policy is not NULL */
        const struct phase_machine *machine; /* follows the object's status */
        const struct resolution *resolution; /* NULL: not known yet */
        const struct target_state *target;
        const struct evidence *evidence;
        const char *rival;                            /* an older policy of the same target, or NULL */
        const char *autoscaler;                       /* a HorizontalPodAutoscaler of it, or NULL */
        const char *parking_reason, *parking_message; /* why its Services have no parking endpoints; or NULL */
        const char *diagnosis_reason, *diagnosis;     /* why it does not start, once looked at; or NULL */
        uint64_t now_ns, now_realtime_ns;
        uint64_t demand_since_ns;  /* when this replica first saw evidence->demand */
        uint64_t zero_since_ns;    /* when it first saw that the target has no replicas */
        uint64_t blocked_until_ns; /* no sleep before; 0: none was blocked */
        uint32_t replicas_seen;    /* the last number above zero that it saw; 0: none */
        bool ignores_too_many;     /* pods, by spec.ignore's selectors */
        bool leader;
        bool current;     /* no view is stale */
        bool round;       /* sleeps may begin now */
        bool has_been_up; /* in Waking: the target has had replicas since it began */
        bool woke;        /* in Waking: this replica made it so, and scales at once */
};

struct decision {
        struct phase_machine machine; /* as it is afterwards */
        enum phase from;
        uint64_t from_since_ns;
        bool changed;     /* phase or holding: the machine is to be had once the status is written, else at once */
        bool write;       /* the status may be written by this replica */
        bool fresh_sleep; /* a new epoch */
        bool woken;       /* with a cause, below */
        enum wake_cause cause;
        bool slept; /* with a reason: it went to Sleeping, or to Asleep by other hands */
        enum sleep_reason reason;
        bool blocked;     /* a sleep was blocked just now */
        bool wake_failed; /* a wake failed just now: look for the reason */
        uint32_t replicas_before, gpus_before, idle_factor;
        struct conditions conditions;
        uint32_t news; /* bit i: conditions.entries[i] did not hold before */
        enum decide_scale scale;
        uint32_t replicas; /* to scale up to */
        bool add_finalizer, remove_finalizer;
        bool clear_wake, clear_sleep; /* annotations that have been seen to */
        const char *refused;          /* why a manual sleep is not begun, static, or NULL */
        bool wants_round;
        uint64_t again_ns; /* look again then, if nothing happens before; 0: no need */
};

void decide(const struct decide_input *input, struct decision *ret_decision);
/* Of a policy that goes away, and whose spec is wrong: what it has put to sleep is scaled up first, and not waited for. @target: as far as
 * it could be read, or NULL. */
void decide_unreadable(const struct scale_to_zero *object, const struct target_state *target, struct decision *ret_decision);

/* The machine as the status of @object has it. */
void decide_seed(const struct scale_to_zero *object, uint64_t now_ns, uint64_t now_realtime_ns, struct phase_machine *ret_machine);
struct phase_settings decide_settings(const struct policy *policy);

const char *wake_cause_to_string(enum wake_cause cause);      /* "Packet", "Scaled", "Manual", "Deleted" */
const char *sleep_reason_to_string(enum sleep_reason reason); /* "Idle", "Manual", "Scaled" */
