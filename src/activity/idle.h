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

/* Flapping: a client whose connection the sleep had cut and that woke the workload at once doubles idle.after for it, at most 16
 * times; a wake by anybody else halves it. */
enum { FLAPPING_FACTOR_MAX = 16 };
unsigned flapping_factor(unsigned factor, bool woken_by_cut_client);

const char *verdict_to_string(enum verdict verdict); /* "busy", "idle", "unknown" */
