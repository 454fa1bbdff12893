/* SPDX-License-Identifier: Apache-2.0 */
/* The rules are those of client-go's tools/cache/reflector.go (list, watch, watchList, isWatchErrorRetriable) and of its pager. */
#include "kube/reflector_policy.h"

#include "base/macros.h"
#include "kube/chance.h"

/* How often a watch may break at the same resourceVersion, with an answer begun, before a list is tried instead. */
enum { WATCH_BROKEN_TRIES = 10 };

static uint64_t backoff_next(struct reflector_policy *policy, uint64_t now_ns, double chance)
{
        uint64_t delay_ns;

        if (policy->backoff_used_ns == 0 || now_ns - policy->backoff_used_ns > REFLECTOR_BACKOFF_QUIET_NS)
                policy->backoff_ns = REFLECTOR_BACKOFF_MIN_NS;
        policy->backoff_used_ns = now_ns;

        delay_ns = policy->backoff_ns + (uint64_t)((double)policy->backoff_ns * chance);
        policy->backoff_ns = MIN(2 * policy->backoff_ns, REFLECTOR_BACKOFF_MAX_NS);
        return delay_ns;
}

static uint64_t wait_as_told(struct reflector_policy *policy, const struct kube_status *status, uint64_t now_ns, double chance)
{
        if (status->retry_after_ns == 0)
                return backoff_next(policy, now_ns, chance);
        return kube_retry_after(status->retry_after_ns, chance);
}

/* What passes when tokens and roles are in order again, and says nothing about the request. */
static bool is_denied(const struct kube_status *status)
{
        return status->code == 401 || status->code == 403;
}

/* Before the list that a watch's lost version asks for: as after a first failure. It spreads the clients of a server that has come
 * back; and a list whose version is gone as soon as it is there is not followed by another at once. */
static uint64_t relist_delay(struct reflector_policy *policy, uint64_t now_ns, double chance)
{
        bool recent = policy->relisted_ns > 0 && now_ns - policy->relisted_ns <= REFLECTOR_BACKOFF_QUIET_NS;

        policy->relisted_ns = now_ns;
        if (recent)
                return backoff_next(policy, now_ns, chance);
        return REFLECTOR_BACKOFF_MIN_NS + (uint64_t)((double)REFLECTOR_BACKOFF_MIN_NS * chance);
}

static bool is_busy(const struct kube_status *status)
{
        return status->code == 429 || status->code >= 500;
}

static struct reflector_step step_watch(uint64_t delay_ns)
{
        return (struct reflector_step){ .action = REFLECTOR_WATCH, .version = REFLECTOR_VERSION_LAST, .delay_ns = delay_ns };
}

/* client-go pages only where the answer does not come from the watch cache at a given version. */
static struct reflector_step step_list(const struct reflector_policy *policy, uint64_t delay_ns)
{
        struct reflector_step step = { .action = REFLECTOR_LIST, .version = REFLECTOR_VERSION_LAST, .delay_ns = delay_ns };

        if (policy->version_gone)
                step.version = REFLECTOR_VERSION_NEWEST;
        else if (!policy->synced)
                step.version = REFLECTOR_VERSION_ANY;
        step.paged = step.version != REFLECTOR_VERSION_LAST && policy->pages_expired == 0;
        return step;
}

static struct reflector_step step_watch_list(const struct reflector_policy *policy, uint64_t delay_ns)
{
        return (struct reflector_step){
                .action = REFLECTOR_WATCH_LIST,
                .version = policy->synced && !policy->version_gone ? REFLECTOR_VERSION_LAST : REFLECTOR_VERSION_NEWEST,
                .delay_ns = delay_ns,
        };
}

static struct reflector_step step_relist(const struct reflector_policy *policy, uint64_t delay_ns)
{
        return policy->watch_list ? step_watch_list(policy, delay_ns) : step_list(policy, delay_ns);
}

static struct reflector_step after_watch_status(struct reflector_policy *policy, const struct reflector_outcome *outcome,
                                                uint64_t now_ns, double chance)
{
        const struct kube_status *status = &outcome->status;

        if (kube_status_is_expired(status) || status->too_large)
                return step_relist(policy, relist_delay(policy, now_ns, chance));
        if (is_busy(status) || is_denied(status))
                return step_watch(wait_as_told(policy, status, now_ns, chance));
        return step_relist(policy, backoff_next(policy, now_ns, chance));
}

static struct reflector_step after_watch(struct reflector_policy *policy, const struct reflector_outcome *outcome, uint64_t now_ns,
                                         double chance)
{
        bool idle = outcome->events == 0;

        if (!idle)
                policy->watch_broken = 0;
        if (outcome->end == REFLECTOR_CLOSED)
                return step_watch(idle && outcome->lasted_ns < REFLECTOR_WATCH_SHORT_NS ? backoff_next(policy, now_ns, chance) : 0);

        if (outcome->end == REFLECTOR_BROKEN || (outcome->end == REFLECTOR_STATUS && outcome->in_stream))
                policy->watch_broken++;
        if (policy->watch_broken >= WATCH_BROKEN_TRIES) {
                policy->watch_broken = 0;
                return step_relist(policy, backoff_next(policy, now_ns, chance));
        }
        if (outcome->end == REFLECTOR_STATUS)
                return after_watch_status(policy, outcome, now_ns, chance);
        return step_watch(backoff_next(policy, now_ns, chance));
}

static struct reflector_step after_list(struct reflector_policy *policy, const struct reflector_outcome *outcome, uint64_t now_ns,
                                        double chance)
{
        const struct kube_status *status = &outcome->status;
        bool gone = kube_status_is_expired(status);

        if (outcome->end != REFLECTOR_STATUS)
                return step_list(policy, backoff_next(policy, now_ns, chance));

        if (gone && outcome->continued && policy->pages_expired == 0) {
                policy->pages_expired++;
                return step_list(policy, 0);
        }
        if ((gone || status->too_large) && policy->current.version != REFLECTOR_VERSION_NEWEST) {
                policy->version_gone = true;
                return step_list(policy, 0);
        }
        if (is_busy(status))
                return step_list(policy, wait_as_told(policy, status, now_ns, chance));
        return step_relist(policy, backoff_next(policy, now_ns, chance));
}

static struct reflector_step after_watch_list_status(struct reflector_policy *policy, const struct kube_status *status,
                                                     uint64_t now_ns, double chance)
{
        if ((kube_status_is_expired(status) || status->too_large) && policy->current.version == REFLECTOR_VERSION_LAST) {
                policy->version_gone = true;
                return step_watch_list(policy, 0);
        }
        if (status->code == 429 || is_denied(status) || (is_busy(status) && status->retry_after_ns > 0))
                return step_watch_list(policy, wait_as_told(policy, status, now_ns, chance));

        /* A server that does not know it says Invalid or BadRequest, and always will. */
        if (status->code == 400 || status->code == 422)
                policy->watch_list = false;
        return step_list(policy, 0);
}

static struct reflector_step after_watch_list(struct reflector_policy *policy, const struct reflector_outcome *outcome,
                                              uint64_t now_ns, double chance)
{
        uint64_t delay_ns;

        if (outcome->end == REFLECTOR_STATUS)
                return after_watch_list_status(policy, &outcome->status, now_ns, chance);

        delay_ns = backoff_next(policy, now_ns, chance);
        if (outcome->end == REFLECTOR_REFUSED || ++policy->watch_list_failed < REFLECTOR_WATCH_LIST_TRIES)
                return step_watch_list(policy, delay_ns);
        policy->watch_list_failed = 0;
        return step_list(policy, delay_ns);
}

static struct reflector_step after_sync(struct reflector_policy *policy)
{
        policy->synced = true;
        policy->version_gone = false;
        policy->watch_list_failed = 0;
        policy->watch_broken = 0;
        policy->pages_expired = 0;
        return step_watch(0);
}

void reflector_policy_init(struct reflector_policy *policy, bool watch_list, struct reflector_step *ret_step)
{
        *policy = (struct reflector_policy){ .watch_list = watch_list, .backoff_ns = REFLECTOR_BACKOFF_MIN_NS };
        policy->current = step_relist(policy, 0);
        *ret_step = policy->current;
}

void reflector_policy_next(struct reflector_policy *policy, const struct reflector_outcome *outcome, uint64_t now_ns, double chance,
                           struct reflector_step *ret_step)
{
        struct reflector_step step;

        if (outcome->end == REFLECTOR_SYNCED)
                step = after_sync(policy);
        else if (policy->current.action == REFLECTOR_WATCH)
                step = after_watch(policy, outcome, now_ns, chance);
        else if (policy->current.action == REFLECTOR_LIST)
                step = after_list(policy, outcome, now_ns, chance);
        else
                step = after_watch_list(policy, outcome, now_ns, chance);

        policy->current = step;
        *ret_step = step;
}

void reflector_policy_reachable(struct reflector_policy *policy, double chance, struct reflector_step *ret_step)
{
        policy->backoff_ns = REFLECTOR_BACKOFF_MIN_NS;
        policy->current.delay_ns = MIN(policy->current.delay_ns, (uint64_t)((double)REFLECTOR_BACKOFF_MIN_NS * chance));
        *ret_step = policy->current;
}
