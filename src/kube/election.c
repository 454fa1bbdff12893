/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "kube/chance.h"
#include "kube/election_policy.h"
#include "kube/patch.h"
#include "kube/resource.h"

#define LEASE_DEFAULT_NS (15 * NSEC_PER_SEC)
#define RENEW_DEFAULT_NS (10 * NSEC_PER_SEC)
#define RETRY_DEFAULT_NS (2 * NSEC_PER_SEC)
#define TIMER_ACCURACY_USEC 1000

struct kube_election {
        struct kube_client *client;
        char *namespace, *name;
        struct kube_election_callbacks callbacks;
        void *userdata;
        struct kube_election_sources sources;
        struct election_policy policy;
        sd_event_source *timer;
        struct kube_request *request;
        json_t *lease; /* as last read or written, with the version that guards the next update */
        bool told_leading;
        char told_holder[ELECTION_HOLDER_MAX];
        bool released;
        void (*release_done)(void *userdata);
        void *release_userdata;
        struct kube_election_counters counters;
        char problem[KUBE_ELECTION_PROBLEM_MAX];
};

static uint64_t now_boottime_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_BOOTTIME, &now);
        return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static struct election_moment moment_of(const struct kube_election *election)
{
        return (struct election_moment){
                .now_ns = election->sources.now_ns(),
                .realtime_us = now_realtime_ns() / NSEC_PER_USEC,
                .chance = election->sources.chance(),
        };
}

/* The Lease as JSON */

static int read_lease(struct kube_election *election, json_t *object, struct election_record *ret_record)
{
        _cleanup_(kube_lease_freep) struct kube_lease *lease = NULL;
        struct election_record *record = ret_record;
        const char *field = "";
        int r;

        r = kube_lease_read(object, &lease, &field);
        if (r < 0) {
                snprintf(election->problem, sizeof(election->problem), "the Lease %s/%s cannot be read: %s", election->namespace,
                         election->name, r == -EBADMSG ? field : strerror(-r));
                return r;
        }

        *record = (struct election_record){ .duration_seconds = lease->duration_seconds, .transitions = lease->transitions };
        snprintf(record->holder, sizeof(record->holder), "%s", lease->holder);
        snprintf(record->acquire_time, sizeof(record->acquire_time), "%s", lease->acquire_time);
        snprintf(record->renew_time, sizeof(record->renew_time), "%s", lease->renew_time);

        json_decref(election->lease);
        election->lease = json_incref(object);
        return 0;
}

static json_t *make_spec(const struct election_record *record)
{
        return json_pack("{s:s, s:I, s:s, s:s, s:I}", "holderIdentity", record->holder, "leaseDurationSeconds",
                         (json_int_t)record->duration_seconds, "acquireTime", record->acquire_time, "renewTime", record->renew_time,
                         "leaseTransitions", (json_int_t)record->transitions);
}

static json_t *make_new_lease(const struct kube_election *election)
{
        return json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", "coordination.k8s.io/v1", "kind", "Lease", "metadata",
                         "namespace", election->namespace, "name", election->name, "spec", make_spec(&election->policy.writing));
}

/* What others keep in it (labels, fields of the spec that are not ours) stays. */
static json_t *make_changed_lease(const struct kube_election *election)
{
        _cleanup_(json_decrefp) json_t *lease = json_deep_copy(election->lease);
        _cleanup_(json_decrefp) json_t *spec = make_spec(&election->policy.writing);
        json_t *old = json_object_get(lease, "spec");

        if (!lease || !spec)
                return NULL;
        if (json_is_object(old) ? json_object_update(old, spec) < 0 : json_object_set(lease, "spec", spec) < 0)
                return NULL;
        return TAKE_PTR(lease);
}

/* What follows from a step */

static void on_reply(const struct kube_reply *reply, void *userdata);

static int send_request(struct kube_election *election, enum election_action action)
{
        const struct kube_request_callbacks callbacks = { .done = on_reply };
        const struct kube_change change = {
                .priority = KUBE_PRIORITY_WAKE,
                .deadline_ns = election_policy_patience_ns(&election->policy),
        };
        struct kube_object object = {
                .api = "coordination.k8s.io/v1",
                .resource = "leases",
                .namespace = election->namespace,
                .name = election->name,
        };
        _cleanup_(json_decrefp) json_t *body = NULL;

        if (action == ELECTION_READ)
                return kube_get(election->client, &object, &change, &callbacks, election, &election->request);

        body = action == ELECTION_CREATE ? make_new_lease(election) : make_changed_lease(election);
        if (!body)
                return -ENOMEM;
        if (action == ELECTION_UPDATE)
                return kube_update(election->client, &object, body, &change, &callbacks, election, &election->request);

        object.name = NULL;
        return kube_create(election->client, &object, body, &change, &callbacks, election, &election->request);
}

static void carry_out(struct kube_election *election, enum election_action action)
{
        while (action == ELECTION_READ || action == ELECTION_CREATE || action == ELECTION_UPDATE) {
                int r = send_request(election, action);
                struct election_moment moment;

                if (r >= 0)
                        return;
                snprintf(election->problem, sizeof(election->problem), "no request can be made: %s", strerror(-r));
                moment = moment_of(election);
                action = election_policy_step(&election->policy, ELECTION_FAILED, NULL, &moment);
        }
        if (action == ELECTION_DONE)
                election->released = true;
}

/* The clock is the caller's in tests, so the timer is told how long, not until when. Setting a timer that exists cannot fail. */
static void arm(struct kube_election *election)
{
        uint64_t now_ns = election->sources.now_ns(), due_ns = election_policy_due_ns(&election->policy, now_ns);

        if (election->released)
                due_ns = election->release_done ? now_ns : UINT64_MAX;
        if (due_ns == UINT64_MAX) {
                (void)sd_event_source_set_enabled(election->timer, SD_EVENT_OFF);
                return;
        }
        (void)sd_event_source_set_time_relative(election->timer, due_ns > now_ns ? (due_ns - now_ns) / NSEC_PER_USEC + 1 : 0);
        (void)sd_event_source_set_enabled(election->timer, SD_EVENT_ONESHOT);
}

static void tell_leading(struct kube_election *election, bool leads)
{
        void (*tell)(void *) = leads ? election->callbacks.started : election->callbacks.stopped;

        if (leads == election->told_leading)
                return;
        election->told_leading = leads;
        if (tell)
                tell(election->userdata);
}

static void tell_holder(struct kube_election *election)
{
        if (strcmp(election->told_holder, election->policy.observed.holder) == 0)
                return;
        memcpy(election->told_holder, election->policy.observed.holder, sizeof(election->told_holder));
        if (election->callbacks.changed)
                election->callbacks.changed(election->told_holder, election->userdata);
}

static void settle(struct kube_election *election)
{
        bool leads = kube_election_is_leader(election);

        if (leads && !election->told_leading)
                election->counters.acquired++;
        if (!leads && election->told_leading)
                election->counters.lost++;
        tell_leading(election, leads);
        tell_holder(election);
        arm(election);
}

static void step(struct kube_election *election, enum election_event event, const struct election_record *record)
{
        struct election_moment moment = moment_of(election);

        carry_out(election, election_policy_step(&election->policy, event, record, &moment));
        settle(election);
}

/* What makes a step */

static enum election_event judge_refusal(struct kube_election *election, const struct kube_reply *reply)
{
        bool reading = election->policy.in_flight == ELECTION_READ;

        if (reply->error == 0 && reply->status.code == 404 && reading)
                return ELECTION_ABSENT;
        if (reply->error == 0 && reply->status.code == 409)
                return ELECTION_CONFLICT;

        snprintf(election->problem, sizeof(election->problem), "%s of the Lease %s/%s: %u %s", reading ? "reading" : "writing",
                 election->namespace, election->name, reply->status.code,
                 reply->status.message[0] ? reply->status.message : strerror(-reply->error));
        return reply->error == 0 && reply->status.code == 404 ? ELECTION_ABSENT : ELECTION_FAILED;
}

static enum election_event judge_reply(struct kube_election *election, const struct kube_reply *reply,
                                       struct election_record *ret_record)
{
        election->problem[0] = '\0';
        if (!kube_reply_is_ok(reply))
                return judge_refusal(election, reply);
        if (read_lease(election, reply->body, ret_record) < 0)
                return ELECTION_FAILED;
        return election->policy.in_flight == ELECTION_READ ? ELECTION_RECORD : ELECTION_WRITTEN;
}

static void on_reply(const struct kube_reply *reply, void *userdata)
{
        struct kube_election *election = userdata;
        struct election_record record;
        enum election_event event;

        election->request = NULL;
        event = judge_reply(election, reply, &record);
        if (event == ELECTION_CONFLICT)
                election->counters.conflicts++;
        if (election->told_leading) {
                election->counters.renewals += event == ELECTION_WRITTEN;
                election->counters.renewal_failures += event == ELECTION_FAILED;
        }
        step(election, event, event == ELECTION_RECORD ? &record : NULL);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct kube_election *election = userdata;

        if (!election->released) {
                step(election, ELECTION_TIMER, NULL);
                return 0;
        }
        if (election->release_done)
                election->release_done(election->release_userdata);
        return 0;
}

void kube_election_release(struct kube_election *election, void (*done)(void *userdata), void *userdata)
{
        struct election_moment moment = moment_of(election);
        enum election_action action;

        if (election->policy.release_tries > 0)
                return;

        election->request = kube_request_cancel(election->request);
        election->release_done = done;
        election->release_userdata = userdata;
        action = election_policy_release(&election->policy, &moment);
        tell_leading(election, false);
        carry_out(election, action);
        settle(election);
}

/* Life */

static int read_rules(const struct kube_election_settings *settings, struct election_rules *ret_rules)
{
        struct election_rules rules = {
                .lease_ns = settings->lease_duration_ns ? settings->lease_duration_ns : LEASE_DEFAULT_NS,
                .renew_ns = settings->renew_deadline_ns ? settings->renew_deadline_ns : RENEW_DEFAULT_NS,
                .retry_ns = settings->retry_period_ns ? settings->retry_period_ns : RETRY_DEFAULT_NS,
        };
        size_t length = strlen(settings->identity);
        uint64_t seconds = (rules.lease_ns - 1) / NSEC_PER_SEC + 1;

        if (length == 0 || length > ELECTION_IDENTITY_MAX || !settings->namespace[0] || !settings->name[0])
                return -EINVAL;
        if (seconds > INT32_MAX || rules.renew_ns >= rules.lease_ns ||
            (double)rules.retry_ns * ELECTION_JITTER >= (double)rules.renew_ns)
                return -EINVAL;

        rules.lease_ns = seconds * NSEC_PER_SEC;
        memcpy(rules.identity, settings->identity, length + 1);
        *ret_rules = rules;
        return 0;
}

int kube_election_new(struct kube_client *client, const struct kube_election_settings *settings,
                      const struct kube_election_callbacks *callbacks, void *userdata, const struct kube_election_sources *sources,
                      struct kube_election **ret_election)
{
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;
        struct election_rules rules;
        int r;

        r = read_rules(settings, &rules);
        if (r < 0)
                return r;

        election = calloc(1, sizeof(*election));
        if (!election)
                return -ENOMEM;
        election->client = client;
        election->callbacks = *callbacks;
        election->userdata = userdata;
        election->sources = sources ? *sources : (struct kube_election_sources){ now_boottime_ns, kube_chance };
        election_policy_init(&election->policy, &rules);
        election->namespace = strdup(settings->namespace);
        election->name = strdup(settings->name);
        if (!election->namespace || !election->name)
                return -ENOMEM;

        r = sd_event_add_time_relative(kube_client_event(client), &election->timer, CLOCK_BOOTTIME, 0, TIMER_ACCURACY_USEC,
                                       on_timer, election);
        if (r < 0)
                return r;

        *ret_election = TAKE_PTR(election);
        return 0;
}

struct kube_election *kube_election_free(struct kube_election *election)
{
        if (!election)
                return NULL;
        kube_request_cancel(election->request);
        sd_event_source_disable_unref(election->timer);
        json_decref(election->lease);
        free(election->namespace);
        free(election->name);
        free(election);
        return NULL;
}

bool kube_election_is_leader(const struct kube_election *election)
{
        return election_policy_may_act(&election->policy, election->sources.now_ns());
}

const char *kube_election_holder(const struct kube_election *election)
{
        return election->policy.observed.holder;
}

const char *kube_election_problem(const struct kube_election *election)
{
        return election->problem;
}

const struct kube_election_counters *kube_election_counters(const struct kube_election *election)
{
        return &election->counters;
}
