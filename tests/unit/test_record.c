/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "standalone/record.h"

static const char *text_at(json_t *json, const char *name)
{
        return json_string_value(json_object_get(json, name));
}

static void a_wake_by_a_packet_tells_who_and_how_long_each_phase_took(void **state)
{
        struct wake_record record = {
                .cause = CAUSE_PACKET,
                .realtime_ns = NSEC_PER_SEC,
                .zero_ns = 5 * NSEC_PER_SEC,
                .client = { .known = true, .process = "curl", .pid = 42, .cgroup = "/user.slice" },
        };
        json_t *json, *phases;

        record.client.flow.protocol = IPPROTO_TCP;
        address_parse("192.0.2.7", &record.client.flow.source);
        address_parse("192.0.2.1", &record.client.flow.destination);
        record.client.flow.source_port = 40000;
        record.client.flow.destination_port = 80;
        wake_record_reach(&record, WAKE_READY, record.zero_ns + 210 * NSEC_PER_MSEC);

        json = wake_record_json(&record);
        phases = json_object_get(json, "phases");
        assert_string_equal(text_at(json, "cause"), "packet");
        assert_string_equal(text_at(json, "time"), "1970-01-01T00:00:01.000Z");
        assert_string_equal(text_at(json, "source"), "192.0.2.7:40000");
        assert_string_equal(text_at(json, "flow"), "tcp 192.0.2.7:40000 > 192.0.2.1:80");
        assert_string_equal(text_at(json, "process"), "curl");
        assert_int_equal(json_integer_value(json_object_get(json, "pid")), 42);
        assert_true(json_real_value(json_object_get(phases, "ready")) == 0.21);
        assert_true(json_is_null(json_object_get(phases, "released")));
        json_decref(json);
}

static void a_phase_is_reached_once(void **state)
{
        struct wake_record record = { .cause = CAUSE_PACKET, .zero_ns = 1 };

        wake_record_reach(&record, WAKE_RELEASED, 100);
        wake_record_reach(&record, WAKE_RELEASED, 200);
        assert_int_equal(record.reached_ns[WAKE_RELEASED], 100);
}

static void without_a_wake_nothing_is_reached_or_told(void **state)
{
        struct wake_record record = { 0 };
        json_t *json;

        wake_record_reach(&record, WAKE_RELEASED, 100);
        assert_int_equal(record.reached_ns[WAKE_RELEASED], 0);

        json = wake_record_json(&record);
        assert_true(json_is_null(json));
        json_decref(json);
}

static void a_sleep_whose_stop_is_not_over_has_no_duration(void **state)
{
        struct sleep_record record = { .cause = CAUSE_IDLE, .began_ns = NSEC_PER_SEC, .reason = "no activity for 5m" };
        json_t *json = sleep_record_json(&record);

        assert_true(json_is_null(json_object_get(json, "stop_seconds")));
        assert_string_equal(text_at(json, "reason"), "no activity for 5m");
        json_decref(json);

        record.stopped_ns = record.began_ns + 20 * NSEC_PER_MSEC;
        json = sleep_record_json(&record);
        assert_true(json_real_value(json_object_get(json, "stop_seconds")) == 0.02);
        json_decref(json);
}

static void only_conditions_that_hold_are_listed(void **state)
{
        struct condition conditions[CONDITION_MAX] = {
                [CONDITION_FLAPPING] = { .holds = true, .reason = "ClientReconnects", .message = "192.0.2.7 reconnects" },
                [CONDITION_WAKE_FAILED] = { .holds = false, .reason = "ProcessFailed", .message = "long ago" },
        };
        json_t *json = conditions_json(conditions);

        assert_int_equal(json_array_size(json), 1);
        assert_string_equal(text_at(json_array_get(json, 0), "type"), "Flapping");
        json_decref(json);
}

static void an_earlier_record_stands_in_until_there_is_a_new_one(void **state)
{
        json_t *earlier = json_string("earlier"), *chosen;

        chosen = record_or_earlier(json_null(), earlier);
        assert_ptr_equal(chosen, earlier);
        json_decref(chosen);

        chosen = record_or_earlier(json_string("new"), earlier);
        assert_string_equal(json_string_value(chosen), "new");
        json_decref(chosen);
        json_decref(earlier);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_wake_by_a_packet_tells_who_and_how_long_each_phase_took),
                cmocka_unit_test(a_phase_is_reached_once),
                cmocka_unit_test(without_a_wake_nothing_is_reached_or_told),
                cmocka_unit_test(a_sleep_whose_stop_is_not_over_has_no_duration),
                cmocka_unit_test(only_conditions_that_hold_are_listed),
                cmocka_unit_test(an_earlier_record_stands_in_until_there_is_a_new_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
