/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the program on submitted jobs of DRM drivers counts. Times are CLOCK_MONOTONIC. */
#ifndef GPU_DRM_JOBS_WIRE_H
#define GPU_DRM_JOBS_WIRE_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#elif !defined(static_assert)
#define static_assert _Static_assert
#endif

enum {
        GPU_DRM_CGROUPS_MAX = 1024,     /* that are watched at once */
        GPU_DRM_CGROUP_LEVELS_MAX = 32, /* how deep below the root one may be */
};

/* Map "gpu_drm_cgroups", id of a watched cgroup → its jobs. */
struct gpu_drm_counts {
        __u64 jobs;
        __u64 last_ns; /* 0: none yet */
        __u32 below;   /* those of cgroups below are its own, but for watched ones'; else only its own processes' */
        __u32 padding;
};
static_assert(sizeof(struct gpu_drm_counts) == 24, "wire");

#endif
