/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <getopt.h>
#include <string.h>

#include "agent/options.h"

#define WORDS(...) ((char *[]){ (char *)"agent", __VA_ARGS__, NULL })

static int parse(char **words, struct agent_options **ret_options)
{
        int n = 0;

        while (words[n])
                n++;
        optind = 0; /* getopt(3): begin anew */
        return agent_options_parse(n, words, ret_options);
}

static int forget_environment(void **state)
{
        unsetenv("NODE_NAME");
        unsetenv("POD_NAMESPACE");
        return 0;
}

static void a_pod_needs_no_options(void **state)
{
        _cleanup_(agent_options_freep) struct agent_options *options = NULL;

        setenv("NODE_NAME", "n7", 1);
        setenv("POD_NAMESPACE", "elsewhere", 1);
        assert_int_equal(parse(WORDS(NULL), &options), 0);
        assert_string_equal(options->node, "n7");
        assert_string_equal(options->namespace, "elsewhere");
        assert_string_equal(options->bpffs, "/sys/fs/bpf/lull");
        assert_string_equal(options->run_dir, "/run/lull");
        assert_string_equal(options->metrics, "0.0.0.0:9474");
        assert_string_equal(options->release, "auto");
        assert_non_null(options->cgroup);
        assert_null(options->kubeconfig);
        assert_null(options->kubelet);
        assert_null(options->cluster_cidr);
        assert_false(options->masquerade_all);
        assert_false(options->gpu);
        assert_int_equal(options->gpu_rules.unused_after_ns, 0);
        assert_int_equal(options->gpu_rules.stuck_after_ns, 0);
}

static void durations_of_gpus_can_be_set(void **state)
{
        _cleanup_(agent_options_freep) struct agent_options *options = NULL, *wrong = NULL;

        setenv("NODE_NAME", "n7", 1);
        assert_int_equal(parse(WORDS((char *)"--gpu", (char *)"--gpu-unused-after=2h", (char *)"--gpu-stuck-after=5m"), &options),
                         0);
        assert_true(options->gpu);
        assert_int_equal(options->gpu_rules.unused_after_ns, 7200 * NSEC_PER_SEC);
        assert_int_equal(options->gpu_rules.stuck_after_ns, 300 * NSEC_PER_SEC);
        assert_int_equal(parse(WORDS((char *)"--gpu-unused-after=never"), &wrong), -EINVAL);
        assert_int_equal(parse(WORDS((char *)"--gpu-stuck-after=0"), &wrong), -EINVAL);
}

static void what_is_given_counts(void **state)
{
        _cleanup_(agent_options_freep) struct agent_options *options = NULL;
        char *words[] = {
                (char *)"agent",          (char *)"--node=n1",        (char *)"--namespace=lull", (char *)"--metrics=none",
                (char *)"--release=wait", (char *)"--masquerade-all", (char *)"--cgroup=/c",      NULL
        };

        setenv("NODE_NAME", "n7", 1);
        assert_int_equal(parse(words, &options), 0);
        assert_string_equal(options->node, "n1");
        assert_string_equal(options->namespace, "lull");
        assert_null(options->metrics);
        assert_string_equal(options->release, "wait");
        assert_string_equal(options->cgroup, "/c");
        assert_true(options->masquerade_all);
}

static void without_a_node_it_does_not_start(void **state)
{
        struct agent_options *options = NULL;

        assert_int_equal(parse(WORDS(NULL), &options), -EINVAL);
        setenv("NODE_NAME", "", 1);
        assert_int_equal(parse(WORDS(NULL), &options), -EINVAL);
        assert_null(options);
}

static void what_is_no_option_is_refused(void **state)
{
        struct agent_options *options = NULL;

        assert_int_equal(parse(WORDS((char *)"--node=n1", (char *)"--release=soon"), &options), -EINVAL);
        assert_int_equal(parse(WORDS((char *)"--node=n1", (char *)"--nod"), &options), -EINVAL);
        assert_int_equal(parse(WORDS((char *)"--node=n1", (char *)"web.yaml"), &options), -EINVAL);
        assert_null(options);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_pod_needs_no_options, forget_environment),
                cmocka_unit_test_setup(durations_of_gpus_can_be_set, forget_environment),
                cmocka_unit_test_setup(what_is_given_counts, forget_environment),
                cmocka_unit_test_setup(without_a_node_it_does_not_start, forget_environment),
                cmocka_unit_test_setup(what_is_no_option_is_refused, forget_environment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
