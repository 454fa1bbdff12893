/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: what a workload's processes ask their GPU driver to do, seen by probes on the driver library and nowhere else.
 *
 * A launch enters no kernel, so the driver library (libcuda.so.1, libamdhip64.so, libze_loader.so) is where it can be seen: every copy
 * that a process of the workload has mapped, by inode, whichever way its functions are reached. *Submissions* hand work to a device:
 * launches, graphs, copies, fills. *Waits* block a thread until the device is done; a thread counts as waiting while it is in one.
 * docs/gpu-calls.md has the functions, and what a probe costs.
 *
 * A workload is one cgroup2 directory and all below it. Its processes are probed only while it is *armed*, and only they are: another
 * workload that uses the same library pays nothing. While an armed workload makes so many calls that its probes would cost more than
 * one percent of a core it is probed by samples: it is then known to be busy. As soon as a sample finds it quiet its probes stay.
 *
 * Calls that count while nothing is attached are not seen, so every reading says what it covers. Nothing outlives the daemon. Time is
 * CLOCK_MONOTONIC.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "gpu/driver_library.h"

struct gpu_calls;
struct gpu_workload;

struct gpu_calls_callbacks {
        /* A hint to read now: the workload made its first call after a second or more without one, or one of its processes began to
         * use a driver library. May be NULL. */
        void (*stirred)(struct gpu_workload *workload, void *userdata);
};

/* @method is how to attach probes, "uprobe-multi" or "perf"; NULL: what this kernel does best. Returns 0, or -errno after logging which
 * step failed; -EOPNOTSUPP for a kernel that has neither. */
int gpu_calls_new(sd_event *event, const struct gpu_calls_callbacks *callbacks, const char *method, struct gpu_calls **ret_calls);
/* Workloads must have been freed. Accepts NULL, returns NULL. */
struct gpu_calls *gpu_calls_free(struct gpu_calls *calls);

/* @cgroup is a cgroup2 directory with its mount point. Starts disarmed. Returns 0, -EEXIST when another workload has that cgroup, or
 * one around or inside it, -ENOBUFS past GPU_WORKLOADS_MAX (gpu_calls_wire.h), or -errno. */
int gpu_workload_new(struct gpu_calls *calls, const char *cgroup, void *userdata, struct gpu_workload **ret_workload);
struct gpu_workload *gpu_workload_free(struct gpu_workload *workload); /* accepts NULL, returns NULL */

/* Idempotent both. Returns 0 also where something could not be probed, readings say so; or -errno, and stays disarmed. Disarming does not wait: probes go within
 * seconds, and from now on count for nothing. */
int gpu_calls_arm(struct gpu_workload *workload);
void gpu_calls_disarm(struct gpu_workload *workload);

/* What a reading covers, from the least to be relied on. */
enum gpu_coverage {
        GPU_COVERAGE_UNKNOWN,  /* the processes could not be looked at: @reason */
        GPU_COVERAGE_PARTIAL,  /* something that may call a GPU is not probed: @reason. No calls seen proves nothing */
        GPU_COVERAGE_DISARMED, /* nothing is probed, and nobody asked for it */
        GPU_COVERAGE_NONE,     /* no process has mapped a driver library: no calls, as far as these libraries go */
        GPU_COVERAGE_SAMPLED,  /* busy at the last sample; not probed at this moment */
        GPU_COVERAGE_FULL,     /* every driver library of every process is probed */
        GPU_COVERAGE_MAX,
};

enum { GPU_REASON_MAX = 256 };

struct gpu_calls_reading {
        uint64_t read_ns; /* when; processes were looked for then */

        uint64_t submissions;        /* seen since gpu_calls_arm() */
        uint64_t waits;              /* likewise, entered */
        uint64_t last_submission_ns; /* 0: none since then */
        uint64_t last_wait_ns;       /* when a thread last entered or left a wait; 0: never since then */
        /* Threads in a wait now. One that began while waits were not probed is not seen: before arming, or while being sampled for
         * a workload that waits thousands of times a second. */
        uint32_t waiting;

        enum gpu_coverage coverage;
        /* Since when coverage has been FULL or NONE without a gap, which is how long "no calls" is known; 0: it is not. A process or a
         * library that came meanwhile and was probed as it began (its initialisation was seen) leaves no gap. */
        uint64_t covered_since_ns;
        /* Since when nobody submitted or waited, as far as that is known: max(covered_since, last call); 0: somebody waits, or not
         * known. */
        uint64_t quiet_since_ns;

        uint32_t processes;          /* of the workload */
        uint32_t users;              /* of those, how many have mapped a driver library */
        uint32_t libraries;          /* distinct ones, by inode, that they have mapped */
        uint32_t unprobed;           /* of those, how many can't be probed */
        uint32_t slow;               /* of those, how many have a function where a probe costs ten times as much */
        uint64_t initialised_ns;     /* when a process of it last initialised a driver; 0: not seen */
        char reason[GPU_REASON_MAX]; /* why coverage is UNKNOWN or PARTIAL, for people; "" otherwise */
};

/* Looks for processes and libraries, probes what is new and reads the counters. Some 5 µs a process, and a millisecond for one that
 * has mapped or unmapped something. Returns 0; -errno when nothing is known, the cgroup being gone (-ENOENT) among it. */
int gpu_calls_read(struct gpu_workload *workload, struct gpu_calls_reading *ret_reading);

struct gpu_library_view { /* one driver library of a workload, for people; strings live until the next call of this module */
        const char *path; /* as a process that has mapped it sees it */
        enum gpu_vendor vendor;
        uint64_t device, inode;
        uint32_t functions; /* probed ones */
        uint32_t slow;      /* of those */
        uint32_t processes; /* of the workload */
        bool deleted;
        const char *reason; /* why it can't be probed; NULL */
};

/* As of the last reading, at most @max of them; returns how many there are. */
size_t gpu_workload_libraries(const struct gpu_workload *workload, struct gpu_library_view *ret_libraries, size_t max);

const char *gpu_coverage_to_string(enum gpu_coverage coverage); /* "full", "sampled", ... */
const char *gpu_calls_method(const struct gpu_calls *calls);    /* as gpu_calls_new() takes it */
