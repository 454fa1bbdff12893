/* SPDX-License-Identifier: Apache-2.0 */
/* The probes, on the kernel that runs the tests. */
#include "bpf/features.h"
#include "hooks.h"

#include <sys/wait.h>

/* What the other tests here need, they prove: the probe must agree. */
static void what_the_tests_use_is_found(void **state)
{
        static const enum feature used[] = { FEATURE_BTF,
                                             FEATURE_RING_BUFFER,
                                             FEATURE_NETFILTER_LINK,
                                             FEATURE_DYNPTR_SKB,
                                             FEATURE_TEST_RUN_REDIRECT,
                                             FEATURE_CGROUP_SKB,
                                             FEATURE_SOCK_OPS,
                                             FEATURE_SOCKET_STORAGE,
                                             FEATURE_NETFILTER_DEFRAG,
                                             FEATURE_CLONE_INTO_CGROUP,
                                             FEATURE_CGROUP_DEVICE };

        for (size_t i = 0; i < ELEMENTSOF(used); i++)
                if (feature_probe(used[i]) != 1)
                        fail_msg("%s: %d", feature_to_string(used[i]), feature_probe(used[i]));
}

static void every_feature_has_a_name_and_a_row(void **state)
{
        json_t *list = features_json();

        assert_int_equal(json_array_size(list), FEATURE_MAX);
        for (size_t i = 0; i < FEATURE_MAX; i++) {
                json_t *row = json_array_get(list, i);

                assert_string_equal(json_string_value(json_object_get(row, "name")), feature_to_string(i));
                assert_true(json_is_boolean(json_object_get(row, "available")));
                assert_non_null(json_string_value(json_object_get(row, "detail")));
                assert_non_null(json_string_value(json_object_get(row, "used_for")));
        }
        json_decref(list);
}

/* A probe without the right to try says so, rather than that the kernel lacks it. */
static void not_being_allowed_is_told_from_lacking(void **state)
{
        static const enum feature privileged[] = { FEATURE_NETFILTER_LINK, FEATURE_TEST_RUN_REDIRECT, FEATURE_SOCK_OPS,
                                                   FEATURE_SOCKET_STORAGE, FEATURE_CGROUP_DEVICE,     FEATURE_DRM_SCHED };
        pid_t child = fork();
        int status;

        if (child == 0) {
                int failures = setresuid(65534, 65534, 65534) < 0;

                for (size_t i = 0; i < ELEMENTSOF(privileged); i++)
                        failures += feature_probe(privileged[i]) != -EPERM;
                _exit(failures);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_tests_use_is_found),
                cmocka_unit_test(every_feature_has_a_name_and_a_row),
                cmocka_unit_test(not_being_allowed_is_told_from_lacking),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
