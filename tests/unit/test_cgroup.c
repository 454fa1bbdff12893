/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/macros.h"

#define V1 "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
#define CONTAINER "40 23 0:31 /../.. /mnt/part rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define WHOLE "41 31 0:31 / /sys/fs/cgroup/unified rw,relatime shared:4 master:2 - cgroup2 cgroup2 rw,nsdelegate\n"

static int find(const char *mountinfo, char **ret_path)
{
        _cleanup_(fclosep) FILE *file = fmemopen((void *)mountinfo, strlen(mountinfo), "r");

        assert_non_null(file);
        return cgroup_find_root_in(file, ret_path);
}

static void the_mount_is_found_beside_version_1_hierarchies(void **state)
{
        _cleanup_(freep) char *path = NULL;

        assert_int_equal(find(V1 WHOLE, &path), 0);
        assert_string_equal(path, "/sys/fs/cgroup/unified");
}

static void a_mount_of_the_whole_hierarchy_is_preferred(void **state)
{
        _cleanup_(freep) char *path = NULL, *only = NULL;

        assert_int_equal(find(CONTAINER V1 WHOLE, &path), 0);
        assert_string_equal(path, "/sys/fs/cgroup/unified");

        assert_int_equal(find(V1 CONTAINER, &only), 0);
        assert_string_equal(only, "/mnt/part");
}

static void an_escaped_mount_point_is_read(void **state)
{
        _cleanup_(freep) char *path = NULL;

        assert_int_equal(find("41 31 0:31 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n", &path), 0);
        assert_string_equal(path, "/mnt/a b\\c");
}

static void without_a_mount_nothing_is_found(void **state)
{
        char *path = NULL;

        assert_int_equal(find(V1, &path), -ENOENT);
        assert_int_equal(find("41 31 0:31 - cgroup2 none rw\nnonsense\n", &path), -ENOENT);
        assert_null(path);
}

static void a_cgroup_is_not_made_elsewhere(void **state)
{
        assert_int_equal(cgroup_make("/tmp/lull-no-cgroup/child"), -EINVAL);
        assert_int_equal(cgroup_make("relative"), -EINVAL);
        assert_int_not_equal(access("/tmp/lull-no-cgroup", F_OK), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_mount_is_found_beside_version_1_hierarchies),
                cmocka_unit_test(a_mount_of_the_whole_hierarchy_is_preferred),
                cmocka_unit_test(an_escaped_mount_point_is_read),
                cmocka_unit_test(without_a_mount_nothing_is_found),
                cmocka_unit_test(a_cgroup_is_not_made_elsewhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
