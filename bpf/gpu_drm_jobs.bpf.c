// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Counts the jobs that processes hand to DRM drivers. Attached to the tracepoint that runs while the submitter does, under the name that
 * this kernel has for it; what the tracepoint tells of the job is not looked at.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "gpu_drm_jobs_wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, GPU_DRM_CGROUPS_MAX);
        __type(key, __u64);
        __type(value, struct gpu_drm_counts);
} gpu_drm_cgroups SEC(".maps");

/* The watched cgroup nearest to the process, which may be one around its own; 0: none. */
static __always_inline __u64 watched_cgroup(void)
{
        __u64 own = bpf_get_current_cgroup_id(), nearest = 0;

        for (int level = 0; level < GPU_DRM_CGROUP_LEVELS_MAX; level++) {
                __u64 cgroup = bpf_get_current_ancestor_cgroup_id(level);
                const struct gpu_drm_counts *counts;

                if (!cgroup)
                        break;
                counts = bpf_map_lookup_elem(&gpu_drm_cgroups, &cgroup);
                if (counts && (counts->below || cgroup == own))
                        nearest = cgroup;
        }
        return nearest;
}

SEC("raw_tp")
int gpu_drm_job(void *ctx)
{
        __u64 cgroup = watched_cgroup();
        struct gpu_drm_counts *counts = bpf_map_lookup_elem(&gpu_drm_cgroups, &cgroup);

        if (!counts)
                return 0;
        __sync_fetch_and_add(&counts->jobs, 1);
        counts->last_ns = bpf_ktime_get_ns();
        return 0;
}
