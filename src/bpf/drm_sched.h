/* SPDX-License-Identifier: Apache-2.0 */
/* The DRM scheduler's tracepoint of a job that is submitted, under the names that it has had.
 *
 * Since 6.17 it is drm_sched_job_queue, and part of what the kernel promises to keep; before it was drm_sched_job. Of the scheduler's
 * tracepoints only this one runs in the submitting process: when a job begins and when it is done is told by workers and interrupts.
 * The scheduler is a module on most kernels, so that the tracepoint may come with a driver that is loaded later.
 */
#pragma once

extern const char *const drm_sched_tracepoints[]; /* the newest name first, and NULL last */

/* Attaches a raw tracepoint program to the first of @tracepoints that the kernel has. Returns the link, -ENOENT when it has none of
 * them, or -errno; *ret_tracepoint is the one. */
int drm_sched_attach(int program_fd, const char *const *tracepoints, const char **ret_tracepoint);
