/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"

static void expect(const char *name, const char *expected)
{
        _cleanup_(freep) char *pin_name = pin_name_of(name);

        assert_string_equal(pin_name, expected);
}

static void a_policy_s_name_is_its_own_pin_name(void **state)
{
        expect("web", "web");
        expect("blog-2", "blog-2");
}

static void no_name_leaves_its_directory_or_meets_another(void **state)
{
        expect("default/web/5b3c", "default_2fweb_2f5b3c");
        expect("..", "_2e_2e");
        expect("a.b", "a_2eb");
        expect("a_2eb", "a_5f2eb");
        expect("activity_config", "activity_5fconfig");
        expect("", "_");
        expect("\xff\n", "_ff_0a");
}

static void long_names_stay_apart_and_fit_a_directory_entry(void **state)
{
        char name[400];

        memset(name, '.', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        _cleanup_(freep) char *first = pin_name_of(name);
        name[sizeof(name) - 2] = '/';
        _cleanup_(freep) char *second = pin_name_of(name);

        assert_string_not_equal(first, second);
        assert_memory_equal(first, second, 180);
        assert_int_equal(strlen(first), 198);
        assert_int_equal(strlen(second), 198);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_policy_s_name_is_its_own_pin_name),
                cmocka_unit_test(no_name_leaves_its_directory_or_meets_another),
                cmocka_unit_test(long_names_stay_apart_and_fit_a_directory_entry),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
