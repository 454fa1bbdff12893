/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "serve/event_log.h"

static struct event_log *new_log(void)
{
        struct event_log *log = NULL;

        assert_int_equal(event_log_new(&log), 0);
        return log;
}

static json_int_t number_at(const json_t *list, size_t index)
{
        return json_integer_value(json_object_get(json_array_get(list, index), "seq"));
}

static void events_are_numbered_from_one_and_listed_oldest_first(void **state)
{
        _cleanup_(event_log_freep) struct event_log *log = new_log();
        _cleanup_(json_decrefp) json_t *all = NULL, *rest = NULL;
        const json_t *first;

        event_log_add(log, "web", "Woken", "a packet from %s", "192.0.2.7");
        event_log_add(log, NULL, "Reloaded", "2 policies");
        all = event_log_list(log, 0);
        rest = event_log_list(log, 1);

        assert_int_equal(json_array_size(all), 2);
        first = json_array_get(all, 0);
        assert_int_equal(number_at(all, 0), 1);
        assert_string_equal(json_string_value(json_object_get(first, "policy")), "web");
        assert_string_equal(json_string_value(json_object_get(first, "reason")), "Woken");
        assert_string_equal(json_string_value(json_object_get(first, "message")), "a packet from 192.0.2.7");
        assert_non_null(json_string_value(json_object_get(first, "time")));
        assert_true(json_is_null(json_object_get(json_array_get(all, 1), "policy")));
        assert_int_equal(json_array_size(rest), 1);
        assert_int_equal(number_at(rest, 0), 2);
        assert_int_equal(event_log_newest(log), 2);
}

static void past_1024_events_the_oldest_is_forgotten(void **state)
{
        _cleanup_(event_log_freep) struct event_log *log = new_log();
        _cleanup_(json_decrefp) json_t *all = NULL;

        for (int i = 0; i < 1030; i++)
                event_log_add(log, "web", "Woken", "%d", i);
        all = event_log_list(log, 0);

        assert_int_equal(json_array_size(all), 1024);
        assert_int_equal(number_at(all, 0), 7);
        assert_int_equal(number_at(all, 1023), 1030);
        assert_null(event_log_next(log, 1030));
        assert_null(event_log_next(log, UINT64_MAX));
}

static void a_message_that_is_not_utf8_is_kept_readable(void **state)
{
        _cleanup_(event_log_freep) struct event_log *log = new_log();

        event_log_add(log, "web", "Woken", "by %s", "c\xffrl");
        assert_string_equal(json_string_value(json_object_get(event_log_next(log, 0), "message")), "by c?rl");
        assert_int_equal(event_log_lost(log), 0);
}

struct listener {
        struct event_log *log;
        unsigned told;
        bool leaves;
};

static void on_event(void *userdata)
{
        struct listener *listener = userdata;

        listener->told++;
        if (listener->leaves)
                event_log_unlisten(listener->log, on_event, listener);
}

static void listeners_are_told_until_they_leave_even_from_within(void **state)
{
        _cleanup_(event_log_freep) struct event_log *log = new_log();
        struct listener leaving = { .log = log, .leaves = true }, staying = { .log = log };

        assert_int_equal(event_log_listen(log, on_event, &leaving), 0);
        assert_int_equal(event_log_listen(log, on_event, &staying), 0);
        event_log_add(log, NULL, "A", "a");
        event_log_add(log, NULL, "B", "b");
        event_log_unlisten(log, on_event, &staying);
        event_log_add(log, NULL, "C", "c");

        assert_int_equal(leaving.told, 1);
        assert_int_equal(staying.told, 2);
}

static void the_seventeenth_listener_is_turned_away(void **state)
{
        _cleanup_(event_log_freep) struct event_log *log = new_log();
        struct listener listeners[17] = { 0 };

        for (size_t i = 0; i < 16; i++)
                assert_int_equal(event_log_listen(log, on_event, &listeners[i]), 0);
        assert_int_equal(event_log_listen(log, on_event, &listeners[16]), -ENOSPC);
        event_log_unlisten(log, on_event, &listeners[3]);
        assert_int_equal(event_log_listen(log, on_event, &listeners[16]), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(events_are_numbered_from_one_and_listed_oldest_first),
                cmocka_unit_test(past_1024_events_the_oldest_is_forgotten),
                cmocka_unit_test(a_message_that_is_not_utf8_is_kept_readable),
                cmocka_unit_test(listeners_are_told_until_they_leave_even_from_within),
                cmocka_unit_test(the_seventeenth_listener_is_turned_away),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
