/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kube/label_selector.h"

static bool matches(const char *text, json_t *labels)
{
        _cleanup_(label_selector_freep) struct label_selector *selector = NULL;
        bool result;

        assert_int_equal(label_selector_parse(text, &selector), 0);
        result = label_selector_matches(selector, labels);
        json_decref(labels);
        return result;
}

#define LABELS() json_pack("{ss, ss}", "app", "web", "example.com/tier", "a")

static void what_is_asked_for_has_to_be_there(void **state)
{
        assert_true(matches("app=web", LABELS()));
        assert_true(matches("app==web", LABELS()));
        assert_false(matches("app=blog", LABELS()));
        assert_false(matches("zone=x", LABELS()));
        assert_true(matches("app", LABELS()));
        assert_false(matches("zone", LABELS()));
        assert_true(matches(" example.com/tier in ( b , a ) ", LABELS()));
        assert_false(matches("example.com/tier in (b,c)", LABELS()));
        assert_false(matches("app=web", NULL));
}

static void what_is_ruled_out_may_be_missing(void **state)
{
        assert_true(matches("!zone", LABELS()));
        assert_false(matches("!app", LABELS()));
        assert_true(matches("zone!=x", LABELS()));
        assert_false(matches("app!=web", LABELS()));
        assert_true(matches("zone notin (x,y)", LABELS()));
        assert_false(matches("app notin (web)", LABELS()));
        assert_true(matches("!zone,zone!=x", NULL));
}

static void all_requirements_count(void **state)
{
        assert_true(matches("app=web,example.com/tier=a,!zone", LABELS()));
        assert_false(matches("app=web,example.com/tier=b", LABELS()));
        assert_true(matches("", LABELS()));
        assert_true(matches("", NULL));
        assert_true(matches("in in (in),notin", json_pack("{ss, ss}", "in", "in", "notin", "")));
        assert_true(matches("notin=", json_pack("{ss}", "notin", "")));
}

static void text_that_is_none_is_refused(void **state)
{
        static const char *const wrong[] = { "=web",       "app=web,", ",app=web", "app in web", "app in (a", "app in a)",
                                             "app on (a)", "!",        "app=a b",  "app=a=b",    "a b",       "app > 3" };
        struct label_selector *selector = NULL;

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                assert_int_equal(label_selector_parse(wrong[i], &selector), -EINVAL);
                assert_null(selector);
        }
}

static void what_grows_is_bounded(void **state)
{
        char text[2048] = "a in (";
        struct label_selector *selector = NULL;

        for (int i = 0; i < LABEL_VALUES_MAX; i++)
                strcat(text, "v,");
        strcat(text, "v)");
        assert_int_equal(label_selector_parse(text, &selector), -E2BIG);

        strcpy(text, "a");
        for (int i = 0; i < LABEL_REQUIREMENTS_MAX; i++)
                strcat(text, ",a");
        assert_int_equal(label_selector_parse(text, &selector), -E2BIG);
        assert_null(selector);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_asked_for_has_to_be_there),
                cmocka_unit_test(what_is_ruled_out_may_be_missing),
                cmocka_unit_test(all_requirements_count),
                cmocka_unit_test(text_that_is_none_is_refused),
                cmocka_unit_test(what_grows_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
