/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/drm_sched.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>

const char *const drm_sched_tracepoints[] = { "drm_sched_job_queue", "drm_sched_job", NULL };

int drm_sched_attach(int program_fd, const char *const *tracepoints, const char **ret_tracepoint)
{
        for (; *tracepoints; tracepoints++) {
                int fd = bpf_raw_tracepoint_open(*tracepoints, program_fd);

                if (fd >= 0) {
                        *ret_tracepoint = *tracepoints;
                        return fd;
                }
                if (errno != ENOENT)
                        return -errno;
        }
        return -ENOENT;
}
