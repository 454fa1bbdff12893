/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "standalone/options.h"

enum { WORDS_MAX = 12 };

/* getopt keeps its place in a global; 0 makes it start over. */
static int parse(struct options **ret_options, const char *const *words)
{
        char *argv[WORDS_MAX + 1] = { "lulld" };
        int argc = 1;

        for (; words[argc - 1]; argc++)
                argv[argc] = (char *)words[argc - 1];
        optind = 0;
        return options_parse(argc, argv, ret_options);
}

#define PARSE(options, ...) parse(options, (const char *const[]){ __VA_ARGS__, NULL })

static void everything_has_a_default(void **state)
{
        _cleanup_(options_freep) struct options *options = NULL;

        assert_int_equal(PARSE(&options, "standalone", "--cgroup", "/cg"), 0);

        assert_int_equal(options->role, ROLE_STANDALONE);
        assert_string_equal(options->bpffs, "/sys/fs/bpf/lull");
        assert_string_equal(options->run_dir, "/run/lull");
        assert_string_equal(options->metrics, "127.0.0.1:9474");
        assert_int_equal(options->n_paths, 1);
        assert_string_equal(options->paths[0], "/etc/lull/policies.d");
}

static void options_may_stand_before_and_after_the_role(void **state)
{
        _cleanup_(options_freep) struct options *options = NULL;

        assert_int_equal(PARSE(&options, "--bpffs", "/b", "standalone", "one.yaml", "--cgroup=/cg", "--log-dir", "/l", "two.d"), 0);

        assert_string_equal(options->bpffs, "/b");
        assert_string_equal(options->cgroup, "/cg");
        assert_string_equal(options->log_dir, "/l");
        assert_int_equal(options->n_paths, 2);
        assert_string_equal(options->paths[0], "one.yaml");
        assert_string_equal(options->paths[1], "two.d");
}

static void metrics_can_be_turned_off(void **state)
{
        _cleanup_(options_freep) struct options *options = NULL;

        assert_int_equal(PARSE(&options, "standalone", "--cgroup", "/cg", "--metrics", "none"), 0);
        assert_null(options->metrics);
}

static void the_last_of_a_repeated_option_counts(void **state)
{
        _cleanup_(options_freep) struct options *options = NULL;

        assert_int_equal(PARSE(&options, "standalone", "--cgroup", "/a", "--cgroup", "/b"), 0);
        assert_string_equal(options->cgroup, "/b");
}

static void check_takes_files_without_a_role(void **state)
{
        _cleanup_(options_freep) struct options *options = NULL;

        assert_int_equal(PARSE(&options, "--check", "a.yaml", "b.yaml"), 0);
        assert_int_equal(options->role, ROLE_CHECK);
        assert_int_equal(options->n_paths, 2);
}

static void durations_of_gpus_have_defaults_and_can_be_set(void **state)
{
        _cleanup_(options_freep) struct options *defaults = NULL, *options = NULL;

        assert_int_equal(PARSE(&defaults, "gpu", "--cgroup", "/cg"), 0);
        assert_int_equal(defaults->gpu_rules.window_ns, 1800 * NSEC_PER_SEC);
        assert_int_equal(defaults->gpu_rules.factor, 1);
        assert_int_equal(defaults->gpu_rules.stuck_after_ns, 0);

        assert_int_equal(PARSE(&options, "gpu", "--cgroup", "/cg", "--idle-after", "2h", "--stuck-after=1m30s"), 0);
        assert_int_equal(options->gpu_rules.window_ns, 7200 * NSEC_PER_SEC);
        assert_int_equal(options->gpu_rules.stuck_after_ns, 90 * NSEC_PER_SEC);
}

static void what_makes_no_sense_is_refused_and_leaves_the_output_alone(void **state)
{
        struct options *untouched = (struct options *)0x1;

        assert_int_equal(PARSE(&untouched, "--check"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "agent", "--cgroup", "/cg"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "--cgroup", "/cg"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "standalone", "--no-such-option"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "standalone", "--cgroup"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "gpu", "--cgroup", "/cg", "--idle-after", "soon"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "gpu", "--cgroup", "/cg", "--stuck-after", "0"), -EINVAL);
        assert_int_equal(PARSE(&untouched, "standalone", "--cgroup", "/cg", "--idle-after", "1m"), -EINVAL);
        assert_ptr_equal(untouched, (struct options *)0x1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_has_a_default),
                cmocka_unit_test(options_may_stand_before_and_after_the_role),
                cmocka_unit_test(metrics_can_be_turned_off),
                cmocka_unit_test(the_last_of_a_repeated_option_counts),
                cmocka_unit_test(check_takes_files_without_a_role),
                cmocka_unit_test(durations_of_gpus_have_defaults_and_can_be_set),
                cmocka_unit_test(what_makes_no_sense_is_refused_and_leaves_the_output_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
