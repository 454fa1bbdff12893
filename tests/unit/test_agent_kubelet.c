/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/kubelet.h"
#include "base/directory.h"
#include "base/macros.h"

/* A directory that looks like /proc and like a cgroup2 mount, below the build's own. */
struct machine {
        char directory[64];
        char proc[128], root[128];
};

static void write_file(const char *directory, const char *name, const char *text)
{
        _cleanup_(fclosep) FILE *file = NULL;
        char path[512];

        assert_int_equal(directory_make(directory, 0700), 0);
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
}

static void add_process(const struct machine *machine, const char *pid, const char *comm, const char *shown, const char *cgroup)
{
        char directory[256], line[256];

        snprintf(directory, sizeof(directory), "%s/%s", machine->proc, pid);
        snprintf(line, sizeof(line), "%s\n", comm);
        write_file(directory, "comm", line);
        snprintf(line, sizeof(line), "4:memory:/v1\n0::%s\n", shown);
        write_file(directory, "cgroup", line);
        snprintf(directory, sizeof(directory), "%s%s", machine->root, cgroup);
        snprintf(line, sizeof(line), "1\n%s\n", pid);
        write_file(directory, "cgroup.procs", line);
}

static int machine_make(void **state)
{
        struct machine *machine = calloc(1, sizeof(*machine));

        strcpy(machine->directory, "/tmp/lull-test-kubelet-XXXXXX");
        assert_non_null(mkdtemp(machine->directory));
        snprintf(machine->proc, sizeof(machine->proc), "%s/proc", machine->directory);
        snprintf(machine->root, sizeof(machine->root), "%s/cgroup", machine->directory);
        add_process(machine, "17", "bash", "/user.slice", "/user.slice");
        *state = machine;
        return 0;
}

static int machine_remove(void **state)
{
        struct machine *machine = *state;
        char command[128];

        snprintf(command, sizeof(command), "rm -rf %s", machine->directory);
        assert_int_equal(system(command), 0);
        free(machine);
        return 0;
}

static void the_kubelet_is_found_by_its_name(void **state)
{
        const struct machine *machine = *state;
        _cleanup_(freep) char *cgroup = NULL;
        char expected[256];

        add_process(machine, "4242", "kubelet", "/system.slice/kubelet.service", "/system.slice/kubelet.service");
        assert_int_equal(kubelet_find_cgroup(machine->proc, machine->root, &cgroup), 0);
        snprintf(expected, sizeof(expected), "%s/system.slice/kubelet.service", machine->root);
        assert_string_equal(cgroup, expected);
}

static void what_a_cgroup_namespace_shows_is_understood(void **state)
{
        const struct machine *machine = *state;
        _cleanup_(freep) char *cgroup = NULL;
        char expected[256];

        add_process(machine, "4242", "kubelet", "/../../../system.slice/kubelet.service", "/system.slice/kubelet.service");
        assert_int_equal(kubelet_find_cgroup(machine->proc, machine->root, &cgroup), 0);
        snprintf(expected, sizeof(expected), "%s/system.slice/kubelet.service", machine->root);
        assert_string_equal(cgroup, expected);
}

static void a_cgroup_that_does_not_have_it_is_not_taken(void **state)
{
        const struct machine *machine = *state;
        char *cgroup = NULL;

        add_process(machine, "4242", "kubelet", "/elsewhere", "/system.slice/kubelet.service");
        assert_int_equal(kubelet_find_cgroup(machine->proc, machine->root, &cgroup), -ENOENT);
        assert_null(cgroup);
}

static void without_a_kubelet_there_is_none(void **state)
{
        const struct machine *machine = *state;
        char *cgroup = NULL;

        assert_int_equal(kubelet_find_cgroup(machine->proc, machine->root, &cgroup), -ENOENT);
        assert_int_equal(kubelet_find_cgroup("/nowhere", machine->root, &cgroup), -ENOENT);
        assert_null(cgroup);
}

#define machine_test(test) cmocka_unit_test_setup_teardown(test, machine_make, machine_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                machine_test(the_kubelet_is_found_by_its_name),
                machine_test(what_a_cgroup_namespace_shows_is_understood),
                machine_test(a_cgroup_that_does_not_have_it_is_not_taken),
                machine_test(without_a_kubelet_there_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
