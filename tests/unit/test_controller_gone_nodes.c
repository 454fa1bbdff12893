/* SPDX-License-Identifier: Apache-2.0 */
/* What agents of nodes that are no more leave behind is taken away, and nothing of a node that is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/time.h"
#include "controller/gone_nodes.h"
#include "unit/kube_fake.h"

#define NODE(name) "/api/v1/nodes/" name
#define ACTIVITY(name) "/apis/lull.dev/v1alpha1/nodeactivities/" name
#define LEASE(name) "/apis/coordination.k8s.io/v1/namespaces/lull/leases/lull-agent-" name

struct fixture {
        struct kube_client client;
        struct agents *agents;
        struct gone_nodes *gone;
        uint64_t begin_ns, now_ns;
        bool leads;
};

static bool leads(void *userdata)
{
        return ((struct fixture *)userdata)->leads;
}

static uint64_t now(void *userdata)
{
        return ((struct fixture *)userdata)->now_ns;
}

static void renew(struct fixture *fixture, const char *name, const char *time, uint64_t at_ns)
{
        const struct kube_lease lease = {
                .metadata.name = (char *)name, .holder = (char *)"someone", .renew_time = (char *)time, .duration_seconds = 40
        };

        assert_true(agents_lease(fixture->agents, &lease, at_ns) >= 0);
}

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct gone_nodes_settings settings = { .namespace = "lull", .leads = leads, .now_ns = now };

        LIST_INIT(&fixture->client.requests);
        assert_int_equal(sd_event_new(&fixture->client.event), 0);
        assert_int_equal(agents_new(&fixture->agents), 0);
        settings.agents = fixture->agents;
        assert_int_equal(gone_nodes_new(&fixture->client, &settings, fixture, &fixture->gone), 0);
        fixture->begin_ns = now_monotonic_ns(); /* timers are for later than this test */
        fixture->leads = true;
        renew(fixture, "lull-agent-n1", "a", fixture->begin_ns);
        renew(fixture, "lull-agent-n2", "a", fixture->begin_ns + NSEC_PER_SEC);
        fixture->now_ns = fixture->begin_ns + GONE_AFTER_NS;
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        gone_nodes_free(fixture->gone);
        assert_true(LIST_EMPTY(&fixture->client.requests));
        agents_free(fixture->agents);
        sd_event_unref(fixture->client.event);
        free(fixture);
        return 0;
}

static bool nothing_is_asked(struct fixture *fixture)
{
        return LIST_EMPTY(&fixture->client.requests);
}

static void a_node_that_is_gone_leaves_nothing(void **state)
{
        struct fixture *fixture = *state;

        gone_nodes_look(fixture->gone);
        answer(find(&fixture->client, NODE("n1")), 404, "{}");
        assert_int_equal(find(&fixture->client, ACTIVITY("n1"))->verb, KUBE_DELETE);
        answer(find(&fixture->client, ACTIVITY("n1")), 404, "{}"); /* it never said anything */
        assert_int_equal(find(&fixture->client, LEASE("n1"))->verb, KUBE_DELETE);
        answer(find(&fixture->client, LEASE("n1")), 200, "{}");
        assert_true(nothing_is_asked(fixture)); /* the other's time is yet to come */
}

static void an_agent_is_asked_about_after_an_hour_of_silence(void **state)
{
        struct fixture *fixture = *state;

        fixture->now_ns--;
        gone_nodes_look(fixture->gone);
        assert_true(nothing_is_asked(fixture));
}

static void one_that_was_heard_of_meanwhile_is_not_asked_about(void **state)
{
        struct fixture *fixture = *state;

        renew(fixture, "lull-agent-n1", "b", fixture->now_ns);
        renew(fixture, "lull-agent-n2", "b", fixture->now_ns);
        gone_nodes_look(fixture->gone);
        assert_true(nothing_is_asked(fixture));
}

static void only_the_leader_deletes(void **state)
{
        struct fixture *fixture = *state;

        fixture->leads = false;
        gone_nodes_look(fixture->gone);
        assert_true(nothing_is_asked(fixture));
}

static void a_node_that_is_there_keeps_what_its_agent_said(void **state)
{
        struct fixture *fixture = *state;

        fixture->now_ns += NSEC_PER_SEC;
        gone_nodes_look(fixture->gone);
        answer(find(&fixture->client, NODE("n1")), 200, "{}");
        answer(find(&fixture->client, NODE("n2")), 503, "{}"); /* the next one has its turn */
        assert_true(nothing_is_asked(fixture));
}

static void an_agent_that_comes_back_meanwhile_keeps_its_lease(void **state)
{
        struct fixture *fixture = *state;

        gone_nodes_look(fixture->gone);
        answer(find(&fixture->client, NODE("n1")), 404, "{}");
        renew(fixture, "lull-agent-n1", "b", fixture->now_ns);
        answer(find(&fixture->client, ACTIVITY("n1")), 200, "{}");
        assert_true(nothing_is_asked(fixture));
}

static void what_could_not_be_deleted_is_tried_again_later(void **state)
{
        struct fixture *fixture = *state;
        uint64_t due_ns;

        gone_nodes_look(fixture->gone);
        answer(find(&fixture->client, NODE("n1")), 404, "{}");
        answer(find(&fixture->client, ACTIVITY("n1")), 403, "{}");
        assert_true(nothing_is_asked(fixture));
        assert_string_equal(agents_silent_longest(fixture->agents, GONE_AFTER_NS, &due_ns), "n2");
        agents_ask_again(fixture->agents, "n2", UINT64_MAX);
        assert_string_equal(agents_silent_longest(fixture->agents, GONE_AFTER_NS, &due_ns), "n1");
        assert_int_equal(due_ns, fixture->now_ns + GONE_AGAIN_NS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_node_that_is_gone_leaves_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(an_agent_is_asked_about_after_an_hour_of_silence, setup, teardown),
                cmocka_unit_test_setup_teardown(one_that_was_heard_of_meanwhile_is_not_asked_about, setup, teardown),
                cmocka_unit_test_setup_teardown(only_the_leader_deletes, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_is_there_keeps_what_its_agent_said, setup, teardown),
                cmocka_unit_test_setup_teardown(an_agent_that_comes_back_meanwhile_keeps_its_lease, setup, teardown),
                cmocka_unit_test_setup_teardown(what_could_not_be_deleted_is_tried_again_later, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
