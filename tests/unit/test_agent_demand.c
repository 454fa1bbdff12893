/* SPDX-License-Identifier: Apache-2.0 */
/* Demand: told once for each epoch, dropped when it is answered; and how holding ends. */
#include "unit/agent_world.h"

#define ASLEEP "'phase':'Asleep','holding':true,'epoch':1"
#define READY "'endpoints':[" ENDPOINT("10.1.0.1", "'ready':true") "]"
#define FAILED "'conditions':[{'type':'WakeFailed','status':'True','reason':'Quota','message':'refused'}]"

static void packet(struct world *world)
{
        struct hold_demand demand = { .first_ns = now_monotonic_ns(),
                                      .flow = { .source_port = 40000, .destination_port = 80, .protocol = 6 } };

        assert_int_equal(address_parse("10.2.0.7", &demand.flow.source), 0);
        assert_int_equal(address_parse("10.0.0.1", &demand.flow.destination), 0);
        holding_of(world)->parked++;
        agent_policy_on_demand(policy_of(world, "shop/web"), &demand);
}

static const json_t *demand_told(struct world *world)
{
        const json_t *told;

        while (!(told = entry(written(world), "demands")))
                ;
        return told;
}

static void asleep(struct world *world)
{
        sync_all(world);
        written(world);
        write_object(world, "", ASLEEP);
}

static void a_first_packet_is_told_with_its_epoch_and_source(void **state)
{
        struct world *world = *state;
        struct kube_request *request;
        const json_t *told;

        asleep(world);
        packet(world);

        request = await(&world->client, STATUS);
        assert_int_equal(request->priority, KUBE_PRIORITY_WAKE);
        told = demand_told(world);
        assert_string_equal(text_of(told, "policy"), "shop/web");
        assert_string_equal(text_of(told, "source"), "10.2.0.7:40000");
        assert_int_equal(number_of(told, "epoch"), 1);
        assert_int_equal(number_of(told, "held"), 1);
        assert_true(policy_of(world, "shop/web")->wake.reached_ns[WAKE_STEP_REPORTED] > 0);
}

static void a_demand_is_dropped_once_it_wakes(void **state)
{
        struct world *world = *state;

        asleep(world);
        packet(world);
        demand_told(world);

        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1");

        assert_null(find(&world->client, STATUS)); /* not in a hurry */
        assert_null(entry(written(world), "demands"));
}

static void what_is_held_while_it_wakes_is_no_demand(void **state)
{
        struct world *world = *state;

        asleep(world);
        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1");
        packet(world);

        nothing_is_written_within(world, 3 * REPORT_INTERVAL_NS);
}

static void what_still_waits_is_demand_again(const char *status, int64_t epoch, struct world *world)
{
        const json_t *told;

        asleep(world);
        packet(world);
        demand_told(world);
        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1");
        assert_null(entry(written(world), "demands"));

        write_object(world, "", status);

        told = demand_told(world);
        assert_int_equal(number_of(told, "epoch"), epoch);
        assert_int_equal(holding_of(world)->rearms > 0, policy_of(world, "shop/web")->armed);
}

static void what_still_waits_is_demand_again_for_the_next_sleep(void **state)
{
        what_still_waits_is_demand_again("'phase':'Asleep','holding':true,'epoch':2", 2, *state);
}

static void what_still_waits_is_demand_again_when_the_wake_has_failed(void **state)
{
        what_still_waits_is_demand_again("'phase':'Waking','holding':true,'epoch':1," FAILED, 1, *state);
}

static void a_demand_in_sleeping_that_nobody_answers_goes_on_to_the_pods(void **state)
{
        struct world *world = *state;
        struct holding *holding;

        asleep(world);
        write_object(world, "", "'phase':'Sleeping','holding':true,'epoch':2");
        holding = holding_of(world);
        packet(world);
        demand_told(world);
        while (holding->started)
                step(world);

        assert_int_equal(holding->stops, 1);
        assert_int_equal(world->agent.node.counters.passed_on, 1);
        assert_true(policy_of(world, "shop/web")->has_demand);
        write_object(world, "", "'phase':'Sleeping','holding':true,'epoch':2"); /* it does not begin anew */
        assert_false(holding_of(world)->started);
}

static void refused_is_what_is_held_when_the_wake_has_failed(void **state)
{
        struct world *world = *state;

        asleep(world);
        packet(world);
        write_object(world, "", "'phase':'Waking','holding':false,'epoch':1," FAILED);

        assert_int_equal(holding_of(world)->refusals, 1);
        assert_int_equal(holding_of(world)->stops, 0);
}

static void awake_with_endpoints_it_goes_on_releasing(void **state)
{
        struct world *world = *state;

        asleep(world);
        packet(world);
        write_object(world, "", "'phase':'Awake','holding':false,'epoch':1," READY);

        assert_true(holding_of(world)->started);
        assert_true(holding_of(world)->expecting);
        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_true(policy_of(world, "shop/web")->give_up_ns > 0);
}

static void awake_without_endpoints_for_long_it_lets_go(void **state)
{
        struct world *world = *state;

        asleep(world);
        packet(world);
        write_object(world, "", "'phase':'Awake','holding':false,'epoch':1," READY);
        policy_of(world, "shop/web")->woken_ns = now_monotonic_ns() - ENDPOINTS_NAMED_NS;
        write_object(world, "", "'phase':'Awake','holding':false,'epoch':1");

        assert_false(holding_of(world)->started);
        assert_int_equal(holding_of(world)->stops, 1);
        assert_int_equal(holding_of(world)->refusals, 0);
        assert_int_equal(holding_of(world)->n_endpoints[0], 0);
        assert_int_equal(policy_of(world, "shop/web")->give_up_ns, 0);
}

static void with_none_to_release_to_it_gives_up(void **state)
{
        struct world *world = *state;
        struct agent_policy *policy;
        struct holding *holding;

        asleep(world);
        packet(world);
        write_object(world, "",
                     "'phase':'Awake','holding':false,'epoch':1,'endpoints':[" ENDPOINT("10.1.0.1", "'ready':false") "]");
        policy = policy_of(world, "shop/web");
        holding = holding_of(world);
        assert_true(holding->started);

        policy->give_up_ns = 1; /* which else is in 30 s */
        agent_policy_arm_timer(policy);
        while (holding->started)
                step(world);
        assert_int_equal(holding->stops, 1);
}

static void a_proven_data_plane_ends_it_before_the_controller_says_so(void **state)
{
        struct world *world = *state;
        struct agent_policy *policy;

        asleep(world);
        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1," READY);
        policy = policy_of(world, "shop/web");
        holding_of(world)->started = false; /* as the hold does */
        agent_policy_on_drained(policy);

        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1," READY);
        assert_false(holding_of(world)->started);
        write_object(world, "", "'phase':'Waking','holding':true,'epoch':1");
        assert_true(holding_of(world)->started); /* the endpoint is gone again */
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_new, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(a_first_packet_is_told_with_its_epoch_and_source),
                WORLD_TEST(a_demand_is_dropped_once_it_wakes),
                WORLD_TEST(what_is_held_while_it_wakes_is_no_demand),
                WORLD_TEST(what_still_waits_is_demand_again_for_the_next_sleep),
                WORLD_TEST(what_still_waits_is_demand_again_when_the_wake_has_failed),
                WORLD_TEST(a_demand_in_sleeping_that_nobody_answers_goes_on_to_the_pods),
                WORLD_TEST(refused_is_what_is_held_when_the_wake_has_failed),
                WORLD_TEST(awake_with_endpoints_it_goes_on_releasing),
                WORLD_TEST(awake_without_endpoints_for_long_it_lets_go),
                WORLD_TEST(with_none_to_release_to_it_gives_up),
                WORLD_TEST(a_proven_data_plane_ends_it_before_the_controller_says_so),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
