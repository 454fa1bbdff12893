/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election_policy.h"

#include <string.h>

#include "base/macros.h"
#include "base/time.h"

static bool is_ours(const struct election_policy *policy)
{
        return strcmp(policy->observed.holder, policy->rules.identity) == 0;
}

static bool is_equal(const struct election_record *a, const struct election_record *b)
{
        return strcmp(a->holder, b->holder) == 0 && a->duration_seconds == b->duration_seconds &&
               a->transitions == b->transitions && strcmp(a->acquire_time, b->acquire_time) == 0 &&
               strcmp(a->renew_time, b->renew_time) == 0;
}

static uint64_t expires_ns(const struct election_policy *policy)
{
        uint64_t seconds = policy->observed.duration_seconds;

        return policy->observed_ns + (seconds ? seconds * NSEC_PER_SEC : policy->rules.lease_ns);
}

/* Someone else may still act on it. */
static bool is_taken(const struct election_policy *policy, uint64_t now_ns)
{
        return policy->observed.holder[0] != '\0' && !is_ours(policy) && now_ns < expires_ns(policy);
}

static enum election_action send(struct election_policy *policy, enum election_action action, const struct election_moment *moment)
{
        policy->in_flight = action;
        policy->sent_ns = moment->now_ns;
        if (action == ELECTION_READ)
                policy->attempt_has_read = true;
        return action;
}

static enum election_action end_attempt(struct election_policy *policy, const struct election_moment *moment)
{
        uint64_t retry_ns = policy->rules.retry_ns;

        if (is_ours(policy) || moment->now_ns < policy->until_ns) {
                policy->next_ns = MAX(moment->now_ns, policy->attempt_ns + retry_ns);
                return ELECTION_WAIT;
        }

        policy->next_ns = moment->now_ns + retry_ns + (uint64_t)((double)retry_ns * ELECTION_JITTER * moment->chance);
        if (is_taken(policy, moment->now_ns))
                policy->next_ns = MIN(policy->next_ns, expires_ns(policy));
        return ELECTION_WAIT;
}

/* Others tell one renewal from the next by its time alone, whatever happens to this machine's wall clock. */
static void stamp(struct election_policy *policy, char text[static MICRO_TIME_TEXT_MAX], const struct election_moment *moment)
{
        policy->written_us = MAX(moment->realtime_us, policy->written_us + 1);
        micro_time_format(policy->written_us, text);
}

static enum election_action write_claim(struct election_policy *policy, enum election_action action,
                                        const struct election_moment *moment)
{
        struct election_record *writing = &policy->writing;

        *writing = policy->observed;
        stamp(policy, writing->renew_time, moment);
        writing->duration_seconds = (uint32_t)(policy->rules.lease_ns / NSEC_PER_SEC);
        if (!is_ours(policy) || action == ELECTION_CREATE) {
                memcpy(writing->holder, policy->rules.identity, sizeof(writing->holder));
                memcpy(writing->acquire_time, writing->renew_time, sizeof(writing->acquire_time));
                writing->transitions = action == ELECTION_CREATE ? 0 : policy->observed.transitions + 1;
        }
        policy->may_hold = true;
        return send(policy, action, moment);
}

static enum election_action write_release(struct election_policy *policy, const struct election_moment *moment)
{
        struct election_record *writing = &policy->writing;

        *writing = policy->observed;
        writing->holder[0] = '\0';
        writing->duration_seconds = 1;
        stamp(policy, writing->renew_time, moment);
        memcpy(writing->acquire_time, writing->renew_time, sizeof(writing->acquire_time));
        return send(policy, ELECTION_UPDATE, moment);
}

static void observe(struct election_policy *policy, const struct election_record *record, uint64_t now_ns)
{
        if (!is_equal(&policy->observed, record)) {
                policy->observed = *record;
                policy->observed_ns = now_ns;
        }
        policy->current = true;
        if (!is_ours(policy)) {
                policy->until_ns = 0;
                policy->may_hold = false;
        }
}

static enum election_action begin_attempt(struct election_policy *policy, const struct election_moment *moment)
{
        if (policy->release_tries > 0 || policy->in_flight != ELECTION_WAIT || moment->now_ns < policy->next_ns)
                return ELECTION_WAIT;

        policy->attempt_ns = moment->now_ns;
        policy->attempt_has_read = false;
        if (policy->current && is_ours(policy))
                return write_claim(policy, ELECTION_UPDATE, moment);
        return send(policy, ELECTION_READ, moment);
}

static enum election_action after_absent(struct election_policy *policy, enum election_action ended,
                                         const struct election_moment *moment)
{
        policy->current = false;
        if (ended != ELECTION_READ && !policy->attempt_has_read)
                return send(policy, ELECTION_READ, moment);
        if (ended != ELECTION_READ || is_taken(policy, moment->now_ns))
                return end_attempt(policy, moment);
        return write_claim(policy, ELECTION_CREATE, moment);
}

static enum election_action after_written(struct election_policy *policy, const struct election_moment *moment)
{
        policy->observed = policy->writing;
        policy->observed_ns = moment->now_ns;
        policy->current = true;
        policy->until_ns = policy->sent_ns + policy->rules.renew_ns;
        return end_attempt(policy, moment);
}

static enum election_action after_conflict(struct election_policy *policy, const struct election_moment *moment)
{
        policy->current = false;
        if (!policy->attempt_has_read)
                return send(policy, ELECTION_READ, moment);
        return end_attempt(policy, moment);
}

static enum election_action release_step(struct election_policy *policy, enum election_event event,
                                         const struct election_record *record, const struct election_moment *moment)
{
        if (event == ELECTION_RECORD) {
                observe(policy, record, moment->now_ns);
                if (is_ours(policy))
                        return write_release(policy, moment);
        }
        if (event == ELECTION_CONFLICT && policy->release_tries++ < ELECTION_RELEASE_TRIES)
                return send(policy, ELECTION_READ, moment);
        if (event == ELECTION_WRITTEN)
                policy->observed = policy->writing;
        return ELECTION_DONE;
}

enum election_action election_policy_step(struct election_policy *policy, enum election_event event,
                                          const struct election_record *record, const struct election_moment *moment)
{
        enum election_action ended = policy->in_flight;

        if (event == ELECTION_TIMER)
                return begin_attempt(policy, moment);

        policy->in_flight = ELECTION_WAIT;
        if (policy->release_tries > 0)
                return release_step(policy, event, record, moment);

        switch (event) {
        case ELECTION_RECORD:
                observe(policy, record, moment->now_ns);
                if (is_taken(policy, moment->now_ns))
                        return end_attempt(policy, moment);
                return write_claim(policy, ELECTION_UPDATE, moment);
        case ELECTION_ABSENT:
                return after_absent(policy, ended, moment);
        case ELECTION_WRITTEN:
                return after_written(policy, moment);
        case ELECTION_CONFLICT:
                return after_conflict(policy, moment);
        case ELECTION_FAILED:
                policy->current = policy->current && ended == ELECTION_READ;
                return end_attempt(policy, moment);
        case ELECTION_TIMER:
                break;
        }
        return ELECTION_WAIT;
}

enum election_action election_policy_release(struct election_policy *policy, const struct election_moment *moment)
{
        bool abandoned = policy->in_flight != ELECTION_WAIT;

        policy->until_ns = 0;
        policy->in_flight = ELECTION_WAIT;
        policy->release_tries = 1;
        if (!policy->may_hold)
                return ELECTION_DONE;
        if (policy->current && is_ours(policy) && !abandoned)
                return write_release(policy, moment);
        return send(policy, ELECTION_READ, moment);
}

void election_policy_init(struct election_policy *policy, const struct election_rules *rules)
{
        *policy = (struct election_policy){ .rules = *rules };
}

bool election_policy_may_act(const struct election_policy *policy, uint64_t now_ns)
{
        return now_ns < policy->until_ns;
}

uint64_t election_policy_due_ns(const struct election_policy *policy, uint64_t now_ns)
{
        uint64_t due_ns = UINT64_MAX;

        if (policy->in_flight == ELECTION_WAIT && policy->release_tries == 0)
                due_ns = policy->next_ns;
        if (now_ns < policy->until_ns)
                due_ns = MIN(due_ns, policy->until_ns);
        return due_ns;
}

/* Half of renewDeadline, as client-go has it, so that a renewal whose answer is lost can be tried once more in time. */
uint64_t election_policy_patience_ns(const struct election_policy *policy)
{
        return policy->rules.renew_ns / 2;
}
