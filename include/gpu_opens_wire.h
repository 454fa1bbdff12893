/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the program on opens of device nodes and the daemon say to each other. Times are CLOCK_MONOTONIC. */
#ifndef GPU_OPENS_WIRE_H
#define GPU_OPENS_WIRE_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#elif !defined(static_assert)
#define static_assert _Static_assert
#endif

enum {
        GPU_OPEN_MAJORS_MAX = 8,
        GPU_OPEN_CGROUPS_MAX = 4096,       /* that are told apart; the one whose last open is longest ago is forgotten first */
        GPU_OPEN_RING_BYTES = 4096,        /* hints; a lost one costs time until the next open or look */
        GPU_OPEN_INTERVAL_NS = 1000000000, /* a cgroup's opens are told that often at most */
};

struct gpu_open_event {
        __u64 cgroup; /* id of the process's own */
};
static_assert(sizeof(struct gpu_open_event) == 8, "wire");

#endif
