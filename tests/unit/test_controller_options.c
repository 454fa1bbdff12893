/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "controller/options.h"

enum { WORDS_MAX = 12 };

/* getopt keeps its place in a global; 0 makes it start over. */
static int parse(struct controller_options **ret_options, const char *const *words)
{
        char *argv[WORDS_MAX + 1] = { (char *)"controller" };
        int argc = 1;

        for (; words[argc - 1]; argc++)
                argv[argc] = (char *)words[argc - 1];
        optind = 0;
        return controller_options_parse(argc, argv, ret_options);
}

#define PARSE(options, ...) parse(options, (const char *const[]){ __VA_ARGS__, NULL })

static void everything_has_a_default(void **state)
{
        _cleanup_(controller_options_freep) struct controller_options *options = NULL;

        unsetenv("POD_NAME");
        unsetenv("POD_NAMESPACE");
        assert_int_equal(parse(&options, (const char *const[]){ NULL }), 0);
        assert_string_equal(options->namespace, "lull-system");
        assert_string_equal(options->run_dir, "/run/lull");
        assert_string_equal(options->metrics, "0.0.0.0:9474");
        assert_int_equal(options->parking_first, 42000);
        assert_int_equal(options->parking_last, 42999);
        assert_null(options->kubeconfig);
        assert_int_equal(strspn(options->identity, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(options->identity));
}

static void a_pod_says_who_it_is(void **state)
{
        _cleanup_(controller_options_freep) struct controller_options *options = NULL;

        setenv("POD_NAME", "lull-controller-5f-x", 1);
        setenv("POD_NAMESPACE", "elsewhere", 1);
        assert_int_equal(PARSE(&options, "--metrics", "none", "--parking-ports", "100-200"), 0);
        assert_string_equal(options->identity, "lull-controller-5f-x");
        assert_string_equal(options->namespace, "elsewhere");
        assert_null(options->metrics);
        assert_int_equal(options->parking_first, 100);
        assert_int_equal(options->parking_last, 200);
}

static void what_makes_no_sense_is_refused(void **state)
{
        struct controller_options *options = NULL;

        assert_true(PARSE(&options, "--parking-ports", "100") < 0);
        assert_true(PARSE(&options, "--parking-ports", "200-100") < 0);
        assert_true(PARSE(&options, "--parking-ports", "0-100") < 0);
        assert_true(PARSE(&options, "--parking-ports", "1-70000") < 0);
        assert_true(PARSE(&options, "--parking-ports", "1-2x") < 0);
        assert_true(PARSE(&options, "policy.yaml") < 0);
        assert_true(PARSE(&options, "--nonsense") < 0);
        assert_null(options);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_has_a_default),
                cmocka_unit_test(a_pod_says_who_it_is),
                cmocka_unit_test(what_makes_no_sense_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
