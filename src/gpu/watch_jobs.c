/* SPDX-License-Identifier: Apache-2.0 */
/* Has the jobs of tenants with a DRM device counted. The scheduler that tells of them may be loaded after the driver's first part, so
 * its tracepoint is looked for again, twice a minute.
 */
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/time.h"
#include "bpf/drm_sched.h"
#include "gpu/watch_private.h"

#define TRY_AGAIN_NS (30 * NSEC_PER_SEC)

static bool has_drm_device(const struct gpu_tenant *tenant)
{
        for (size_t i = 0; i < tenant->n_uses; i++)
                if (tenant->uses[i].device->kind == GPU_NODE_DRM)
                        return true;
        return false;
}

static bool jobs_are_told(struct gpu_watch *watch)
{
        uint64_t now_ns = now_monotonic_ns();
        int r;

        if (watch->jobs || (watch->tried_jobs_ns && now_ns - watch->tried_jobs_ns < TRY_AGAIN_NS))
                return watch->jobs;
        r = gpu_drm_jobs_new(drm_sched_tracepoints, &watch->jobs);
        if (r < 0 && r != -ENOENT && !watch->tried_jobs_ns)
                log_warning("jobs of DRM drivers are not counted, what fdinfo tells is: %s", strerror(-r));
        watch->tried_jobs_ns = now_ns;
        return r >= 0;
}

void tenant_read_jobs(struct gpu_tenant *tenant)
{
        struct gpu_drm_counts counts;
        struct gpu_drm_jobs *jobs;
        uint64_t id;

        if (!has_drm_device(tenant) || !jobs_are_told(tenant->watch) || cgroup_id(tenant->cgroup, &id) < 0)
                return;
        jobs = tenant->watch->jobs;
        if (id != tenant->jobs_cgroup) {
                tenant_forget_jobs(tenant);
                if (gpu_drm_jobs_watch(jobs, id, !tenant->found) < 0)
                        return; /* no room */
                tenant->jobs_cgroup = id;
        }
        if (gpu_drm_jobs_read(jobs, id, &counts) < 0)
                return;
        tenant->jobs = counts.jobs;
        tenant->last_job_ns = MAX(tenant->last_job_ns, counts.last_ns);
}

void tenant_forget_jobs(struct gpu_tenant *tenant)
{
        if (tenant->jobs_cgroup)
                gpu_drm_jobs_forget(tenant->watch->jobs, tenant->jobs_cgroup);
        tenant->jobs_cgroup = 0;
}
