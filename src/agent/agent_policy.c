/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent_policy.h"

#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/hold.h"
#include "serve/event_log.h"

int agent_policy_new(struct node *node, const char *name, struct agent_policy **ret_policy)
{
        struct agent_policy *policy = calloc(1, sizeof(*policy));

        if (!policy)
                return -ENOMEM;
        policy->node = node;
        policy->quiet_epoch = -1;
        policy->state = WORKLOAD_UNKNOWN;
        policy->name = strdup(name);
        if (policy->name)
                HASH_ADD_KEYPTR(by_name, node->policies, policy->name, strlen(policy->name), policy);
        if (!policy->name || !policy->by_name.tbl) {
                agent_policy_free(policy, false);
                return -ENOMEM;
        }
        *ret_policy = policy;
        return 0;
}

/* The oldest version that is not in force stays: later ones are no nearer to it. */
static void set_unprogrammed(struct agent_policy *policy, uint64_t version)
{
        if (version && policy->unprogrammed_version)
                return;
        if (version && !policy->unprogrammed_version)
                LIST_INSERT_HEAD(&policy->node->unprogrammed, policy, unprogrammed);
        if (!version && policy->unprogrammed_version)
                LIST_REMOVE(policy, unprogrammed);
        if (version != policy->unprogrammed_version) {
                policy->unprogrammed_version = version;
                node_report(policy->node, false);
        }
}

static void forget_holding(struct agent_policy *policy)
{
        agent_policy_forget_endpoints(policy);
        policy->holding = holding_free(policy->holding);
        policy->plan = hold_plan_free(policy->plan);
        policy->expecting = false;
}

struct agent_policy *agent_policy_free(struct agent_policy *policy, bool keep_pins)
{
        if (!policy)
                return NULL;
        if (policy->by_name.tbl)
                HASH_DELETE(by_name, policy->node->policies, policy);
        if (policy->has_demand)
                LIST_REMOVE(policy, demanded);
        agent_policy_forget_pods(policy, keep_pins);
        forget_holding(policy);
        set_unprogrammed(policy, 0);
        sd_event_source_disable_unref(policy->timer);
        label_selector_free(policy->selector);
        free(policy->selector_text);
        free(policy->demand.source);
        free(policy->name);
        free(policy);
        return NULL;
}

bool agent_policy_is_releasing(const struct agent_policy *policy)
{
        return policy->holding && holding_is_started(policy->holding) && (policy->expecting || policy->n_endpoints > 0);
}

static uint64_t version_of(const struct scale_to_zero *object)
{
        return strtoull(object->metadata.resource_version, NULL, 10);
}

/* Frontends and who may wake are a holding's for its life: a change makes a new one, which takes over what is parked. */
static int replace_holding(struct agent_policy *policy, struct hold_plan *plan)
{
        struct holding_config config = {
                .name = policy->name,
                .frontends = plan->frontends,
                .n_frontends = plan->n_frontends,
                .services = plan->services,
                .from = plan->from,
                .n_from = plan->n_from,
                .ignore = plan->ignore,
                .n_ignore = plan->n_ignore,
                .max_held = plan->max_held,
                .hold_timeout_ns = plan->hold_timeout_ns,
        };
        _cleanup_(holding_freep) struct holding *holding = NULL;
        int r;

        if (plan->n_frontends > 0) {
                r = holding_new(policy->node->hold, &config, policy, &holding);
                if (r < 0)
                        return r;
        }
        if (holding && policy->holding && holding_is_started(policy->holding)) {
                r = holding_start(holding);
                if (r < 0)
                        return r;
                holding_move(policy->holding, holding);
                policy->armed = true;
        }
        forget_holding(policy);
        policy->holding = TAKE_PTR(holding);
        policy->plan = plan;
        return 0;
}

/* Where the spec is wrong, what was held before still is, as it was. */
static int follow_plan(struct agent_policy *policy)
{
        _cleanup_(hold_plan_freep) struct hold_plan *plan = NULL;
        int r;

        if (!policy->object->policy)
                return policy->plan ? 0 : -EINVAL;
        r = hold_plan_make(policy->object, policy->node->name, &plan);
        if (r < 0)
                return r;
        if (policy->plan && hold_plan_equal(policy->plan, plan))
                return 0;
        r = replace_holding(policy, plan);
        if (r >= 0)
                TAKE_PTR(plan);
        return r;
}

static bool has_ready_endpoint(const struct scale_to_zero_status *status)
{
        for (size_t i = 0; i < status->n_endpoints; i++)
                if (status->endpoints[i].ready)
                        return true;
        return false;
}

/* @anew: the phase has begun for which it holds. */
static int hold(struct agent_policy *policy, bool anew)
{
        int r;

        if (!policy->holding)
                return 0;
        if (policy->drained && has_ready_endpoint(&policy->object->status))
                return 0; /* this node's data plane knows the endpoints before the controller says that it is Awake */
        policy->drained = false;
        if (holding_is_started(policy->holding) && !anew)
                return 0;

        r = holding_start(policy->holding);
        if (r < 0)
                return r;
        policy->armed = true;
        policy->held_since_ns = now_monotonic_ns();
        policy->expecting = false;
        policy->give_up_ns = 0;
        return 0;
}

static void let_go(struct agent_policy *policy)
{
        agent_policy_forget_endpoints(policy);
        holding_stop(policy->holding);
        policy->give_up_ns = 0;
}

/* An earlier agent has left it Releasing, and this node's data plane is not known to be proven. */
static void take_over(struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        int r;

        if (status->phase != PHASE_AWAKE || status->n_endpoints == 0 || !holding_is_left(policy->holding))
                return;
        r = holding_start(policy->holding);
        if (r < 0)
                log_warning("policy \"%s\": cannot go on releasing what the agent before held: %s; the data plane has to do",
                            policy->name, strerror(-r));
        policy->armed = r >= 0;
}

static bool may_get_endpoints(const struct agent_policy *policy)
{
        return policy->object->status.n_endpoints > 0 ||
               (policy->woken_ns && now_monotonic_ns() - policy->woken_ns < ENDPOINTS_NAMED_NS);
}

/* The status no longer says to hold. Where it names no endpoints any more either, the data planes have had their time: whether this
 * node's is proven or not, new flows are better off there than held. */
static void end_holding(struct agent_policy *policy)
{
        policy->drained = false;
        if (policy->holding && !holding_is_started(policy->holding))
                take_over(policy);
        if (!policy->holding || !holding_is_started(policy->holding))
                return;
        if (policy->object->status.phase != PHASE_AWAKE) {
                agent_policy_forget_endpoints(policy);
                holding_refuse(policy->holding);
                event_log_add(policy->node->events, policy->name, "Refused",
                              "what was held went on to its normal refusal: no endpoint was ready in time");
                return;
        }
        if (!may_get_endpoints(policy)) {
                let_go(policy);
                return;
        }
        if (policy->give_up_ns == 0)
                policy->give_up_ns = now_monotonic_ns() + GIVE_UP_NS;
}

static void tell_hold_failure(struct agent_policy *policy, int r)
{
        if (policy->hold_again_ns == 0)
                log_error("policy \"%s\": cannot hold its frontends: %s; trying again every 10 s", policy->name,
                          r == -EINVAL ? policy->object->policy_problem : strerror(-r));
        policy->hold_again_ns = now_monotonic_ns() + HOLD_AGAIN_NS;
}

static void follow_holding(struct agent_policy *policy, bool anew)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        int r = follow_plan(policy);

        if (!status->holding)
                end_holding(policy);
        else if (r >= 0 && !policy->passed_on)
                r = hold(policy, anew);

        if (r < 0 && status->holding) {
                tell_hold_failure(policy, r);
                set_unprogrammed(policy, version_of(policy->object));
                return;
        }
        policy->hold_again_ns = 0;
        set_unprogrammed(policy, 0);
}

static void expect_data_plane(struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;

        if (policy->expecting || !policy->holding || !holding_is_started(policy->holding))
                return;
        if (status->phase == PHASE_AWAKE || (status->phase == PHASE_WAKING && has_ready_endpoint(status))) {
                policy->expecting = true;
                holding_expect_data_plane(policy->holding);
        }
}

/* A sleep waits for this node's word that it holds. At most once a second, lest a thousand of them make a thousand writes. */
static void acknowledge_sleep(struct agent_policy *policy)
{
        struct node *node = policy->node;

        node->sleeping_version = MAX(node->sleeping_version, version_of(policy->object));
        node_report_at(node, node->programmed_ns + NSEC_PER_SEC);
}

static bool has_failed(const struct scale_to_zero_status *status)
{
        const struct status_condition *condition = status_find_condition(status, "WakeFailed");

        return condition && condition->holds;
}

static bool sleeps(enum phase phase)
{
        return phase == PHASE_SLEEPING || phase == PHASE_ASLEEP;
}

/* What the status says anew since it was followed last. */
struct news {
        bool phase; /* phase or epoch */
        bool sleep; /* the pods of before are not to be had any more */
        bool wake;  /* phase, epoch, or whether the wake has failed: what a demand means */
};

/* What is remembered of an epoch or a phase ends with it. */
static struct news follow_phase(struct agent_policy *policy)
{
        const struct scale_to_zero_status *status = &policy->object->status;
        bool failed = has_failed(status), other_epoch = !policy->followed || policy->epoch != status->epoch;
        struct news news = {
                .phase = other_epoch || policy->phase != status->phase,
                .sleep = sleeps(status->phase) && (other_epoch || !sleeps(policy->phase)),
        };

        news.wake = news.phase || policy->failed != failed;
        if (news.phase && policy->followed)
                event_log_add(policy->node->events, policy->name, phase_to_string(status->phase), "it was %s",
                              phase_to_string(policy->phase));
        if (news.phase) {
                bool woken = policy->followed && policy->phase != PHASE_SLEEPING && status->phase == PHASE_AWAKE;

                policy->woken_ns = woken ? now_monotonic_ns() : 0;
                if (woken && policy->waking_ns)
                        policy->cold_start_ns = policy->woken_ns - policy->waking_ns;
                policy->waking_ns = policy->followed && status->phase == PHASE_WAKING ? now_monotonic_ns() : 0;
        }
        policy->followed = true;
        policy->epoch = status->epoch;
        policy->phase = status->phase;
        policy->failed = failed;
        if (news.phase) {
                policy->passed_on = policy->unquiet = false;
                policy->pass_on_ns = policy->give_up_ns = 0;
        }
        return news;
}

void agent_policy_follow(struct agent_policy *policy, const struct scale_to_zero *object)
{
        struct news news;

        policy->object = object;
        policy->node->version = MAX(policy->node->version, version_of(object));
        news = follow_phase(policy);
        follow_holding(policy, news.sleep);
        if (news.wake)
                agent_policy_follow_demand(policy);
        agent_policy_follow_endpoints(policy);
        expect_data_plane(policy);
        agent_policy_follow_pods(policy);
        if (news.phase && policy->phase == PHASE_SLEEPING)
                acknowledge_sleep(policy);
        agent_policy_judge(policy);
}

/* Nobody has answered that it is to be awake, and its pods still run: they get what waits for them. */
static void pass_on(struct agent_policy *policy)
{
        policy->pass_on_ns = 0;
        if (policy->phase != PHASE_SLEEPING || !policy->holding)
                return;
        policy->passed_on = true;
        policy->node->counters.passed_on++;
        holding_stop(policy->holding);
        event_log_add(policy->node->events, policy->name, "PassedOn",
                      "no controller answered the demand within 2 s; what was held went on to the pods that still run");
}

static void give_up(struct agent_policy *policy)
{
        policy->give_up_ns = 0;
        if (!policy->holding || !holding_is_started(policy->holding))
                return;
        let_go(policy);
        event_log_add(policy->node->events, policy->name, "GaveUp",
                      "it is Awake, but no endpoint and no data plane answered for 30 s; what was held went on");
}

static bool is_due(uint64_t deadline_ns, uint64_t now_ns)
{
        return deadline_ns && deadline_ns <= now_ns;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct agent_policy *policy = userdata;
        uint64_t now = now_monotonic_ns();

        if (is_due(policy->pass_on_ns, now))
                pass_on(policy);
        if (is_due(policy->give_up_ns, now))
                give_up(policy);
        if (is_due(policy->hold_again_ns, now)) {
                follow_holding(policy, false);
                agent_policy_follow_endpoints(policy);
                expect_data_plane(policy);
        }
        if (is_due(policy->look_ns, now))
                agent_policy_judge(policy);
        else
                agent_policy_arm_timer(policy);
        return 0;
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
        if (a_ns == 0 || b_ns == 0)
                return MAX(a_ns, b_ns);
        return MIN(a_ns, b_ns);
}

void agent_policy_arm_timer(struct agent_policy *policy)
{
        uint64_t due = earlier(earlier(policy->pass_on_ns, policy->give_up_ns), earlier(policy->hold_again_ns, policy->look_ns));
        uint64_t usec = due / NSEC_PER_USEC + 1;
        int r = 0;

        if (due == 0) {
                if (policy->timer)
                        r = sd_event_source_set_enabled(policy->timer, SD_EVENT_OFF);
        } else if (!policy->timer) {
                r = sd_event_add_time(policy->node->event, &policy->timer, CLOCK_MONOTONIC, usec, NSEC_PER_MSEC / NSEC_PER_USEC,
                                      on_timer, policy);
        } else {
                sd_event_source_set_time(policy->timer, usec);
                r = sd_event_source_set_enabled(policy->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                log_error("policy \"%s\": cannot set its timer: %s", policy->name, strerror(-r));
}
