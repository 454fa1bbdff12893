/* SPDX-License-Identifier: Apache-2.0 */
/* CPU use of a cgroup over the last minute, from samples of its cpu.stat. */
#pragma once

#include <stdint.h>

enum {
        CPU_SAMPLES = 64,
        CPU_SAMPLE_SECONDS = 1, /* closer ones are not kept */
        CPU_WINDOW_SECONDS = 60,
};

struct cpu_sample {
        uint64_t ns;
        uint64_t usage_usec;
};

struct cpu_history { /* starts zeroed */
        struct cpu_sample samples[CPU_SAMPLES];
        unsigned n, newest;
};

/* Takes a sample at @now_ns and gives the use since the last sample that is at least a window old, or since the oldest one. A window is
 * a minute, or @after_ns when that is shorter, but at least a second. A first sample gives a window of 0. */
void cpu_history_add(struct cpu_history *history, uint64_t usage_usec, uint64_t after_ns, uint64_t now_ns, uint32_t *ret_millicores,
                     uint64_t *ret_window_ns);

/* usage_usec of cpu.stat in the cgroup2 directory @cgroup_fd. Returns 0, -ENODATA when it is not in there, or -errno. */
int cpu_read_usage(int cgroup_fd, uint64_t *ret_usage_usec);
