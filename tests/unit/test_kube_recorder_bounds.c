/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's bounds: what may wait, what one object may say, and what may be known at once. */
#include "unit/recorder_world.h"

static void events_past_those_that_may_wait_are_dropped_and_counted(void **state)
{
        struct kube_client *client = *state;

        for (int i = 0; i < 1 + RECORDER_WAITING_MAX + 10; i++)
                record_about(client, i, "Woken");
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 10);
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                answer(client, 201);
        assert_false(client->pending);
        assert_int_equal(kube_recorder_counters(client->recorder)->written, 1 + RECORDER_WAITING_MAX);
}

static void repetitions_that_find_the_line_full_are_told_later(void **state)
{
        struct kube_client *client = *state;

        record(client, "Woken");
        answer(client, 201);
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                record_about(client, i, "Woken");
        record(client, "Woken");
        for (int i = 0; i < 1 + RECORDER_WAITING_MAX; i++)
                answer(client, 201);
        assert_false(client->pending);
        pass(client, 61 * SECONDS);
        assert_sent(client, KUBE_PATCH, 2);
        answer(client, 200);
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 0);
}

static void one_object_cannot_spend_what_belongs_to_another(void **state)
{
        struct kube_client *client = *state;

        for (int i = 0; i < RECORDER_OBJECT_BURST + 5; i++) {
                char reason[32];

                snprintf(reason, sizeof(reason), "Reason%d", i);
                record_about(client, 1, reason);
                if (client->pending)
                        answer(client, 201);
        }
        assert_int_equal(kube_recorder_counters(client->recorder)->written, RECORDER_OBJECT_BURST);
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 5);
        record_about(client, 2, "Woken");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);

        the_time_ns += 299 * SECONDS;
        record_about(client, 1, "Late");
        assert_false(client->pending);
        the_time_ns += SECONDS;
        record_about(client, 1, "Late");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        record_about(client, 1, "Later");
        assert_false(client->pending);
}

static void past_the_series_that_may_be_known_the_least_recently_used_is_forgotten(void **state)
{
        struct kube_client *client = *state;

        for (int i = 0; i < RECORDER_SERIES_MAX; i++) {
                record_about(client, i, "Woken");
                answer(client, 201);
        }
        record_about(client, 0, "Woken"); /* used: 1 is the oldest now */
        answer(client, 200);
        record_about(client, RECORDER_SERIES_MAX, "Woken");
        answer(client, 201);
        record_about(client, 0, "Woken");
        assert_false(client->pending); /* known, and patched a moment ago */
        record_about(client, 1, "Woken");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 0);
}

static void a_series_whose_write_is_under_way_is_not_forgotten(void **state)
{
        struct kube_client *client = *state;

        record_about(client, 0, "Woken");
        answer(client, 201);
        for (int i = 1; i < RECORDER_SERIES_MAX; i++) {
                record_about(client, i, "Woken");
                answer(client, 201);
                record_about(client, i, "Woken");
                answer(client, 200);
        }
        record_about(client, 0, "Woken");
        for (int i = 1; i < RECORDER_SERIES_MAX; i++)
                record_about(client, i, "Woken");
        record_about(client, RECORDER_SERIES_MAX, "Woken");
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 1); /* the third of 1 */
        answer(client, 200);
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
}

static void past_the_objects_that_may_be_known_the_least_recently_used_may_have_its_burst_again(void **state)
{
        struct kube_client *client = *state;
        char reason[32];

        for (int i = 0; i < RECORDER_OBJECT_BURST; i++) {
                snprintf(reason, sizeof(reason), "Reason%d", i);
                record_about(client, 0, reason);
                answer(client, 201);
        }
        for (int i = 1; i <= RECORDER_OBJECTS_MAX; i++) {
                record_about(client, i, "Woken");
                answer(client, 201);
        }
        record_about(client, 0, "Again");
        assert_sent(client, KUBE_CREATE, 0);
        answer(client, 201);
}

static void what_a_forgotten_series_had_not_told_is_counted(void **state)
{
        struct kube_client *client = *state;

        for (int i = 0; i < 4; i++) {
                record_about(client, 0, "Woken");
                if (client->pending)
                        answer(client, 200);
        }
        for (int i = 1; i <= RECORDER_SERIES_MAX; i++) {
                record_about(client, i, "Woken");
                answer(client, 201);
        }
        assert_int_equal(kube_recorder_counters(client->recorder)->dropped, 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RECORDER(events_past_those_that_may_wait_are_dropped_and_counted),
                WITH_RECORDER(repetitions_that_find_the_line_full_are_told_later),
                WITH_RECORDER(one_object_cannot_spend_what_belongs_to_another),
                WITH_RECORDER(past_the_series_that_may_be_known_the_least_recently_used_is_forgotten),
                WITH_RECORDER(a_series_whose_write_is_under_way_is_not_forgotten),
                WITH_RECORDER(past_the_objects_that_may_be_known_the_least_recently_used_may_have_its_burst_again),
                WITH_RECORDER(what_a_forgotten_series_had_not_told_is_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
