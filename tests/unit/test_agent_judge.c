/* SPDX-License-Identifier: Apache-2.0 */
/* Which votes for a sleep an agent gives, keeps and takes back. */
#include "unit/agent_votes.h"

#define LATER ",'idle':{'after':'1h'}"
#define SOON ",'idle':{'after':'1ms'}"

/* Awake with one pod, which has been silent for a while. */
static struct workload *awake(struct world *world, const char *spec)
{
        sync_all(world);
        write_object(world, spec, AWAKE);
        add_pod(world);
        assert_non_null(world->activity.workload);
        return world->activity.workload;
}

static void an_operators_sleep_is_voted_for_by_what_is_quiet_now(void **state)
{
        struct world *world = *state;
        const json_t *told;
        uint64_t began;

        awake(world, LATER)->snapshot.last_ns = now_monotonic_ns();
        began = now_monotonic_ns();
        write_object(world, LATER, SLEEPING BY_HAND);
        told = decided(world);

        assert_int_equal(number_of(told, "quietEpoch"), 2);
        assert_string_equal(text_of(told, "state"), "Idle");
        assert_true(now_monotonic_ns() - began >= QUIET_NS);
}

static void another_sleep_is_voted_for_only_if_the_idle_time_still_holds(void **state)
{
        struct world *world = *state;
        const json_t *told;

        awake(world, LATER);
        write_object(world, LATER, SLEEPING BY_ITSELF);
        told = decided(world);
        assert_int_equal(number_of(told, "quietEpoch"), -1);
        assert_string_equal(text_of(told, "state"), "Active");

        write_object(world, SOON, AWAKE);
        write_object(world, SOON, "'phase':'Sleeping','holding':true,'epoch':3," BY_ITSELF);
        assert_int_equal(number_of(decided(world), "quietEpoch"), 3);
}

static void a_silent_connection_keeps_it_from_sleep_if_the_policy_says_so(void **state)
{
        struct world *world = *state;
        const json_t *told;

        awake(world, ",'idle':{'after':'1ms','connections':'Hold'}")->snapshot.connections = 1;
        while (!*text_of(workload_told(world), "reason"))
                written(world);
        assert_string_equal(text_of(workload_told(world), "state"), "Active");

        write_object(world, ",'idle':{'after':'1ms','connections':'Hold'}", SLEEPING BY_HAND);
        told = decided(world);
        assert_int_equal(number_of(told, "quietEpoch"), -1);
        assert_non_null(strstr(text_of(told, "reason"), "idle.connections is Hold"));
}

static void a_silent_connection_keeps_it_from_no_sleep_else(void **state)
{
        struct world *world = *state;

        awake(world, LATER)->snapshot.connections = 1;
        write_object(world, LATER, SLEEPING BY_HAND);

        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);
}

static void nothing_votes_while(struct world *world, const char *reason)
{
        const json_t *told;

        write_object(world, LATER, SLEEPING BY_HAND);
        told = decided(world);
        assert_int_equal(number_of(told, "quietEpoch"), -1);
        assert_string_equal(text_of(told, "state"), "Active");
        assert_non_null(strstr(text_of(told, "reason"), reason));
}

static void an_unanswered_request_is_no_quiet(void **state)
{
        struct world *world = *state;

        awake(world, LATER)->snapshot.open_requests = 1;
        nothing_votes_while(world, "unanswered request");
}

static void what_cannot_be_read_is_no_quiet(void **state)
{
        struct world *world = *state;

        awake(world, LATER)->error = -EIO;
        nothing_votes_while(world, "cannot be read");
}

static void a_pod_that_cannot_be_watched_is_no_quiet(void **state)
{
        struct world *world = *state;

        world->activity.error = -EPERM;
        sync_all(world);
        write_object(world, LATER, AWAKE);
        add_pod(world);
        nothing_votes_while(world, "cannot be read");
}

static void a_held_packet_is_no_quiet(void **state)
{
        struct world *world = *state;

        awake(world, LATER);
        write_object(world, LATER, AWAKE);
        holding_of(world)->parked = 1;
        nothing_votes_while(world, "a first packet is held");
}

static void demand_that_only_the_map_knows_of_is_no_quiet(void **state)
{
        struct world *world = *state;

        awake(world, LATER);
        holding_of(world)->has_demand = true;
        nothing_votes_while(world, "a first packet is held");
}

static void activity_takes_the_vote_back_for_good(void **state)
{
        struct world *world = *state;
        struct workload *workload = awake(world, LATER);

        write_object(world, LATER, SLEEPING BY_HAND);
        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);

        workload->snapshot.last_ns = now_monotonic_ns();
        while (number_of(workload_told(world), "quietEpoch") == 2)
                written(world);
        assert_string_equal(text_of(workload_told(world), "state"), "Active");
        assert_int_equal(world->agent.node.counters.votes_withdrawn, 1);

        workload->snapshot.last_ns = 1;
        nothing_is_written_within(world, 3 * QUIET_NS);
        assert_int_equal(world->agent.node.counters.votes, 1);
        write_object(world, LATER, AWAKE);
        write_object(world, LATER, "'phase':'Sleeping','holding':true,'epoch':3," BY_HAND);
        assert_int_equal(number_of(decided(world), "quietEpoch"), 3);
}

static void a_vote_that_stands_looks_at_no_connections_any_more(void **state)
{
        struct world *world = *state;
        struct workload *workload = awake(world, LATER);
        unsigned reads;

        write_object(world, LATER, SLEEPING BY_HAND);
        decided(world);
        reads = workload->reads;
        nothing_is_written_within(world, 3 * QUIET_NS);

        assert_int_equal(workload->reads, reads);
}

static void idle_takes_a_look_at_the_connections(void **state)
{
        struct world *world = *state;
        struct workload *workload = awake(world, SOON);

        while (strcmp(text_of(workload_told(world), "state"), "Idle") != 0)
                written(world);
        assert_true(workload->reads > 0);
}

static void not_to_know_is_not_to_be_idle(void **state)
{
        struct world *world = *state;
        struct workload *workload = awake(world, SOON);

        workload->error = -EIO;
        policy_of(world, "shop/web")->look_ns = 1;
        agent_policy_judge(policy_of(world, "shop/web"));
        while (!world->status || !workload_told(world))
                written(world);

        assert_string_equal(text_of(workload_told(world), "state"), "Unknown");
}

static void without_a_readable_spec_nothing_is_known(void **state)
{
        struct world *world = *state;

        awake(world, SOON);
        write_object(world, ",'idle':{'after':'never'}", AWAKE);
        while (strcmp(text_of(workload_told(world), "state"), "Unknown") != 0)
                written(world);
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_new, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(an_operators_sleep_is_voted_for_by_what_is_quiet_now),
                WORLD_TEST(another_sleep_is_voted_for_only_if_the_idle_time_still_holds),
                WORLD_TEST(a_silent_connection_keeps_it_from_sleep_if_the_policy_says_so),
                WORLD_TEST(a_silent_connection_keeps_it_from_no_sleep_else),
                WORLD_TEST(an_unanswered_request_is_no_quiet),
                WORLD_TEST(what_cannot_be_read_is_no_quiet),
                WORLD_TEST(a_pod_that_cannot_be_watched_is_no_quiet),
                WORLD_TEST(a_held_packet_is_no_quiet),
                WORLD_TEST(demand_that_only_the_map_knows_of_is_no_quiet),
                WORLD_TEST(activity_takes_the_vote_back_for_good),
                WORLD_TEST(a_vote_that_stands_looks_at_no_connections_any_more),
                WORLD_TEST(idle_takes_a_look_at_the_connections),
                WORLD_TEST(not_to_know_is_not_to_be_idle),
                WORLD_TEST(without_a_readable_spec_nothing_is_known),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
