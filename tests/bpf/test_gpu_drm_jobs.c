/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of DRM drivers, counted by the real program. Where no driver has a scheduler another tracepoint stands in, one that a process
 * passes at will and that also runs in its own context: the execution of a program. */
#include "children.h"

#include "base/time.h"
#include "bpf/drm_sched.h"
#include "gpu/drm_jobs.h"

static const char *const stand_in[] = { "sched_process_exec", NULL };

struct setup {
        cgroup_path cgroup, below, deeper, outside;
        struct gpu_drm_jobs *jobs;
};

static int set_up(void **state)
{
        struct setup *setup = calloc(1, sizeof(*setup));

        make_cgroup("jobs", setup->cgroup);
        make_cgroup_below(setup->cgroup, "pod", setup->below);
        make_cgroup_below(setup->below, "container", setup->deeper);
        make_cgroup("jobs-outside", setup->outside);
        assert_int_equal(gpu_drm_jobs_new(stand_in, &setup->jobs), 0);
        *state = setup;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *setup = *state;

        gpu_drm_jobs_free(setup->jobs);
        rmdir(setup->deeper);
        rmdir(setup->below);
        rmdir(setup->cgroup);
        rmdir(setup->outside);
        free(setup);
        return 0;
}

static int run_program(const char *path)
{
        execl(path, path, NULL);
        return 126;
}

static void submit(const char *cgroup, unsigned times)
{
        while (times-- > 0)
                assert_int_equal(in_cgroup(cgroup, run_program, "/bin/true"), 0);
}

static struct gpu_drm_counts read_counts(const struct setup *setup, const char *cgroup)
{
        struct gpu_drm_counts counts;

        assert_int_equal(gpu_drm_jobs_read(setup->jobs, id_of(cgroup), &counts), 0);
        return counts;
}

static void watch(const struct setup *setup, const char *cgroup, bool below)
{
        assert_int_equal(gpu_drm_jobs_watch(setup->jobs, id_of(cgroup), below), 0);
}

static void jobs_of_a_watched_cgroup_count_and_no_others(void **state)
{
        struct setup *setup = *state;
        uint64_t before_ns;

        submit(setup->cgroup, 1); /* nobody has asked yet */
        watch(setup, setup->cgroup, true);
        assert_int_equal(read_counts(setup, setup->cgroup).jobs, 0);
        assert_int_equal(read_counts(setup, setup->cgroup).last_ns, 0);

        before_ns = now_monotonic_ns();
        submit(setup->cgroup, 3);
        submit(setup->outside, 2);
        assert_int_equal(read_counts(setup, setup->cgroup).jobs, 3);
        assert_in_range(read_counts(setup, setup->cgroup).last_ns, before_ns, now_monotonic_ns());
}

static void jobs_from_below_are_those_of_the_nearest_watched_cgroup(void **state)
{
        struct setup *setup = *state;

        watch(setup, setup->cgroup, true);
        submit(setup->below, 2);
        submit(setup->deeper, 3);
        assert_int_equal(read_counts(setup, setup->cgroup).jobs, 5);

        watch(setup, setup->below, true);
        submit(setup->below, 1);
        submit(setup->deeper, 1);
        assert_int_equal(read_counts(setup, setup->cgroup).jobs, 5);
        assert_int_equal(read_counts(setup, setup->below).jobs, 2);
}

static void a_cgroup_watched_for_itself_has_no_jobs_from_below(void **state)
{
        struct setup *setup = *state;

        watch(setup, setup->below, false);
        submit(setup->deeper, 2);
        submit(setup->below, 1);
        assert_int_equal(read_counts(setup, setup->below).jobs, 1);
}

static void what_is_forgotten_is_not_counted(void **state)
{
        struct setup *setup = *state;
        struct gpu_drm_counts counts;

        watch(setup, setup->cgroup, true);
        gpu_drm_jobs_forget(setup->jobs, id_of(setup->cgroup));
        submit(setup->cgroup, 1);
        assert_int_equal(gpu_drm_jobs_read(setup->jobs, id_of(setup->cgroup), &counts), -ENOENT);
}

static void past_the_bound_nobody_else_is_watched(void **state)
{
        struct setup *setup = *state;

        for (uint64_t id = 1; id <= GPU_DRM_CGROUPS_MAX; id++)
                assert_int_equal(gpu_drm_jobs_watch(setup->jobs, UINT64_MAX - id, true), 0);
        assert_int_equal(gpu_drm_jobs_watch(setup->jobs, id_of(setup->cgroup), true), -E2BIG);
}

static void an_older_name_serves_where_the_newest_is_missing(void **state)
{
        static const char *const names[] = { "lull_no_such_tracepoint", "sched_process_exec", NULL };
        struct setup *setup = *state;

        gpu_drm_jobs_free(setup->jobs);
        assert_int_equal(gpu_drm_jobs_new(names, &setup->jobs), 0);
        assert_string_equal(gpu_drm_jobs_tracepoint(setup->jobs), "sched_process_exec");
        watch(setup, setup->cgroup, true);
        submit(setup->cgroup, 2);
        assert_int_equal(read_counts(setup, setup->cgroup).jobs, 2);
}

static void the_newest_name_is_used_where_there_are_two(void **state)
{
        static const char *const names[] = { "sched_process_exec", "sched_process_exit", NULL };
        struct setup *setup = *state;

        gpu_drm_jobs_free(setup->jobs);
        assert_int_equal(gpu_drm_jobs_new(names, &setup->jobs), 0);
        assert_string_equal(gpu_drm_jobs_tracepoint(setup->jobs), "sched_process_exec");
}

static void a_kernel_without_any_of_them_says_so(void **state)
{
        static const char *const names[] = { "lull_no_such_tracepoint", "lull_nor_that", NULL };
        struct gpu_drm_jobs *jobs = NULL;

        assert_int_equal(gpu_drm_jobs_new(names, &jobs), -ENOENT);
        assert_null(jobs);
}

static void the_names_are_those_of_the_submission_newest_first(void **state)
{
        assert_string_equal(drm_sched_tracepoints[0], "drm_sched_job_queue");
        assert_string_equal(drm_sched_tracepoints[1], "drm_sched_job");
        assert_null(drm_sched_tracepoints[2]);
}

#define METHOD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                METHOD(jobs_of_a_watched_cgroup_count_and_no_others),
                METHOD(jobs_from_below_are_those_of_the_nearest_watched_cgroup),
                METHOD(a_cgroup_watched_for_itself_has_no_jobs_from_below),
                METHOD(what_is_forgotten_is_not_counted),
                METHOD(past_the_bound_nobody_else_is_watched),
                METHOD(an_older_name_serves_where_the_newest_is_missing),
                METHOD(the_newest_name_is_used_where_there_are_two),
                cmocka_unit_test(a_kernel_without_any_of_them_says_so),
                cmocka_unit_test(the_names_are_those_of_the_submission_newest_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
