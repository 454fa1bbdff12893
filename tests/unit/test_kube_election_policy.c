/* SPDX-License-Identifier: Apache-2.0 */
/* One candidate, led by hand from one event to the next. */
#include "unit/election_rules.h"

static enum election_action step_at(struct election_policy *policy, enum election_event event, const struct election_record *record,
                                    double seconds)
{
        return election_policy_step(
                policy, event, record,
                &(struct election_moment){ .now_ns = (uint64_t)(seconds * 1e9), .realtime_us = 1, .chance = 0.5 });
}

static bool may_act_at(const struct election_policy *policy, double seconds)
{
        return election_policy_may_act(policy, (uint64_t)(seconds * 1e9));
}

static double due_at(const struct election_policy *policy, double seconds)
{
        return (double)election_policy_due_ns(policy, (uint64_t)(seconds * 1e9)) / 1e9;
}

static struct election_policy leader_since(double seconds)
{
        struct election_policy policy = policy_of("me");

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, seconds), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, seconds), ELECTION_CREATE);
        assert_int_equal(step_at(&policy, ELECTION_WRITTEN, NULL, seconds), ELECTION_WAIT);
        return policy;
}

static void a_leader_may_act_until_renew_deadline_after_its_request_was_sent_not_after_the_answer(void **state)
{
        struct election_policy policy = leader_since(100);

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        assert_false(may_act_at(&policy, 110));
        assert_int_equal(step_at(&policy, ELECTION_WRITTEN, NULL, 106), ELECTION_WAIT);
        assert_true(may_act_at(&policy, 111.999));
        assert_false(may_act_at(&policy, 112));
}

static void an_answer_that_comes_after_its_time_makes_no_leader(void **state)
{
        struct election_policy policy = policy_of("me");

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 100), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 100), ELECTION_CREATE);
        step_at(&policy, ELECTION_WRITTEN, NULL, 110);
        assert_false(may_act_at(&policy, 110));
}

static void a_leader_renews_every_retry_period_and_tries_again_at_that_pace(void **state)
{
        struct election_policy policy = leader_since(100);

        assert_true(due_at(&policy, 100) == 102);
        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        assert_int_equal(step_at(&policy, ELECTION_FAILED, NULL, 102.5), ELECTION_WAIT);
        assert_true(due_at(&policy, 102.5) == 104);
        /* What became of the write is not known, so it is read first. */
        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 104), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_FAILED, NULL, 109), ELECTION_WAIT);
        assert_true(due_at(&policy, 109) == 109);
        assert_true(may_act_at(&policy, 109.9));
        assert_false(may_act_at(&policy, 110));
}

static void a_candidate_waits_for_lease_duration_after_the_last_change_it_saw_whatever_time_is_written(void **state)
{
        struct election_policy policy = policy_of("me");
        struct election_record record = { .holder = "other", .duration_seconds = 15, .renew_time = "1970-01-01T00:00:00.000000Z" };

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 100), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 101), ELECTION_WAIT);
        assert_true(due_at(&policy, 101) == 101 + 2 * (1 + 1.2 * 0.5));
        step_at(&policy, ELECTION_TIMER, NULL, 110);
        record.renew_time[0] = '2';
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 110), ELECTION_WAIT);
        step_at(&policy, ELECTION_TIMER, NULL, 124);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 124.9), ELECTION_WAIT);
        assert_true(due_at(&policy, 124.9) == 125);
        step_at(&policy, ELECTION_TIMER, NULL, 125);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 125), ELECTION_UPDATE);
        assert_string_equal(policy.writing.holder, "me");
        assert_int_equal(policy.writing.transitions, 1);
        assert_false(may_act_at(&policy, 125));
}

static void the_duration_that_the_holder_wrote_counts_not_the_own_one(void **state)
{
        struct election_policy policy = policy_of("me");
        struct election_record record = { .holder = "other", .duration_seconds = 60 };

        step_at(&policy, ELECTION_TIMER, NULL, 100);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 100), ELECTION_WAIT);
        step_at(&policy, ELECTION_TIMER, NULL, 159);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 159), ELECTION_WAIT);
}

static void a_leader_that_reads_anothers_name_stops_at_once(void **state)
{
        struct election_policy policy = leader_since(100);
        struct election_record record = { .holder = "other", .duration_seconds = 15 };

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        assert_int_equal(step_at(&policy, ELECTION_CONFLICT, NULL, 102), ELECTION_READ);
        assert_true(may_act_at(&policy, 102));
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 102), ELECTION_WAIT);
        assert_false(may_act_at(&policy, 102));
}

static void conflicts_in_a_row_do_not_make_requests_in_a_row(void **state)
{
        struct election_policy policy = leader_since(100);
        struct election_record record;

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        record = policy.observed;
        assert_int_equal(step_at(&policy, ELECTION_CONFLICT, NULL, 102), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 102), ELECTION_UPDATE);
        assert_int_equal(step_at(&policy, ELECTION_CONFLICT, NULL, 102), ELECTION_WAIT);
        assert_true(due_at(&policy, 102) == 104);
}

static void a_lease_that_cannot_be_created_is_not_tried_in_a_row(void **state)
{
        struct election_policy policy = leader_since(100);

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 102), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 102), ELECTION_CREATE);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 102), ELECTION_WAIT);
        assert_true(due_at(&policy, 102) == 104);
}

static void no_two_renewals_have_the_same_time_though_the_wall_clock_stands_still(void **state)
{
        struct election_policy policy = leader_since(100);
        char before[MICRO_TIME_TEXT_MAX], acquired[MICRO_TIME_TEXT_MAX];

        memcpy(before, policy.observed.renew_time, sizeof(before));
        memcpy(acquired, policy.observed.acquire_time, sizeof(acquired));
        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        assert_string_not_equal(policy.writing.renew_time, before);
        assert_string_equal(policy.writing.acquire_time, acquired);
        assert_int_equal(policy.writing.transitions, 0);
}

static void a_lease_that_vanishes_is_not_made_anew_while_its_holder_may_act(void **state)
{
        struct election_policy policy = policy_of("me");
        struct election_record record = { .holder = "other", .duration_seconds = 15 };

        step_at(&policy, ELECTION_TIMER, NULL, 100);
        step_at(&policy, ELECTION_RECORD, &record, 100);
        step_at(&policy, ELECTION_TIMER, NULL, 114);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 114), ELECTION_WAIT);
        step_at(&policy, ELECTION_TIMER, NULL, 115);
        assert_int_equal(step_at(&policy, ELECTION_ABSENT, NULL, 115), ELECTION_CREATE);
}

static void giving_back_empties_the_holder_with_a_second_of_duration_and_nothing_follows(void **state)
{
        struct election_policy policy = leader_since(100);
        struct election_moment moment = { .now_ns = 101 * NSEC_PER_SEC, .realtime_us = 5 };

        assert_int_equal(election_policy_release(&policy, &moment), ELECTION_UPDATE);
        assert_false(may_act_at(&policy, 101));
        assert_string_equal(policy.writing.holder, "");
        assert_int_equal(policy.writing.duration_seconds, 1);
        assert_int_equal(step_at(&policy, ELECTION_WRITTEN, NULL, 101), ELECTION_DONE);
        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 200), ELECTION_WAIT);
        assert_true(election_policy_due_ns(&policy, 101 * NSEC_PER_SEC) == UINT64_MAX);
}

static void giving_back_amid_a_renewal_reads_what_became_of_it_first(void **state)
{
        struct election_policy policy = leader_since(100);
        struct election_moment moment = { .now_ns = 102 * NSEC_PER_SEC, .realtime_us = 5 };
        struct election_record record;

        assert_int_equal(step_at(&policy, ELECTION_TIMER, NULL, 102), ELECTION_UPDATE);
        record = policy.writing;
        assert_int_equal(election_policy_release(&policy, &moment), ELECTION_READ);
        assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 102), ELECTION_UPDATE);
        for (int conflicts = 0; conflicts < ELECTION_RELEASE_TRIES - 1; conflicts++) {
                assert_int_equal(step_at(&policy, ELECTION_CONFLICT, NULL, 102), ELECTION_READ);
                assert_int_equal(step_at(&policy, ELECTION_RECORD, &record, 102), ELECTION_UPDATE);
        }
        assert_int_equal(step_at(&policy, ELECTION_CONFLICT, NULL, 102), ELECTION_DONE);
}

static void one_who_never_wrote_has_nothing_to_give_back(void **state)
{
        struct election_policy policy = policy_of("me");
        struct election_record record = { .holder = "other", .duration_seconds = 15 };
        struct election_moment moment = { .now_ns = 101 * NSEC_PER_SEC };

        step_at(&policy, ELECTION_TIMER, NULL, 100);
        step_at(&policy, ELECTION_RECORD, &record, 100);
        assert_int_equal(election_policy_release(&policy, &moment), ELECTION_DONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_leader_may_act_until_renew_deadline_after_its_request_was_sent_not_after_the_answer),
                cmocka_unit_test(an_answer_that_comes_after_its_time_makes_no_leader),
                cmocka_unit_test(a_leader_renews_every_retry_period_and_tries_again_at_that_pace),
                cmocka_unit_test(a_candidate_waits_for_lease_duration_after_the_last_change_it_saw_whatever_time_is_written),
                cmocka_unit_test(the_duration_that_the_holder_wrote_counts_not_the_own_one),
                cmocka_unit_test(a_leader_that_reads_anothers_name_stops_at_once),
                cmocka_unit_test(conflicts_in_a_row_do_not_make_requests_in_a_row),
                cmocka_unit_test(a_lease_that_cannot_be_created_is_not_tried_in_a_row),
                cmocka_unit_test(no_two_renewals_have_the_same_time_though_the_wall_clock_stands_still),
                cmocka_unit_test(a_lease_that_vanishes_is_not_made_anew_while_its_holder_may_act),
                cmocka_unit_test(giving_back_empties_the_holder_with_a_second_of_duration_and_nothing_follows),
                cmocka_unit_test(giving_back_amid_a_renewal_reads_what_became_of_it_first),
                cmocka_unit_test(one_who_never_wrote_has_nothing_to_give_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
