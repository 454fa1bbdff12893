/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent does for objects that it cannot read, and cannot put into force. */
#include "unit/agent_world.h"

#include "agent/object.h"

#define ASLEEP "'phase':'Asleep','holding':true,'epoch':1"
#define SLEEPING "'phase':'Sleeping','holding':true,'epoch':2"

static void an_object_that_cannot_be_read_leaves_in_force_what_was(void **state)
{
        struct world *world = *state;
        struct object *kept;

        sync_all(world);
        write_object(world, "", ASLEEP);
        holding_of(world)->parked = 1;

        write_object(world, "", "'phase':'Awake','holding':'no'");

        assert_true(holding_of(world)->started);
        assert_int_equal(holding_of(world)->parked, 1);
        kept = kube_reflector_get(world->agent.node.objects, "shop/web");
        assert_ptr_equal(kept->read, policy_of(world, "shop/web")->object);
        write_object(world, "", "'phase':'Snoring','epoch':1");
        assert_true(holding_of(world)->started);
        event(world->objects, "DELETED", "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"resourceVersion\":\"200\"}}");
        assert_null(policy_of(world, "shop/web"));
}

static void an_object_that_cannot_be_read_is_named_and_not_acknowledged(void **state)
{
        struct world *world = *state;
        unsigned readable, unreadable, later;

        sync_all(world);
        readable = write_object(world, "", SLEEPING);
        while (number_of(written(world), "programmed") < readable)
                ;
        unreadable = write_object(world, "", "'phase':'Snoring','epoch':3");
        assert_non_null(strstr(text_of(written(world), "problem"), "shop/web"));
        assert_non_null(strstr(text_of(world->status, "problem"), "status.phase"));

        event(world->objects, "ADDED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"other\",\"uid\":\"o\",\"resourceVersion\":\"200\"},"
              "\"spec\":{\"target\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"other\"}},\"status\":{\"phase\":\"Sleeping\",\"holding\":true,\"epoch\":2}}");
        world->version = 200;
        nothing_is_written_within(world, NSEC_PER_SEC + NSEC_PER_SEC / 5); /* an acknowledgement would be by then */
        assert_true(number_of(world->status, "programmed") < unreadable);

        later = write_object(world, "", "'phase':'Sleeping','holding':true,'epoch':4");
        while (*text_of(world->status, "problem"))
                written(world);
        while (number_of(world->status, "programmed") < later)
                written(world);
}

static void an_object_that_never_could_be_read_is_named_too(void **state)
{
        struct world *world = *state;

        write_object(world, "", "'phase':'Snoring'");
        sync_all(world);

        assert_non_null(strstr(text_of(written(world), "problem"), "shop/web"));
        assert_null(policy_of(world, "shop/web"));
        write_object(world, "", ASLEEP);
        assert_true(holding_of(world)->started);
        assert_string_equal(text_of(written(world), "problem"), "");
}

static void a_deleted_object_that_could_not_be_read_is_named_no_longer(void **state)
{
        struct world *world = *state;

        write_object(world, "", "'phase':'Snoring'");
        sync_all(world);
        written(world);

        event(world->objects, "DELETED", "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"resourceVersion\":\"200\"}}");

        assert_string_equal(text_of(written(world), "problem"), "");
}

static void a_policy_that_can_be_held_at_last_is_acknowledged_at_once(void **state)
{
        struct world *world = *state;
        struct agent_policy *policy;
        unsigned version;

        sync_all(world);
        world->hold.start_error = -ENOSPC;
        version = write_object(world, "", SLEEPING);
        while (!strstr(text_of(written(world), "problem"), "cannot be held"))
                ;
        assert_true(number_of(world->status, "programmed") < version);

        world->hold.start_error = 0;
        policy = policy_of(world, "shop/web");
        policy->hold_again_ns = 1; /* which else is in 10 s */
        agent_policy_arm_timer(policy);

        while (number_of(world->status, "programmed") < version)
                written(world);
        assert_string_equal(text_of(world->status, "problem"), "");
}

static void what_an_earlier_agent_left_releasing_stays_so_until_the_data_plane_is_proven(void **state)
{
        struct world *world = *state;

        world->hold.left = true;
        write_object(world, "", "'phase':'Awake','epoch':1,'endpoints':[" ENDPOINT("10.1.0.1", "'ready':true") "]");
        sync_all(world);

        assert_true(holding_of(world)->started);
        assert_true(holding_of(world)->expecting);
        assert_int_equal(holding_of(world)->n_endpoints[0], 1);
        agent_policy_on_drained(policy_of(world, "shop/web"));
        holding_of(world)->started = false; /* as the hold does then */
        write_object(world, "", "'phase':'Awake','epoch':1,'endpoints':[" ENDPOINT("10.1.0.1", "'ready':true") "]");
        assert_false(holding_of(world)->started);
}

static void awake_nothing_begins_to_hold(void **state)
{
        struct world *world = *state;

        write_object(world, "", "'phase':'Awake','epoch':1,'endpoints':[" ENDPOINT("10.1.0.1", "'ready':true") "]");
        sync_all(world);
        assert_false(holding_of(world)->started);

        world->hold.left = true; /* of another policy, before the hold was settled */
        write_object(world, "", "'phase':'Awake','epoch':1,'endpoints':[" ENDPOINT("10.1.0.2", "'ready':true") "]");
        assert_false(holding_of(world)->started);
}

static void what_an_earlier_agent_left_is_let_go_when_the_data_planes_have_had_their_time(void **state)
{
        struct world *world = *state;

        world->hold.left = true;
        write_object(world, "", "'phase':'Awake','epoch':1");
        sync_all(world);

        assert_false(holding_of(world)->started);
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_new, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(an_object_that_cannot_be_read_leaves_in_force_what_was),
                WORLD_TEST(an_object_that_cannot_be_read_is_named_and_not_acknowledged),
                WORLD_TEST(an_object_that_never_could_be_read_is_named_too),
                WORLD_TEST(a_deleted_object_that_could_not_be_read_is_named_no_longer),
                WORLD_TEST(a_policy_that_can_be_held_at_last_is_acknowledged_at_once),
                WORLD_TEST(what_an_earlier_agent_left_releasing_stays_so_until_the_data_plane_is_proven),
                WORLD_TEST(awake_nothing_begins_to_hold),
                WORLD_TEST(what_an_earlier_agent_left_is_let_go_when_the_data_planes_have_had_their_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
