/* SPDX-License-Identifier: Apache-2.0 */
/* The election's requests and callbacks, with a client that the tests answer for and a clock that they move. Its timing is proven in
 * test_kube_election_policy.c and test_kube_election_fencing.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <regex.h>
#include <string.h>

#include "base/time.h"
#include "kube/election.h"
#include "kube/patch.h"

#define RENEW_NS (100 * NSEC_PER_MSEC)
#define RETRY_NS (10 * NSEC_PER_MSEC)
#define STUCK_USEC (10 * UINT64_C(1000000))

enum { ROUNDS_MAX = 1000, LOG_MAX = 256 };

struct kube_request {
        enum kube_verb verb;
        char name[64];
        json_t *body;
        struct kube_change change;
        struct kube_request_callbacks callbacks;
        void *userdata;
};

struct kube_client {
        sd_event *event;
        struct kube_request request;
        bool pending;
        int refuses;
        unsigned cancelled;
        char log[LOG_MAX]; /* what happened, in order */
};

/* kube_election_sources hands on no userdata. */
static uint64_t the_time_ns;

static uint64_t the_time(void)
{
        return the_time_ns;
}

static double no_chance(void)
{
        return 0;
}

static void note(struct kube_client *client, const char *what)
{
        size_t length = strlen(client->log);

        snprintf(client->log + length, sizeof(client->log) - length, "%s%s", length ? " " : "", what);
}

/* The client */

static int take(struct kube_client *client, enum kube_verb verb, const struct kube_object *object, const json_t *body,
                const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
                struct kube_request **ret_request)
{
        assert_false(client->pending);
        assert_string_equal(object->api, "coordination.k8s.io/v1");
        assert_string_equal(object->resource, "leases");
        assert_string_equal(object->namespace, "lull");
        if (client->refuses)
                return client->refuses;

        note(client, kube_verb_to_string(verb));
        client->pending = true;
        client->request = (struct kube_request){ .verb = verb, .change = *change, .callbacks = *callbacks, .userdata = userdata };
        client->request.body = body ? json_deep_copy(body) : NULL;
        snprintf(client->request.name, sizeof(client->request.name), "%s", object->name ? object->name : "");
        *ret_request = &client->request;
        return 0;
}

int kube_get(struct kube_client *client, const struct kube_object *object, const struct kube_change *change,
             const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        return take(client, KUBE_GET, object, NULL, change, callbacks, userdata, ret_request);
}

int kube_create(struct kube_client *client, const struct kube_object *collection, const json_t *body,
                const struct kube_change *change, const struct kube_request_callbacks *callbacks, void *userdata,
                struct kube_request **ret_request)
{
        return take(client, KUBE_CREATE, collection, body, change, callbacks, userdata, ret_request);
}

int kube_update(struct kube_client *client, const struct kube_object *object, const json_t *body, const struct kube_change *change,
                const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        return take(client, KUBE_UPDATE, object, body, change, callbacks, userdata, ret_request);
}

struct kube_request *kube_request_cancel(struct kube_request *request)
{
        if (request) {
                struct kube_client *client = container_of(request, struct kube_client, request);

                assert_true(client->pending);
                client->pending = false;
                client->cancelled++;
                json_decref(request->body);
                request->body = NULL;
        }
        return NULL;
}

sd_event *kube_client_event(const struct kube_client *client)
{
        return client->event;
}

static void answer_with(struct kube_client *client, int error, unsigned code, json_t *body)
{
        struct kube_request request = client->request;
        struct kube_reply reply = { .error = error, .status.code = code, .body = body };

        assert_true(client->pending);
        if (code >= 400)
                snprintf(reply.status.message, sizeof(reply.status.message), "said no");
        client->pending = false;
        client->request.body = NULL;
        request.callbacks.done(&reply, request.userdata);
        json_decref(request.body);
        json_decref(body);
}

/* As the server does it: what was sent, with a version. */
static void accept_write(struct kube_client *client, const char *version)
{
        json_t *body = json_deep_copy(client->request.body);

        assert_int_equal(json_object_set_new(json_object_get(body, "metadata"), "resourceVersion", json_string(version)), 0);
        answer_with(client, 0, 200, body);
}

static json_t *lease_of(const char *holder, const char *version)
{
        return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:{s:s}}, s:{s:s, s:i, s:s, s:s, s:i, s:s}}", "apiVersion",
                         "coordination.k8s.io/v1", "kind", "Lease", "metadata", "namespace", "lull", "name", "leader",
                         "resourceVersion", version, "labels", "kept", "yes", "spec", "holderIdentity", holder,
                         "leaseDurationSeconds", 1, "acquireTime", "2026-01-31T12:00:00.250000Z", "renewTime",
                         "2026-01-31T12:00:00.250000Z", "leaseTransitions", 7, "preferredHolder", "someone");
}

static const char *text_at(const json_t *object, const char *outer, const char *inner)
{
        const char *text = json_string_value(json_object_get(json_object_get(object, outer), inner));

        assert_non_null(text);
        return text;
}

static json_int_t number_at(const json_t *object, const char *outer, const char *inner)
{
        return json_integer_value(json_object_get(json_object_get(object, outer), inner));
}

/* The election */

static void on_started(void *userdata)
{
        note(userdata, "started");
}

static void on_stopped(void *userdata)
{
        note(userdata, "stopped");
}

static void on_changed(const char *holder, void *userdata)
{
        note(userdata, *holder ? holder : "nobody");
}

static void on_released(void *userdata)
{
        note(userdata, "released");
}

static const struct kube_election_callbacks callbacks_noted = { .started = on_started,
                                                                .stopped = on_stopped,
                                                                .changed = on_changed };

static struct kube_election_settings settings_usual(void)
{
        return (struct kube_election_settings){
                .namespace = "lull",
                .name = "leader",
                .identity = "me",
                .lease_duration_ns = 300 * NSEC_PER_MSEC,
                .renew_deadline_ns = RENEW_NS,
                .retry_period_ns = RETRY_NS,
        };
}

static int new_election(struct kube_client *client, struct kube_election **ret_election)
{
        const struct kube_election_sources sources = { the_time, no_chance };
        struct kube_election_settings settings = settings_usual();

        return kube_election_new(client, &settings, &callbacks_noted, client, &sources, ret_election);
}

static struct kube_client new_client(void)
{
        struct kube_client client = { 0 };

        the_time_ns = 1000 * NSEC_PER_SEC;
        assert_true(sd_event_new(&client.event) >= 0);
        return client;
}

static void client_done(struct kube_client *client)
{
        assert_false(client->pending);
        sd_event_unref(client->event);
}

static void await_request(struct kube_client *client, enum kube_verb verb)
{
        for (int round = 0; !client->pending; round++) {
                assert_true(round < ROUNDS_MAX);
                assert_true(sd_event_run(client->event, STUCK_USEC) > 0);
        }
        assert_int_equal(client->request.verb, verb);
}

static void await_note(struct kube_client *client, const char *what)
{
        for (int round = 0; !strstr(client->log, what); round++) {
                assert_true(round < ROUNDS_MAX);
                assert_true(sd_event_run(client->event, STUCK_USEC) > 0);
        }
}

static struct kube_election *new_leader(struct kube_client *client)
{
        struct kube_election *election;

        assert_int_equal(new_election(client, &election), 0);
        await_request(client, KUBE_GET);
        answer_with(client, 0, 404, NULL);
        await_request(client, KUBE_CREATE);
        accept_write(client, "1");
        assert_true(kube_election_is_leader(election));
        return election;
}

static bool is_micro_time(const char *text)
{
        regex_t pattern;
        bool matches;

        assert_int_equal(regcomp(&pattern, "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$", REG_EXTENDED), 0);
        matches = regexec(&pattern, text, 0, NULL, 0) == 0;
        regfree(&pattern);
        return matches;
}

static void a_lease_that_is_not_there_is_created_and_then_held(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;
        const json_t *body;

        assert_int_equal(new_election(&client, &election), 0);
        assert_string_equal(client.log, ""); /* nothing from within the call */
        await_request(&client, KUBE_GET);
        assert_string_equal(client.request.name, "leader");
        answer_with(&client, 0, 404, NULL);

        await_request(&client, KUBE_CREATE);
        body = client.request.body;
        assert_string_equal(client.request.name, "");
        assert_string_equal(json_string_value(json_object_get(body, "apiVersion")), "coordination.k8s.io/v1");
        assert_string_equal(json_string_value(json_object_get(body, "kind")), "Lease");
        assert_string_equal(text_at(body, "metadata", "name"), "leader");
        assert_string_equal(text_at(body, "spec", "holderIdentity"), "me");
        assert_int_equal(number_at(body, "spec", "leaseDurationSeconds"), 1); /* rounded up */
        assert_true(is_micro_time(text_at(body, "spec", "acquireTime")));
        assert_true(is_micro_time(text_at(body, "spec", "renewTime")));
        assert_false(kube_election_is_leader(election));
        accept_write(&client, "1");

        assert_true(kube_election_is_leader(election));
        assert_string_equal(kube_election_holder(election), "me");
        assert_string_equal(kube_election_problem(election), "");
        assert_string_equal(client.log, "get create started me");
        assert_int_equal(kube_election_counters(election)->acquired, 1);
        client_done(&client);
}

static void requests_pass_the_lines_and_two_of_them_fit_into_renew_deadline(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        assert_int_equal(new_election(&client, &election), 0);
        await_request(&client, KUBE_GET);
        assert_int_equal(client.request.change.priority, KUBE_PRIORITY_WAKE);
        assert_true(client.request.change.deadline_ns == RENEW_NS / 2);
        answer_with(&client, -ETIMEDOUT, 0, NULL);
        client_done(&client);
}

static void an_update_is_guarded_by_the_version_read_and_keeps_what_is_not_ours(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        assert_int_equal(new_election(&client, &election), 0);
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("", "41"));
        await_request(&client, KUBE_UPDATE);
        assert_string_equal(text_at(client.request.body, "metadata", "resourceVersion"), "41");
        assert_string_equal(text_at(json_object_get(client.request.body, "metadata"), "labels", "kept"), "yes");
        assert_string_equal(text_at(client.request.body, "spec", "preferredHolder"), "someone");
        assert_string_equal(text_at(client.request.body, "spec", "holderIdentity"), "me");
        assert_int_equal(number_at(client.request.body, "spec", "leaseTransitions"), 8);
        accept_write(&client, "42");

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        assert_string_equal(text_at(client.request.body, "metadata", "resourceVersion"), "42");
        assert_int_equal(number_at(client.request.body, "spec", "leaseTransitions"), 8);
        accept_write(&client, "43");
        assert_int_equal(kube_election_counters(election)->renewals, 1);
        client_done(&client);
}

static void a_process_that_was_paused_does_not_lead_before_its_loop_has_run(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        the_time_ns += RENEW_NS - 1;
        assert_true(kube_election_is_leader(election));
        the_time_ns += 1;
        assert_false(kube_election_is_leader(election));
        assert_null(strstr(client.log, "stopped"));

        await_note(&client, "stopped");
        assert_int_equal(kube_election_counters(election)->lost, 1);
        await_request(&client, KUBE_UPDATE);
        answer_with(&client, -ETIMEDOUT, 0, NULL);
        client_done(&client);
}

static void a_leader_is_told_that_its_time_is_over_while_a_renewal_hangs(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        the_time_ns += RENEW_NS;
        await_note(&client, "stopped");
        answer_with(&client, -ETIMEDOUT, 0, NULL);
        client_done(&client);
}

static void another_holder_is_told_and_waited_for(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        assert_int_equal(new_election(&client, &election), 0);
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("other", "5"));
        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("other", "5"));
        the_time_ns += NSEC_PER_SEC - RETRY_NS;
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("other", "5"));
        await_request(&client, KUBE_UPDATE);
        accept_write(&client, "6");
        assert_string_equal(client.log, "get other get get update started me");
        client_done(&client);
}

static void a_conflict_is_counted_and_the_lease_read_again(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        answer_with(&client, 0, 409, NULL);
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("other", "9"));
        assert_false(kube_election_is_leader(election));
        assert_int_equal(kube_election_counters(election)->conflicts, 1);
        assert_string_equal(client.log, "get create started me update get stopped other");
        client_done(&client);
}

static void a_refusal_is_a_problem_until_a_request_succeeds(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        answer_with(&client, 0, 403, NULL);
        assert_string_equal(kube_election_problem(election), "writing of the Lease lull/leader: 403 said no");
        assert_true(kube_election_is_leader(election));
        assert_int_equal(kube_election_counters(election)->renewal_failures, 1);
        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, lease_of("me", "2"));
        assert_string_equal(kube_election_problem(election), "");
        await_request(&client, KUBE_UPDATE);
        answer_with(&client, -ECONNREFUSED, 0, NULL);
        assert_string_equal(kube_election_problem(election), "writing of the Lease lull/leader: 0 Connection refused");
        client_done(&client);
}

static void an_answer_that_is_no_lease_makes_no_leader(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        assert_int_equal(new_election(&client, &election), 0);
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 404, NULL);
        await_request(&client, KUBE_CREATE);
        answer_with(&client, 0, 200, json_pack("[]"));
        assert_false(kube_election_is_leader(election));
        assert_string_not_equal(kube_election_problem(election), "");
        the_time_ns += 3 * RETRY_NS;
        await_request(&client, KUBE_GET);
        answer_with(&client, 0, 200, NULL);
        assert_false(kube_election_is_leader(election));
        client_done(&client);
}

static void a_client_that_takes_no_request_is_asked_again_later(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        client.refuses = -ENOBUFS;
        assert_int_equal(new_election(&client, &election), 0);
        assert_true(sd_event_run(client.event, STUCK_USEC) > 0);
        assert_string_equal(kube_election_problem(election), "no request can be made: No buffer space available");
        client.refuses = 0;
        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_GET);
        answer_with(&client, -ETIMEDOUT, 0, NULL);
        client_done(&client);
}

static void a_leader_that_gives_back_stops_before_it_writes(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        kube_election_release(election, on_released, &client);
        assert_false(kube_election_is_leader(election));
        assert_string_equal(client.log, "get create started me stopped update");
        assert_string_equal(text_at(client.request.body, "spec", "holderIdentity"), "");
        assert_int_equal(number_at(client.request.body, "spec", "leaseDurationSeconds"), 1);
        assert_string_equal(text_at(client.request.body, "metadata", "resourceVersion"), "1");
        accept_write(&client, "2");
        await_note(&client, "released");
        kube_election_release(election, on_released, &client);
        the_time_ns += 10 * NSEC_PER_SEC;
        for (int round = 0; round < 5; round++)
                assert_true(sd_event_run(client.event, 0) >= 0);
        assert_string_equal(client.log, "get create started me stopped update nobody released");
        assert_int_equal(kube_election_counters(election)->lost, 0);
        client_done(&client);
}

static void giving_back_amid_a_renewal_cancels_it_and_reads_first(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = new_leader(&client);

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        kube_election_release(election, on_released, &client);
        assert_int_equal(client.cancelled, 1);
        await_request(&client, KUBE_GET);
        answer_with(&client, -ETIMEDOUT, 0, NULL);
        await_note(&client, "released");
        client_done(&client);
}

static void one_who_does_not_lead_is_done_at_once_but_not_within_the_call(void **state)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;

        assert_int_equal(new_election(&client, &election), 0);
        await_request(&client, KUBE_GET);
        kube_election_release(election, on_released, &client);
        assert_string_equal(client.log, "get");
        await_note(&client, "released");
        assert_string_equal(client.log, "get released");
        client_done(&client);
}

static void freed_amid_a_request_it_is_never_called_back(void **state)
{
        struct kube_client client = new_client();
        struct kube_election *election = new_leader(&client);

        the_time_ns += RETRY_NS;
        await_request(&client, KUBE_UPDATE);
        assert_null(kube_election_free(election));
        assert_int_equal(client.cancelled, 1);
        assert_null(strstr(client.log, "stopped"));
        client_done(&client);
}

static int try_settings(const struct kube_election_settings *settings)
{
        struct kube_client client = new_client();
        _cleanup_(kube_election_freep) struct kube_election *election = NULL;
        int r = kube_election_new(&client, settings, &callbacks_noted, &client, NULL, &election);

        election = kube_election_free(election);
        client_done(&client);
        return r;
}

static void durations_and_names_that_would_break_the_rules_are_refused(void **state)
{
        struct kube_election_settings settings = { .namespace = "lull", .name = "leader", .identity = "me" };
        char identity[300] = { 0 };

        assert_int_equal(try_settings(&settings), 0);
        settings.renew_deadline_ns = 15 * NSEC_PER_SEC;
        assert_int_equal(try_settings(&settings), -EINVAL);
        settings.renew_deadline_ns = 2400 * NSEC_PER_MSEC;
        assert_int_equal(try_settings(&settings), -EINVAL);
        settings.renew_deadline_ns = 2401 * NSEC_PER_MSEC;
        assert_int_equal(try_settings(&settings), 0);
        memset(identity, 'x', 254);
        settings.identity = identity;
        assert_int_equal(try_settings(&settings), -EINVAL);
        identity[253] = '\0';
        assert_int_equal(try_settings(&settings), 0);
        settings.identity = "";
        assert_int_equal(try_settings(&settings), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_lease_that_is_not_there_is_created_and_then_held),
                cmocka_unit_test(requests_pass_the_lines_and_two_of_them_fit_into_renew_deadline),
                cmocka_unit_test(an_update_is_guarded_by_the_version_read_and_keeps_what_is_not_ours),
                cmocka_unit_test(a_process_that_was_paused_does_not_lead_before_its_loop_has_run),
                cmocka_unit_test(a_leader_is_told_that_its_time_is_over_while_a_renewal_hangs),
                cmocka_unit_test(another_holder_is_told_and_waited_for),
                cmocka_unit_test(a_conflict_is_counted_and_the_lease_read_again),
                cmocka_unit_test(a_refusal_is_a_problem_until_a_request_succeeds),
                cmocka_unit_test(an_answer_that_is_no_lease_makes_no_leader),
                cmocka_unit_test(a_client_that_takes_no_request_is_asked_again_later),
                cmocka_unit_test(a_leader_that_gives_back_stops_before_it_writes),
                cmocka_unit_test(giving_back_amid_a_renewal_cancels_it_and_reads_first),
                cmocka_unit_test(one_who_does_not_lead_is_done_at_once_but_not_within_the_call),
                cmocka_unit_test(freed_amid_a_request_it_is_never_called_back),
                cmocka_unit_test(durations_and_names_that_would_break_the_rules_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
