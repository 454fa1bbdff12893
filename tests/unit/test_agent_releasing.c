/* SPDX-License-Identifier: Apache-2.0 */
/* To which endpoints an agent releases, and which it probes itself. */
#include "unit/agent_world.h"

#define WAKING "'phase':'Waking','holding':true,'epoch':1,"
#define UNPROBED(address) ENDPOINT(address, "'ready':false")
#define PROBED(address) ENDPOINT(address, "'ready':false," PROBE)
#define PROBED_POD(address, uid)                                                                                                   \
        "{'address':'" address "','node':'n2','pod':'web-1','podUID':'" uid                                                        \
        "','ports':[{'backend':'web/http','port':8080,'protocol':'TCP'}],'ready':false," PROBE "}"
#define IS_READY(address) ENDPOINT(address, "'ready':true," PROBE)

static size_t probes(const struct world *world)
{
        size_t n = 0;

        for (size_t i = 0; i < WORLD_PROBES_MAX; i++)
                n += world->prober.probes[i].used;
        return n;
}

static void pass(struct world *world, const char *address)
{
        struct address wanted;

        assert_int_equal(address_parse(address, &wanted), 0);
        for (size_t i = 0; i < WORLD_PROBES_MAX; i++) {
                struct probe *probe = &world->prober.probes[i];

                if (probe->used && address_equal(&probe->address, &wanted)) {
                        probe->callbacks.passed(probe, now_monotonic_ns(), probe->userdata);
                        return;
                }
        }
        fail_msg("%s is not probed", address);
}

/* A packet waits, and its policy wakes with these endpoints. */
static void waking(struct world *world, const char *spec, const char *endpoints)
{
        sync_all(world);
        write_object(world, spec, "'phase':'Asleep','holding':true,'epoch':1");
        holding_of(world)->parked = 1;
        write_object(world, spec, endpoints);
}

static void an_endpoint_is_released_to_as_soon_as_it_passes_its_probe(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "," PROBED("10.1.0.2") "]");
        assert_int_equal(probes(world), 2);
        assert_int_equal(holding_of(world)->n_endpoints[0], 0);

        pass(world, "10.1.0.2");

        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_int_equal(probes(world), 1);
        assert_true(policy_of(world, "shop/web")->n_endpoints == 2);
}

/* Slices of two families are written one after the other. */
static void what_one_address_of_a_pod_passes_all_of_them_have_passed(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED_POD("fd01::1", "p") "]");
        pass(world, "fd01::1");
        assert_int_equal(holding_of(world)->n_endpoints[0], 0);

        write_object(world, "",
                     WAKING "'endpoints':[" PROBED_POD("fd01::1", "p") "," PROBED_POD("10.1.0.1", "p") "," PROBED("10.1.0.2") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_int_equal(probes(world), 1);
}

static void when_one_address_passes_the_others_are_not_probed_any_longer(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED_POD("fd01::1", "p") "," PROBED_POD("10.1.0.1", "p") "]");
        assert_int_equal(probes(world), 2);

        pass(world, "fd01::1");

        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_int_equal(probes(world), 0);
}

static void an_endpoint_that_was_ready_and_is_not_any_more_has_to_pass_anew(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        pass(world, "10.1.0.1");
        write_object(world, "", WAKING "'endpoints':[" IS_READY("10.1.0.1") "]");
        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_int_equal(probes(world), 0);

        write_object(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 0);
        assert_int_equal(probes(world), 1);
}

static void an_endpoint_that_passed_stays_until_the_kubelet_says_so_too(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        pass(world, "10.1.0.1");
        write_object(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        assert_int_equal(probes(world), 0);
}

static void an_endpoint_that_is_gone_is_neither_probed_nor_released_to(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "," IS_READY("10.1.0.2") "]");
        assert_int_equal(holding_of(world)->n_endpoints[0], 1);

        write_object(world, "", WAKING "'endpoints':[]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 0);
        assert_int_equal(probes(world), 0);
}

static void only_what_can_and_may_be_probed_is(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" UNPROBED("10.1.0.1") "]");
        assert_int_equal(probes(world), 0);
        write_object(world, ",'wake':{'readiness':'Ready'}", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        assert_int_equal(probes(world), 0);
        write_object(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        assert_int_equal(probes(world), 1);
}

static void where_nothing_waits_nothing_is_probed(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, "", "'phase':'Asleep','holding':true,'epoch':1");
        write_object(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        assert_int_equal(probes(world), 0);

        holding_of(world)->parked = 1;
        agent_policy_follow_endpoints(policy_of(world, "shop/web"));
        assert_int_equal(probes(world), 1);
}

static void an_endpoint_of_the_other_family_is_of_no_use(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" IS_READY("2001:db8::1") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 0);
}

static void asleep_again_nothing_is_released_to(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" IS_READY("10.1.0.1") "," PROBED("10.1.0.2") "]");
        write_object(world, "", "'phase':'Asleep','holding':true,'epoch':2,'endpoints':[" IS_READY("10.1.0.1") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 0);
        assert_int_equal(probes(world), 0);
        assert_true(holding_of(world)->started);
}

static void the_data_plane_is_expected_once_an_endpoint_is_ready(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" PROBED("10.1.0.1") "]");
        pass(world, "10.1.0.1");
        assert_false(holding_of(world)->expecting); /* it does not know of it yet */

        write_object(world, "", WAKING "'endpoints':[" IS_READY("10.1.0.1") "]");

        assert_true(holding_of(world)->expecting);
}

#define AWAKE "'phase':'Awake','holding':false,'epoch':1,"

/* The pod that it woke with has died: another will come, and the data plane would refuse until then. */
static void what_waits_when_the_last_endpoint_dies_waits_for_the_next(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" IS_READY("10.1.0.1") "]");
        write_object(world, "", AWAKE "'endpoints':[" IS_READY("10.1.0.1") "]");
        write_object(world, "", AWAKE "'endpoints':[]");
        assert_true(holding_of(world)->started);
        assert_int_equal(holding_of(world)->n_endpoints[0], 0);

        write_object(world, "", AWAKE "'endpoints':[" IS_READY("10.1.0.2") "]");

        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
}

static void once_the_endpoints_are_no_longer_named_holding_ends(void **state)
{
        struct world *world = *state;

        waking(world, "", WAKING "'endpoints':[" IS_READY("10.1.0.1") "]");
        write_object(world, "", AWAKE "'endpoints':[" IS_READY("10.1.0.1") "]");
        policy_of(world, "shop/web")->woken_ns -= ENDPOINTS_NAMED_NS;

        write_object(world, "", AWAKE "'endpoints':[]");

        assert_false(holding_of(world)->started);
}

static void a_sleep_that_is_given_up_leaves_nothing_held(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, "", "'phase':'Sleeping','holding':true,'epoch':1");
        assert_true(holding_of(world)->started);

        write_object(world, "", AWAKE "'endpoints':[]");

        assert_false(holding_of(world)->started);
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_new, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(an_endpoint_is_released_to_as_soon_as_it_passes_its_probe),
                WORLD_TEST(what_one_address_of_a_pod_passes_all_of_them_have_passed),
                WORLD_TEST(when_one_address_passes_the_others_are_not_probed_any_longer),
                WORLD_TEST(an_endpoint_that_was_ready_and_is_not_any_more_has_to_pass_anew),
                WORLD_TEST(an_endpoint_that_passed_stays_until_the_kubelet_says_so_too),
                WORLD_TEST(an_endpoint_that_is_gone_is_neither_probed_nor_released_to),
                WORLD_TEST(only_what_can_and_may_be_probed_is),
                WORLD_TEST(where_nothing_waits_nothing_is_probed),
                WORLD_TEST(an_endpoint_of_the_other_family_is_of_no_use),
                WORLD_TEST(asleep_again_nothing_is_released_to),
                WORLD_TEST(the_data_plane_is_expected_once_an_endpoint_is_ready),
                WORLD_TEST(what_waits_when_the_last_endpoint_dies_waits_for_the_next),
                WORLD_TEST(once_the_endpoints_are_no_longer_named_holding_ends),
                WORLD_TEST(a_sleep_that_is_given_up_leaves_nothing_held),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
