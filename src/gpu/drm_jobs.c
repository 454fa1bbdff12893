/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/drm_jobs.h"

#include <bpf/bpf.h>

#include "bpf/describe.h"
#include "bpf/drm_sched.h"
#include "bpf/gpu_drm_jobs.skel.h"

struct gpu_drm_jobs {
        struct gpu_drm_jobs_bpf *programs;
        int link_fd;
        const char *tracepoint;
};

static int jobs_start(struct gpu_drm_jobs *jobs, const char *const *tracepoints)
{
        int r;

        jobs->programs = gpu_drm_jobs_bpf__open_and_load();
        if (!jobs->programs)
                return -errno;
        r = drm_sched_attach(bpf_program__fd(jobs->programs->progs.gpu_drm_job), tracepoints, &jobs->tracepoint);
        if (r < 0)
                return r;
        jobs->link_fd = r;
        return 0;
}

int gpu_drm_jobs_new(const char *const *tracepoints, struct gpu_drm_jobs **ret_jobs)
{
        _cleanup_(gpu_drm_jobs_freep) struct gpu_drm_jobs *jobs = calloc(1, sizeof(*jobs));
        int r;

        if (!jobs)
                return -ENOMEM;
        jobs->link_fd = -1;
        libbpf_log_to_debug();
        r = jobs_start(jobs, tracepoints);
        if (r < 0)
                return r;
        *ret_jobs = TAKE_PTR(jobs);
        return 0;
}

struct gpu_drm_jobs *gpu_drm_jobs_free(struct gpu_drm_jobs *jobs)
{
        if (!jobs)
                return NULL;

        close_fd(jobs->link_fd);
        gpu_drm_jobs_bpf__destroy(jobs->programs);
        free(jobs);
        return NULL;
}

static int cgroups_fd(const struct gpu_drm_jobs *jobs)
{
        return bpf_map__fd(jobs->programs->maps.gpu_drm_cgroups);
}

int gpu_drm_jobs_watch(struct gpu_drm_jobs *jobs, uint64_t cgroup, bool below)
{
        const struct gpu_drm_counts counts = { .below = below };

        return bpf_map_update_elem(cgroups_fd(jobs), &cgroup, &counts, BPF_ANY) < 0 ? -errno : 0;
}

void gpu_drm_jobs_forget(struct gpu_drm_jobs *jobs, uint64_t cgroup)
{
        bpf_map_delete_elem(cgroups_fd(jobs), &cgroup);
}

int gpu_drm_jobs_read(const struct gpu_drm_jobs *jobs, uint64_t cgroup, struct gpu_drm_counts *ret_counts)
{
        return bpf_map_lookup_elem(cgroups_fd(jobs), &cgroup, ret_counts) < 0 ? -errno : 0;
}

const char *gpu_drm_jobs_tracepoint(const struct gpu_drm_jobs *jobs)
{
        return jobs->tracepoint;
}
