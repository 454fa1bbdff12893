/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one workload: idle, busy or unknown, why, and when to look again. Pure; time is passed in. */
#pragma once

#include "activity/activity.h"

enum verdict {
        VERDICT_BUSY,
        VERDICT_IDLE,
        VERDICT_UNKNOWN, /* something could not be read: never idle */
};

struct idle_verdict {
        enum verdict verdict;
        uint64_t idle_ns;       /* how long it has been idle by now; 0 when busy or unknown */
        uint64_t required_ns;   /* idle.after times the flapping factor */
        uint64_t look_again_ns; /* when the verdict can change by itself, monotonic; at most 10 s away */
        char reason[192];       /* for people: "an unanswered request from 192.0.2.1:40000 since 12s" */
};

/* @snapshot NULL: it could not be read, because of @error (-errno). @awake_since_ns bounds how long it can have been idle. @factor is
 * 1 or the flapping factor. */
void idle_judge(const struct policy *policy, const struct workload_snapshot *snapshot, int error, uint64_t awake_since_ns,
                unsigned factor, uint64_t now_ns, struct idle_verdict *ret_verdict);

struct idle_part {                                /* one of a policy's workloads: a pod */
        const char *name;                         /* for the reason, or NULL */
        const struct workload_snapshot *snapshot; /* NULL: it could not be read, because of @error */
        int error;
        uint64_t watched_since_ns; /* what was before is not known: bounds how long it can have been idle */
};

/* The verdict on all of them: busy if one is, else unknown if one is, else idle for as long as the one that has been idle for the
 * shortest time. Of none nothing is known. The CPU limit is each one's own. */
void idle_judge_all(const struct policy *policy, const struct idle_part *parts, size_t n_parts, uint64_t awake_since_ns,
                    unsigned factor, uint64_t now_ns, struct idle_verdict *ret_verdict);

/* Flapping: a client whose connection the sleep had cut and that woke the workload at once doubles idle.after for it, at most 16
 * times; a wake by anybody else halves it. */
enum { FLAPPING_FACTOR_MAX = 16 };
unsigned flapping_factor(unsigned factor, bool woken_by_cut_client);

const char *verdict_to_string(enum verdict verdict); /* "busy", "idle", "unknown" */
