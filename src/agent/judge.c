/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/agent_policy.h"
#include "base/time.h"
#include "hold/hold.h"
#include "kube/reflector.h"
#include "serve/event_log.h"

#define LOOK_NS (100 * NSEC_PER_MSEC) /* within it, all policies are told of from one look at all connections */
#define UNWATCHED_NS NSEC_PER_SEC     /* until a pod's cgroup is looked for again */
#define SLEEP_LONG_NS (10 * NSEC_PER_SEC)

static const char pods_are_stale[] = "which pods are on this node is not known for certain now";

static enum workload_state state_of(enum verdict verdict)
{
        switch (verdict) {
        case VERDICT_BUSY:
                return WORKLOAD_ACTIVE;
        case VERDICT_IDLE:
                return WORKLOAD_IDLE;
        case VERDICT_UNKNOWN:
                return WORKLOAD_UNKNOWN;
        }
        return WORKLOAD_UNKNOWN;
}

static void set_state(struct agent_policy *policy, enum workload_state state)
{
        if (policy->state == state)
                return;
        policy->state = state;
        policy->state_since_ns = now_realtime_ns();
        node_report(policy->node, false);
}

enum depth { TOTALS, CONNECTIONS };

static int read_pod(struct agent_policy *policy, struct agent_pod *pod, enum depth depth, uint64_t not_before_ns,
                    struct workload_snapshot *ret_snapshot)
{
        if (!pod->workload)
                agent_policy_watch(policy, pod);
        if (!pod->workload)
                return pod->error ? pod->error : -ENOENT;
        return depth == TOTALS ? workload_read_totals(pod->workload, ret_snapshot)
                               : workload_read(pod->workload, not_before_ns, ret_snapshot);
}

static struct idle_part part_of(struct agent_policy *policy, struct agent_pod *pod, enum depth depth, uint64_t not_before_ns,
                                struct workload_snapshot *ret_snapshot)
{
        int r = read_pod(policy, pod, depth, not_before_ns, ret_snapshot);

        if (r >= 0 && depth == CONNECTIONS)
                pod->snapshot = *ret_snapshot;
        return (struct idle_part){
                .name = policy->n_pods > 1 ? pod->key : NULL,
                .snapshot = r < 0 ? NULL : ret_snapshot,
                .error = r < 0 ? r : 0,
                .watched_since_ns = pod->since_ns,
        };
}

static int judge_all(struct agent_policy *policy, enum depth depth, uint64_t not_before_ns, struct idle_verdict *ret_verdict,
                     uint64_t *ret_look_ns)
{
        _cleanup_(freep) struct idle_part *parts = calloc(policy->n_pods, sizeof(*parts));
        _cleanup_(freep) struct workload_snapshot *snapshots = calloc(policy->n_pods, sizeof(*snapshots));
        uint32_t factor = MAX(policy->object->status.idle_factor, 1U);
        struct agent_pod *pod;
        struct idle_verdict verdict;
        bool unwatched = false;
        size_t n = 0;

        if (!parts || !snapshots)
                return -ENOMEM;
        LIST_FOREACH(pod, &policy->pods, others)
        {
                parts[n] = part_of(policy, pod, depth, not_before_ns, &snapshots[n]);
                unwatched |= !pod->workload;
                n++;
        }
        idle_judge_all(policy->object->policy, parts, n, 0, factor, now_monotonic_ns(), &verdict);
        *ret_look_ns = unwatched ? now_monotonic_ns() + UNWATCHED_NS : verdict.look_again_ns;
        *ret_verdict = verdict;
        return 0;
}

static void judge_unknown(struct agent_policy *policy, const char *reason)
{
        policy->verdict = (struct idle_verdict){ .verdict = VERDICT_UNKNOWN };
        snprintf(policy->verdict.reason, sizeof(policy->verdict.reason), "%s", reason);
        policy->look_ns = now_monotonic_ns() + 10 * NSEC_PER_SEC;
}

static void look_at_network(struct agent_policy *policy)
{
        const struct policy *spec = policy->object->policy;
        uint64_t not_before_ns;
        int r;

        if (!spec) {
                judge_unknown(policy, "its spec is wrong");
                return;
        }
        if (kube_reflector_is_stale(policy->node->pods)) {
                judge_unknown(policy, pods_are_stale);
                return;
        }
        r = judge_all(policy, TOTALS, 0, &policy->verdict, &policy->look_ns);
        if (r >= 0 && policy->verdict.verdict == VERDICT_IDLE) {
                not_before_ns = now_monotonic_ns() - MIN(spec->idle.after_ns / 4, 5 * NSEC_PER_SEC);
                r = judge_all(policy, CONNECTIONS, not_before_ns, &policy->verdict, &policy->look_ns);
        }
        if (r < 0)
                judge_unknown(policy, strerror(-r));
}

static void look(struct agent_policy *policy)
{
        look_at_network(policy);
        agent_policy_judge_gpu(policy, &policy->verdict);
        if (policy->verdict.look_again_ns)
                policy->look_ns = MIN(policy->look_ns, policy->verdict.look_again_ns);
}

void agent_policy_withdraw(struct agent_policy *policy, const char *reason)
{
        bool voted = policy->quiet_epoch != -1;
        char text[sizeof(policy->verdict.reason)]; /* the reason may be that of the verdict, which becomes another one */

        snprintf(text, sizeof(text), "%s", reason);
        if (policy->phase != PHASE_SLEEPING && !voted)
                return;
        if (policy->phase == PHASE_SLEEPING && !policy->unquiet && policy->n_pods > 0)
                event_log_add(policy->node->events, policy->name, "Unquiet", "it does not vote for the sleep: %s", text);
        policy->unquiet = policy->phase == PHASE_SLEEPING;
        policy->quiet_epoch = -1;
        policy->node->counters.votes_withdrawn += voted;
        if (policy->n_pods == 0)
                return;
        policy->verdict.verdict = VERDICT_BUSY;
        policy->verdict.idle_ns = 0;
        memcpy(policy->verdict.reason, text, sizeof(text));
        policy->state = WORKLOAD_ACTIVE;
        policy->state_since_ns = now_realtime_ns();
        node_report(policy->node, true);
}

/* What speaks against sleeping now, or NULL. A vote looks at everything once; afterwards nothing can begin that does not move bytes. */
static const char *pod_objection(struct agent_policy *policy, struct agent_pod *pod)
{
        bool voted = policy->quiet_epoch == policy->epoch;
        struct workload_snapshot snapshot = { 0 };
        int r = read_pod(policy, pod, voted ? TOTALS : CONNECTIONS, now_monotonic_ns(), &snapshot);

        if (r < 0)
                return "its activity cannot be read";
        if (snapshot.open_requests > 0)
                return "an unanswered request";
        if (snapshot.last_ns >= policy->held_since_ns)
                return "activity since holding began";
        if (policy->object->policy->idle.connections == SILENCE_HOLD && snapshot.connections > 0)
                return "open connections (idle.connections is Hold)";
        return NULL;
}

/* A vote confirms the verdict that the sleep began with, as everything stands now. An operator's sleep does not ask for idleness. */
static const char *no_longer_idle(struct agent_policy *policy)
{
        const char *reason = policy->object->status.last_sleep_reason;
        struct idle_verdict verdict;
        uint64_t look_ns;

        if (reason && strcmp(reason, "Manual") == 0)
                return NULL;
        if (policy->quiet_epoch == policy->epoch) /* what GPUs do is no matter of bytes */
                return agent_policy_gpu_permits(policy) ? NULL : "work for its GPU";
        if (judge_all(policy, CONNECTIONS, now_monotonic_ns(), &verdict, &look_ns) < 0)
                return "its activity cannot be read";
        agent_policy_judge_gpu(policy, &verdict);
        if (verdict.verdict == VERDICT_IDLE)
                return NULL;
        policy->verdict = verdict;
        return policy->verdict.reason;
}

static const char *objection(struct agent_policy *policy)
{
        const char *reason = NULL;
        struct agent_pod *pod;

        if (!policy->object->policy)
                return "its spec is wrong";
        if (kube_reflector_is_stale(policy->node->pods))
                return pods_are_stale;
        if (policy->holding && (holding_has_demand(policy->holding) || holding_parked(policy->holding) > 0))
                return "a first packet is held";
        LIST_FOREACH(pod, &policy->pods, others)
        if (!reason)
                reason = pod_objection(policy, pod);
        return reason ? reason : no_longer_idle(policy);
}

static void vote(struct agent_policy *policy)
{
        policy->quiet_epoch = policy->epoch;
        policy->node->counters.votes++;
        event_log_add(policy->node->events, policy->name, "Quiet", "it votes for the sleep: neither demand nor activity for %d ms",
                      (int)(QUIET_NS / NSEC_PER_MSEC));
        if (policy->state == WORKLOAD_IDLE)
                node_report(policy->node, false);
        set_state(policy, WORKLOAD_IDLE);
}

/* In Sleeping: the vote, and whether it still stands. */
static void watch_sleep(struct agent_policy *policy)
{
        uint64_t now = now_monotonic_ns(), due = policy->held_since_ns + QUIET_NS;
        const char *reason;

        if (policy->unquiet || !policy->holding || !holding_is_started(policy->holding)) {
                policy->look_ns = now + UNWATCHED_NS;
                return;
        }
        if (now < due) {
                policy->look_ns = due;
                return;
        }
        reason = objection(policy);
        if (reason)
                agent_policy_withdraw(policy, reason);
        else if (policy->quiet_epoch != policy->epoch)
                vote(policy);
        policy->look_ns = now + (now - policy->held_since_ns < SLEEP_LONG_NS ? QUIET_NS : NSEC_PER_SEC);
}

void agent_policy_judge(struct agent_policy *policy)
{
        policy->look_ns = 0;
        if (policy->n_pods > 0 && policy->phase == PHASE_SLEEPING) {
                watch_sleep(policy);
        } else if (policy->n_pods > 0) {
                look(policy);
                set_state(policy, state_of(policy->verdict.verdict));
        }
        agent_policy_arm_timer(policy);
}

/* For people: it moves neither the time of the next judgement nor, while votes are watched, the verdict that they rest on. */
void agent_policy_look(struct agent_policy *policy)
{
        struct idle_verdict verdict;
        uint64_t look_ns;

        if (policy->n_pods == 0 || !policy->object->policy)
                return;
        if (judge_all(policy, CONNECTIONS, now_monotonic_ns() - LOOK_NS, &verdict, &look_ns) < 0 || policy->phase == PHASE_SLEEPING)
                return;
        agent_policy_judge_gpu(policy, &verdict);
        policy->verdict = verdict;
}
