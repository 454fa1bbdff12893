/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/time.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define SEC NSEC_PER_SEC

static void durations_are_read_as_kubernetes_writes_them(void **unused)
{
        static const struct {
                const char *text;
                uint64_t ns;
        } table[] = {
                { "0", 0 },
                { "0s", 0 },
                { "1ns", 1 },
                { "500ms", 500 * MS },
                { "1m30s", 90 * SEC },
                { "1h", 3600 * SEC },
                { "1.5h", 5400 * SEC },
                { ".5s", 500 * MS },
                { "1.s", SEC },
                { "0.000000001s", 1 },
                { "0.0000000019s", 1 },
                { "7us", 7 * US },
                { "7\xc2\xb5s", 7 * US },
                { "7\xce\xbcs", 7 * US },
                { "1h1m1s1ms1us1ns", 3661 * SEC + MS + US + 1 },
                { "1s1m", 61 * SEC },
                { "9223372036854775807ns", INT64_MAX },
                { "9223372036.854775807s", INT64_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t ns = 42;

                if (duration_parse(table[i].text, &ns) != 0 || ns != table[i].ns)
                        fail_msg("\"%s\": %llu ns", table[i].text, (unsigned long long)ns);
        }
}

static void what_is_no_duration_is_refused_and_changes_nothing(void **unused)
{
        static const struct {
                const char *text;
                int error;
        } table[] = {
                { "", -EINVAL },
                { "5", -EINVAL },
                { "s", -EINVAL },
                { ".", -EINVAL },
                { ".s", -EINVAL },
                { "5 minutes", -EINVAL },
                { "5m 3s", -EINVAL },
                { " 5m", -EINVAL },
                { "5m ", -EINVAL },
                { "-5m", -EINVAL },
                { "+5m", -EINVAL },
                { "1d", -EINVAL },
                { "1.2.3s", -EINVAL },
                { "1e3s", -EINVAL },
                { "5M", -EINVAL },
                { "00", -EINVAL },
                { "9223372036854775808ns", -ERANGE },
                { "9223372036.854775808s", -ERANGE },
                { "2562048h", -ERANGE },
                { "5124095h", -ERANGE },
                { "99999999999999999999s", -ERANGE },
                { "18446744073.9s", -ERANGE }, /* the fraction would wrap it to 0.19 s */
                { "307445734561.9m", -ERANGE },
                { "9223372036s9223372036s9223372036s", -ERANGE },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                uint64_t ns = 42;

                if (duration_parse(table[i].text, &ns) != table[i].error || ns != 42)
                        fail_msg("\"%s\": %llu ns", table[i].text, (unsigned long long)ns);
        }
}

static void durations_are_written_in_at_most_two_units(void **unused)
{
        static const struct {
                uint64_t ns;
                const char *text;
        } table[] = {
                { 0, "0s" },
                { 1, "1ns" },
                { 999, "999ns" },
                { 1 * US, "1us" },
                { 1500, "1.5us" },
                { 85 * US, "85us" },
                { 999 * US + 400, "999us" },
                { 999 * US + 500, "1ms" },
                { 7600 * US, "7.6ms" },
                { 7649 * US, "7.6ms" },
                { 7650 * US, "7.7ms" },
                { 99949 * US, "99.9ms" },
                { 99960 * US, "100ms" },
                { 250 * MS, "250ms" },
                { 999 * MS + 499 * US, "999ms" },
                { 999 * MS + 500 * US, "1s" },
                { 1 * SEC, "1s" },
                { 1530 * MS, "1.5s" },
                { 59900 * MS, "59.9s" },
                { 60 * SEC, "1m" },
                { 90 * SEC, "1m30s" },
                { 119999 * MS, "1m59s" },
                { 3600 * SEC, "1h" },
                { 3661 * SEC, "1h1m" },
                { 24 * 3600 * SEC, "1d" },
                { 25 * 3600 * SEC, "1d1h" },
                { UINT64_MAX, "213503d23h" },
        };
        char buffer[DURATION_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                assert_ptr_equal(duration_format(table[i].ns, buffer), buffer);
                assert_string_equal(buffer, table[i].text);
        }
}

static void times_of_day_are_rfc_3339_in_utc(void **unused)
{
        static const struct {
                uint64_t ns;
                const char *text;
        } table[] = {
                { 0, "1970-01-01T00:00:00.000Z" },
                { 1769860800 * SEC + 250 * MS, "2026-01-31T12:00:00.250Z" },
                { 1769860800 * SEC + 999999999, "2026-01-31T12:00:00.999Z" },
                { UINT64_MAX, "2554-07-21T23:34:33.709Z" },
        };
        char buffer[TIMESTAMP_TEXT_MAX];

        setenv("TZ", "America/New_York", 1);
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                assert_string_equal(timestamp_format(table[i].ns, buffer), table[i].text);
}

static void the_monotonic_clock_does_not_go_back(void **unused)
{
        uint64_t before = now_monotonic_ns();

        assert_true(now_monotonic_ns() >= before);
        assert_true(now_realtime_ns() > 1700000000 * SEC);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(durations_are_read_as_kubernetes_writes_them),
                cmocka_unit_test(what_is_no_duration_is_refused_and_changes_nothing),
                cmocka_unit_test(durations_are_written_in_at_most_two_units),
                cmocka_unit_test(times_of_day_are_rfc_3339_in_utc),
                cmocka_unit_test(the_monotonic_clock_does_not_go_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
