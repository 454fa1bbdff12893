/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs that the kernel's GPU scheduler counts are worth as evidence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/time.h"
#include "gpu/watch_private.h"

#define NOW (UINT64_C(20) * 3600 * NSEC_PER_SEC)
#define WINDOW (UINT64_C(1800) * NSEC_PER_SEC)

struct setup {
        struct gpu_watch watch;
        struct gpu_device device;
        struct gpu_tenant tenant;
        struct gpu_use use;
};

static int set_up(void **state)
{
        struct setup *setup = calloc(1, sizeof(*setup));

        setup->watch.saw_all = true;
        TAILQ_INIT(&setup->watch.tenants);
        setup->device.kind = GPU_NODE_DRM;
        setup->tenant.watch = &setup->watch;
        setup->tenant.looked_ns = NOW;
        setup->tenant.rules = (struct gpu_rules){ .window_ns = WINDOW, .factor = 1 };
        setup->use = (struct gpu_use){ .device = &setup->device, .n_open = 1, .drm = drm_usage_new() };
        gpu_machine_begin(&setup->use.machine, NOW - 3 * WINDOW);
        *state = setup;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *setup = *state;

        drm_usage_free(setup->use.drm);
        free(setup);
        return 0;
}

/* fdinfo with an engine that has stood still for @ns. */
static void fdinfo_silent_for(struct setup *setup, uint64_t ns)
{
        const struct drm_client client = { .driver = "amdgpu", .engines = { { .name = "gfx", .busy_ns = 5 } }, .n_engines = 1 };

        for (int i = 0; i < 2; i++) {
                drm_usage_begin(setup->use.drm);
                drm_usage_add(setup->use.drm, &client, 1, 3);
                drm_usage_end(setup->use.drm, i ? NOW : NOW - ns);
        }
}

static struct gpu_source kernel(struct setup *setup, struct gpu_verdict *ret_verdict)
{
        struct gpu_evidence evidence;

        evidence_of(&setup->tenant, &setup->use, NOW, &evidence);
        gpu_machine_step(&setup->use.machine, &setup->tenant.rules, &evidence, NOW, ret_verdict);
        return evidence.sources[GPU_SOURCE_KERNEL];
}

static void a_job_is_work_also_where_fdinfo_has_no_engine_times(void **state)
{
        struct setup *setup = *state;
        struct gpu_verdict verdict;

        setup->tenant.last_job_ns = NOW - NSEC_PER_SEC;
        assert_int_equal(kernel(setup, &verdict).last_busy_ns, NOW - NSEC_PER_SEC);
        assert_int_equal(verdict.state, GPU_ACTIVE);
}

static void a_job_that_fdinfo_does_not_show_yet_is_work(void **state)
{
        struct setup *setup = *state;
        struct gpu_verdict verdict;

        fdinfo_silent_for(setup, 2 * WINDOW);
        setup->tenant.last_job_ns = NOW - NSEC_PER_SEC;
        kernel(setup, &verdict);
        assert_int_equal(verdict.state, GPU_ACTIVE);
}

static void no_job_says_nothing(void **state)
{
        struct setup *setup = *state;
        struct gpu_verdict verdict;

        setup->tenant.jobs_cgroup = 7;
        assert_false(kernel(setup, &verdict).known);
        assert_int_equal(verdict.n_sources, 0);
}

static void jobs_and_fdinfo_are_one_source(void **state)
{
        struct setup *setup = *state;
        struct gpu_verdict verdict;

        fdinfo_silent_for(setup, 2 * WINDOW);
        setup->tenant.jobs_cgroup = 7;
        setup->tenant.last_job_ns = NOW - 2 * WINDOW;
        assert_true(kernel(setup, &verdict).known);
        assert_int_equal(verdict.n_sources, 1);
        assert_int_equal(verdict.state, GPU_UNKNOWN);
}

static void an_nvidia_device_has_no_such_jobs(void **state)
{
        struct setup *setup = *state;
        struct gpu_verdict verdict;

        setup->device.kind = GPU_NODE_NVIDIA;
        setup->use.drm = drm_usage_free(setup->use.drm);
        setup->tenant.last_job_ns = NOW - NSEC_PER_SEC;
        assert_int_equal(kernel(setup, &verdict).last_busy_ns, 0);
}

#define METHOD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                METHOD(a_job_is_work_also_where_fdinfo_has_no_engine_times),
                METHOD(a_job_that_fdinfo_does_not_show_yet_is_work),
                METHOD(no_job_says_nothing),
                METHOD(jobs_and_fdinfo_are_one_source),
                METHOD(an_nvidia_device_has_no_such_jobs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
