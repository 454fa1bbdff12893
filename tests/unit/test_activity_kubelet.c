/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "activity/kubelet.h"
#include "base/directory.h"
#include "base/macros.h"

/* A made-up machine: processes below proc/, cgroups below cgroup/. */
static char *machine_new(void)
{
        char *machine = strdup("/tmp/lull-kubelet-XXXXXX");

        assert_non_null(mkdtemp(machine));
        return machine;
}

static void machine_remove(char **machine)
{
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", *machine);
        assert_int_equal(system(command), 0);
        free(*machine);
}

static void machine_write(const char *machine, const char *directory, const char *name, const char *text)
{
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", machine, directory);
        assert_int_equal(directory_make(path, 0755), 0);
        snprintf(path, sizeof(path), "%s/%s/%s", machine, directory, name);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static int find(const char *machine, char **ret_cgroup)
{
        _cleanup_(freep) char *proc = NULL, *root = NULL;

        assert_true(asprintf(&proc, "%s/proc", machine) > 0);
        assert_true(asprintf(&root, "%s/cgroup", machine) > 0);
        return kubelet_cgroup_find(proc, root, ret_cgroup);
}

static void expect(const char *machine, const char *cgroup)
{
        _cleanup_(freep) char *found = NULL;

        assert_int_equal(find(machine, &found), 0);
        assert_string_equal(found + strlen(machine), cgroup);
}

static void expect_error(const char *machine, int error)
{
        char *found = NULL;

        assert_int_equal(find(machine, &found), error);
        assert_null(found);
}

static void the_kubelet_is_found_by_its_name_and_place(void **state)
{
        _cleanup_(machine_remove) char *machine = machine_new();

        machine_write(machine, "proc/1", "comm", "systemd\n");
        machine_write(machine, "proc/70", "comm", "kubelet-helper\n");
        machine_write(machine, "proc/71", "comm", "kubelet\n");
        machine_write(machine, "proc/self", "comm", "kubelet\n");
        machine_write(machine, "cgroup", "cgroup.procs", "1\n");
        machine_write(machine, "cgroup/system.slice/a.service", "cgroup.procs", "7\n70\n711\n");
        machine_write(machine, "cgroup/system.slice/kubelet.service", "cgroup.procs", "69\n71\n");
        machine_write(machine, "cgroup/kubepods.slice", "cgroup.procs", "");
        expect(machine, "/cgroup/system.slice/kubelet.service");
}

static void a_process_in_a_pod_is_not_the_kubelet(void **state)
{
        _cleanup_(machine_remove) char *machine = machine_new();

        machine_write(machine, "proc/71", "comm", "kubelet\n");
        machine_write(machine, "cgroup/kubepods.slice/kubepods-pod1.slice", "cgroup.procs", "71\n");
        machine_write(machine, "cgroup/kubelet/kubepods/pod2", "cgroup.procs", "71\n");
        expect_error(machine, -ENOENT);
}

static void a_kubelet_below_another_root_is_another_node_s(void **state)
{
        _cleanup_(machine_remove) char *machine = machine_new();

        machine_write(machine, "proc/71", "comm", "kubelet\n");
        machine_write(machine, "proc/72", "comm", "kubelet\n");
        machine_write(machine, "other/kubelet", "cgroup.procs", "71\n");
        machine_write(machine, "cgroup/kubelet", "cgroup.procs", "72\n");
        expect(machine, "/cgroup/kubelet");
}

static void a_cgroup_that_others_share_says_nothing(void **state)
{
        _cleanup_(machine_remove) char *machine = machine_new();

        machine_write(machine, "proc/71", "comm", "kubelet\n");
        machine_write(machine, "cgroup", "cgroup.procs", "1\n71\n");
        expect_error(machine, -EBUSY);

        machine_write(machine, "cgroup", "cgroup.procs", "1\n");
        machine_write(machine, "cgroup/kubelet.slice", "cgroup.procs", "71\n");
        expect(machine, "/cgroup/kubelet.slice");
        machine_write(machine, "cgroup/kubelet.slice/x/kubelet-kubepods.slice", "cgroup.procs", "");
        expect_error(machine, -EBUSY);
}

static void without_a_kubelet_there_is_none(void **state)
{
        _cleanup_(machine_remove) char *machine = machine_new();

        machine_write(machine, "proc/71", "comm", "kubelet2\n");
        machine_write(machine, "cgroup/kubelet", "cgroup.procs", "71\n");
        expect_error(machine, -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_kubelet_is_found_by_its_name_and_place),
                cmocka_unit_test(a_process_in_a_pod_is_not_the_kubelet),
                cmocka_unit_test(a_kubelet_below_another_root_is_another_node_s),
                cmocka_unit_test(a_cgroup_that_others_share_says_nothing),
                cmocka_unit_test(without_a_kubelet_there_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
