/* SPDX-License-Identifier: Apache-2.0 */
#include "activity/idle.h"

#include <assert.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"

enum { LOOK_AGAIN_SECONDS = 10 };

struct judgement { /* what the checks look at */
        const struct policy *policy;
        const struct workload_snapshot *snapshot;
        uint64_t now_ns;
        struct idle_verdict *verdict;
};

static const char *const verdict_names[] = {
        [VERDICT_BUSY] = "busy",
        [VERDICT_IDLE] = "idle",
        [VERDICT_UNKNOWN] = "unknown",
};

const char *verdict_to_string(enum verdict verdict)
{
        return (size_t)verdict < ELEMENTSOF(verdict_names) ? verdict_names[verdict] : "unknown";
}

/* The kernel's stamp may be a little younger than the caller's clock. */
static uint64_t elapsed(uint64_t since_ns, uint64_t now_ns)
{
        return now_ns > since_ns ? now_ns - since_ns : 0;
}

static void look_again(struct judgement *judgement, uint64_t at_ns)
{
        struct idle_verdict *verdict = judgement->verdict;

        if (at_ns > judgement->now_ns && at_ns < verdict->look_again_ns)
                verdict->look_again_ns = at_ns;
}

static bool has_open_request(struct judgement *judgement)
{
        const struct workload_snapshot *snapshot = judgement->snapshot;
        uint64_t expires_ns = snapshot->newest_request_ns + judgement->policy->idle.request_timeout_ns;
        char endpoint[ENDPOINT_TEXT_MAX], duration[DURATION_TEXT_MAX];

        if (snapshot->open_requests == 0 || expires_ns <= judgement->now_ns)
                return false;

        endpoint_format(&snapshot->oldest_request.remote, snapshot->oldest_request.remote_port, endpoint);
        duration_format(elapsed(snapshot->oldest_request_ns, judgement->now_ns), duration);
        if (snapshot->open_requests == 1)
                snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason), "an unanswered request from %s since %s",
                         endpoint, duration);
        else
                snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason),
                         "%u unanswered requests, the oldest from %s since %s", snapshot->open_requests, endpoint, duration);
        look_again(judgement, expires_ns);
        return true;
}

/* Too many, or from before the programs: one of them may have an unanswered request. */
static bool has_untracked(struct judgement *judgement)
{
        const struct workload_snapshot *snapshot = judgement->snapshot;
        uint64_t expires_ns = snapshot->untracked_ns + judgement->policy->idle.request_timeout_ns;
        char duration[DURATION_TEXT_MAX];

        if (snapshot->untracked_ns == 0 || expires_ns <= judgement->now_ns)
                return false;
        duration_format(elapsed(snapshot->untracked_ns, judgement->now_ns), duration);
        snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason),
                 "it has connections since %s of whose requests nothing is known", duration);
        look_again(judgement, expires_ns);
        return true;
}

static bool holds_connections(struct judgement *judgement)
{
        uint32_t n = judgement->snapshot->connections;

        if (judgement->policy->idle.connections != SILENCE_HOLD || n == 0)
                return false;
        snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason), "%u open connection%s (idle.connections is Hold)",
                 n, n == 1 ? "" : "s");
        return true;
}

static bool holds_outbound(struct judgement *judgement)
{
        uint32_t n = judgement->snapshot->outbound;

        if (judgement->policy->idle.outbound != SILENCE_HOLD || n == 0)
                return false;
        snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason),
                 "%u open outbound connection%s (idle.outbound is Hold)", n, n == 1 ? "" : "s");
        return true;
}

/* Less than a second of CPU use says nothing about a minute. */
static bool uses_cpu(struct judgement *judgement)
{
        const struct workload_snapshot *snapshot = judgement->snapshot;
        uint32_t limit = judgement->policy->idle.cpu_millicores;
        char duration[DURATION_TEXT_MAX];

        if (limit == 0)
                return false;
        if (snapshot->cpu_window_ns < NSEC_PER_SEC) {
                snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason),
                         "its CPU use is not known for long enough");
                look_again(judgement, judgement->now_ns + NSEC_PER_SEC - snapshot->cpu_window_ns);
                return true;
        }
        if (snapshot->cpu_millicores <= limit)
                return false;
        snprintf(judgement->verdict->reason, sizeof(judgement->verdict->reason),
                 "it used %u.%03u CPU cores over the last %s, more than idle.cpu (%u.%03u)", snapshot->cpu_millicores / 1000,
                 snapshot->cpu_millicores % 1000, duration_format(snapshot->cpu_window_ns, duration), limit / 1000, limit % 1000);
        return true;
}

static void judge_silence(struct judgement *judgement, uint64_t awake_since_ns)
{
        struct idle_verdict *verdict = judgement->verdict;
        uint64_t since_ns = MAX(judgement->snapshot->last_ns, awake_since_ns);
        uint64_t silent_ns = elapsed(since_ns, judgement->now_ns);
        char silent[DURATION_TEXT_MAX], required[DURATION_TEXT_MAX];

        duration_format(silent_ns, silent);
        duration_format(verdict->required_ns, required);
        verdict->verdict = silent_ns >= verdict->required_ns ? VERDICT_IDLE : VERDICT_BUSY;
        verdict->idle_ns = verdict->verdict == VERDICT_IDLE ? silent_ns : 0;
        if (verdict->verdict == VERDICT_IDLE)
                snprintf(verdict->reason, sizeof(verdict->reason), "no activity for %s", silent);
        else
                snprintf(verdict->reason, sizeof(verdict->reason), "%s %s ago; idle after %s",
                         judgement->snapshot->last_ns > awake_since_ns ? "last activity was" : "it became awake", silent, required);
        look_again(judgement, since_ns + verdict->required_ns);
}

void idle_judge(const struct policy *policy, const struct workload_snapshot *snapshot, int error, uint64_t awake_since_ns,
                unsigned factor, uint64_t now_ns, struct idle_verdict *ret_verdict)
{
        static bool (*const vetoes[])(struct judgement *judgement) = { has_open_request, has_untracked, holds_connections,
                                                                       holds_outbound, uses_cpu };
        struct idle_verdict verdict = { .verdict = VERDICT_BUSY,
                                        .required_ns = policy->idle.after_ns * factor,
                                        .look_again_ns = now_ns + LOOK_AGAIN_SECONDS * NSEC_PER_SEC };
        struct judgement judgement = { .policy = policy, .snapshot = snapshot, .now_ns = now_ns, .verdict = &verdict };
        bool vetoed = false;

        if (__builtin_mul_overflow(policy->idle.after_ns, (uint64_t)factor, &verdict.required_ns))
                verdict.required_ns = INT64_MAX;

        if (!snapshot) {
                verdict.verdict = VERDICT_UNKNOWN;
                snprintf(verdict.reason, sizeof(verdict.reason), "its activity could not be read: %s", strerror(-error));
        } else {
                for (size_t i = 0; i < ELEMENTSOF(vetoes) && !vetoed; i++)
                        vetoed = vetoes[i](&judgement);
                if (!vetoed)
                        judge_silence(&judgement, awake_since_ns);
        }
        *ret_verdict = verdict;
}

/* Whether @verdict says more than @other of a policy that both are parts of. */
static bool outweighs(const struct idle_verdict *verdict, const struct idle_verdict *other)
{
        static const int weight[] = { [VERDICT_IDLE] = 0, [VERDICT_UNKNOWN] = 1, [VERDICT_BUSY] = 2 };

        if (verdict->verdict != other->verdict)
                return weight[verdict->verdict] > weight[other->verdict];
        return verdict->verdict == VERDICT_IDLE && verdict->idle_ns < other->idle_ns;
}

static void name_part(const char *name, struct idle_verdict *verdict)
{
        char reason[sizeof(verdict->reason)];

        if (!name)
                return;
        memcpy(reason, verdict->reason, sizeof(reason));
        snprintf(verdict->reason, sizeof(verdict->reason), "%.80s: %.100s", name, reason);
}

void idle_judge_all(const struct policy *policy, const struct idle_part *parts, size_t n_parts, uint64_t awake_since_ns,
                    unsigned factor, uint64_t now_ns, struct idle_verdict *ret_verdict)
{
        struct idle_verdict all, one;
        uint64_t look_again_ns;

        idle_judge(policy, NULL, -ENOENT, awake_since_ns, factor, now_ns, &all);
        snprintf(all.reason, sizeof(all.reason), "nothing of it is watched");
        look_again_ns = all.look_again_ns;
        for (size_t i = 0; i < n_parts; i++) {
                const struct idle_part *part = &parts[i];

                idle_judge(policy, part->snapshot, part->error, MAX(awake_since_ns, part->watched_since_ns), factor, now_ns, &one);
                look_again_ns = MIN(look_again_ns, one.look_again_ns);
                if (i > 0 && !outweighs(&one, &all))
                        continue;
                name_part(part->name, &one);
                all = one;
        }
        all.look_again_ns = look_again_ns;
        *ret_verdict = all;
}

unsigned flapping_factor(unsigned factor, bool woken_by_cut_client)
{
        if (woken_by_cut_client)
                return MIN(factor * 2, (unsigned)FLAPPING_FACTOR_MAX);
        return MAX(factor / 2, 1u);
}
