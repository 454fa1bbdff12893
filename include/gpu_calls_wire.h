/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the probes on driver libraries and the daemon say to each other: map values and ring buffer records.
 *
 * Fixed-width fields, explicit padding, sizes asserted. Times are bpf_ktime_get_ns(): CLOCK_MONOTONIC.
 * A *watch* is one period in which a workload is probed, by a number never used twice; it is the cookie of the probes' links, so that
 * probes which are still being taken off count for nothing in the next one.
 */
#ifndef GPU_CALLS_WIRE_H
#define GPU_CALLS_WIRE_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#elif !defined(static_assert)
#define static_assert _Static_assert
#endif

enum {
        GPU_WORKLOADS_MAX = 256,     /* at once; the map of counts is allocated beforehand, for each CPU */
        GPU_WAITS_MAX = 8192,        /* threads in a wait at once, of all workloads; one past that is counted as lost */
        GPU_RING_BYTES = 64 * 1024,  /* hints; a lost one costs time until the next look */
        GPU_CGROUP_LEVELS_MAX = 32,  /* how deep below the root a workload's cgroup may be */
        GPU_SILENCE_NS = 1000000000, /* the first call after that long without one is told */
};

/* Map "gpu_counts", watch → one a CPU. The counts never decrease. */
struct gpu_counts {
        __u64 submissions;
        __u64 last_submission_ns;
        __u64 waits;        /* entered */
        __u64 last_wait_ns; /* entered or left */
        __u64 lost_waits;   /* no room in "gpu_waits" */
};
static_assert(sizeof(struct gpu_counts) == 40, "wire");

/* Map "gpu_waits", thread (as bpf_get_current_pid_tgid() has it) → the outermost wait that it is in. */
struct gpu_wait {
        __u64 watch;
        __u64 stack_pointer; /* at the wait's first instruction */
        __u64 since_ns;
};
static_assert(sizeof(struct gpu_wait) == 24, "wire");

enum gpu_event_kind {
        GPU_EVENT_CALL = 1,    /* the first after a silence, in @watch */
        GPU_EVENT_INITIALISED, /* a process in the workload's cgroup @cgroup initialised a driver */
};

struct gpu_event {
        __u64 subject; /* watch or cgroup id */
        __u64 when_ns;
        __u32 kind;
        __u32 process; /* tgid in the initial namespace */
};
static_assert(sizeof(struct gpu_event) == 24, "wire");

#endif
