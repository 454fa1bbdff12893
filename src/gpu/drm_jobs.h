/* SPDX-License-Identifier: Apache-2.0 */
/* DRM jobs: how often the processes of a cgroup hand work to a DRM driver, counted by the kernel's GPU scheduler.
 *
 * Sees what falls between two looks at fdinfo, and drivers that have no engine times there. Drivers with a scheduler of their own
 * (i915), user-mode queues (KFD) and NVIDIA's do not come by here, nor does it say which device it was: so a job proves work, and no job
 * proves nothing. Needs CAP_BPF and CAP_PERFMON. Time is CLOCK_MONOTONIC.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "gpu_drm_jobs_wire.h"

struct gpu_drm_jobs;

/* @tracepoints as drm_sched_attach() takes them. Returns 0, -ENOENT when the kernel has none of them, or not yet, or -errno. */
int gpu_drm_jobs_new(const char *const *tracepoints, struct gpu_drm_jobs **ret_jobs);
struct gpu_drm_jobs *gpu_drm_jobs_free(struct gpu_drm_jobs *jobs); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct gpu_drm_jobs, gpu_drm_jobs_free)

/* Counts from now on, of the cgroup with that id; with @below of all cgroups below it, too, that are not watched themselves. Returns 0,
 * -E2BIG past GPU_DRM_CGROUPS_MAX, or -errno. */
int gpu_drm_jobs_watch(struct gpu_drm_jobs *jobs, uint64_t cgroup, bool below);
void gpu_drm_jobs_forget(struct gpu_drm_jobs *jobs, uint64_t cgroup);
int gpu_drm_jobs_read(const struct gpu_drm_jobs *jobs, uint64_t cgroup,
                      struct gpu_drm_counts *ret_counts); /* 0, -ENOENT or -errno */

const char *gpu_drm_jobs_tracepoint(const struct gpu_drm_jobs *jobs); /* the one that is there */
