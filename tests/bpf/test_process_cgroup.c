/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroup of a command: how it is joined, how all in it are killed, and where it is. */
#include "process_bench.h"

static void a_removed_cgroup_is_made_again(void **state)
{
        struct bench *bench = *state;

        make_process(bench, COMMAND("sleep", "1000"));
        assert_int_equal(access(bench->cgroup, F_OK), -1); /* not before it is needed */
        for (unsigned run = 1; run <= 2; run++) {
                process_start(bench->process);
                await(bench, bench->n_started == run);
                assert_int_equal(count_processes(bench), 1);
                process_stop(bench->process);
                await(bench, bench->n_exited == run);
                assert_int_equal(rmdir(bench->cgroup), 0);
        }
}

static void spawn_one(struct bench *bench, bool without_clone3, const char *script)
{
        _cleanup_(close_fdp) int cgroup_fd = cgroup_open(bench->cgroup), output_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct spawn_failure failure;
        struct spawned spawned;

        assert_true(cgroup_fd >= 0);
        bench->settings.command = COMMAND("sh", "-c", (char *)script);
        assert_int_equal(spawn(&(struct spawn_request){ .settings = &bench->settings,
                                                        .cgroup_fd = cgroup_fd,
                                                        .output_fd = output_fd,
                                                        .without_clone3 = without_clone3 },
                               &spawned, &failure),
                         0);
        while (spawn_read_report(spawned.report_fd, &failure) == -EAGAIN)
                ;
        assert_true(count_processes(bench) >= 1);
        assert_int_equal(getsid(spawned.pid), spawned.pid);
        bench->started_pid = spawned.pid;
        close(spawned.pidfd);
        close(spawned.report_fd);
}

static void the_cgroup_is_joined_with_and_without_clone3(void **state)
{
        struct bench *bench = *state;

        spawn_one(bench, false, "exec sleep 1000");
        assert_int_equal(count_processes(bench), 1);
        spawn_one(bench, true, "exec sleep 1000");
        assert_int_equal(count_processes(bench), 2);
}

static void without_cgroup_kill_each_process_is_killed_at_any_level(void **state)
{
        struct bench *bench = *state;
        char below[320];
        int fd;

        spawn_one(bench, false, "while :; do sleep 1000 & sleep 0.001; done");
        snprintf(below, sizeof(below), "%s/below", bench->cgroup);
        assert_int_equal(cgroup_make(below), 0);
        strcat(bench->cgroup, "/below");
        spawn_one(bench, false, "sleep 1000 & sleep 1000");
        *strrchr(bench->cgroup, '/') = '\0';

        fd = cgroup_open(bench->cgroup);
        for (unsigned i = 0; i < 1000 && cgroup_populated(fd) == 1; i++) {
                assert_int_equal(cgroup_kill_each(fd), 0);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
        }
        assert_int_equal(cgroup_populated(fd), 0);
        close(fd);
        assert_int_equal(rmdir(below), 0);
}

static void a_cgroup_id_leads_to_its_path(void **state)
{
        struct bench *bench = *state;
        _cleanup_(freep) char *path = NULL, *root = NULL;
        struct stat status, root_status;
        char *gone = NULL;

        assert_int_equal(cgroup_make(bench->cgroup), 0);
        assert_int_equal(stat(bench->cgroup, &status), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, status.st_ino, &path), 0);
        assert_string_equal(path, bench->cgroup + strlen(bench->root));

        assert_int_equal(stat(bench->root, &root_status), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, root_status.st_ino, &root), 0);
        assert_string_equal(root, "/");

        assert_int_equal(rmdir(bench->cgroup), 0);
        assert_int_equal(cgroup_path_by_id(bench->root, status.st_ino, &gone), -ENOENT);
}

/* Without CAP_DAC_READ_SEARCH there are no handles. */
static void a_cgroup_id_leads_to_its_path_without_handles(void **state)
{
        struct bench *bench = *state;
        struct stat status;
        int result = -1;
        pid_t child;

        assert_int_equal(cgroup_make(bench->cgroup), 0);
        assert_int_equal(stat(bench->cgroup, &status), 0);
        child = fork();
        if (child == 0) {
                _cleanup_(freep) char *path = NULL;

                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(2);
                if (cgroup_path_by_id(bench->root, status.st_ino, &path) < 0)
                        _exit(3);
                if (strcmp(path, bench->cgroup + strlen(bench->root)) != 0)
                        _exit(4);
                if (cgroup_path_by_id(bench->root, UINT64_MAX, &path) != -ENOENT)
                        _exit(5);
                free(path);
                path = NULL;
                _exit(0);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_BENCH(a_removed_cgroup_is_made_again),
                WITH_BENCH(the_cgroup_is_joined_with_and_without_clone3),
                WITH_BENCH(without_cgroup_kill_each_process_is_killed_at_any_level),
                WITH_BENCH(a_cgroup_id_leads_to_its_path),
                WITH_BENCH(a_cgroup_id_leads_to_its_path_without_handles),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
