/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on one workload's use of one device: a state machine fed with evidence every few seconds. Pure; time is passed in.
 *
 * A device is idle only when that is certain: no submission, no blocked synchronisation, a utilisation of exactly zero and no request
 * in flight, all of it seen by two independent sources for the whole window. One source is enough to say that it works. With fewer
 * than two the state is unknown, and unknown is never idle.
 *
 * Sources are independent of each other when different software counts: the driver library's entry points (probes), the vendor's
 * management library (NVML), the kernel (DRM fdinfo, KFD, open files).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

enum gpu_state {
        GPU_STARTING, /* allocated or opened, and nothing has run yet */
        GPU_ACTIVE,
        GPU_QUIET,     /* nothing for 30 s */
        GPU_CANDIDATE, /* nothing for the whole window; being confirmed */
        GPU_IDLE,      /* confirmed */
        GPU_UNUSED,    /* allocated for half an hour and never opened */
        GPU_STUCK,     /* full load without a submission, at a fraction of the power: worth an alert, never idle */
        GPU_UNKNOWN,
        GPU_STATE_MAX,
};

enum gpu_source_kind {
        GPU_SOURCE_CALLS,  /* probes on the driver library */
        GPU_SOURCE_VENDOR, /* NVML */
        GPU_SOURCE_KERNEL, /* DRM fdinfo, KFD, or that nobody has it open */
        GPU_SOURCE_MAX,
};

struct gpu_source {
        bool known;            /* its silence says something about this workload on this device */
        bool whole_device;     /* it cannot tell this workload from others: no source for a shared device */
        uint64_t since_ns;     /* it has been read without a gap since then */
        uint64_t read_ns;      /* when it was read last; older than 10 s it counts for nothing */
        uint64_t last_busy_ns; /* the newest work it has seen, which counts in any case; 0: none */
        const char *lack;      /* why its silence says nothing, for people; NULL where there simply is no such source */
};

struct gpu_evidence {
        struct gpu_source sources[GPU_SOURCE_MAX];
        const char *blind; /* what makes any silence doubtful ("a driver library in use is not probed"), or NULL */
        bool shared;       /* other workloads have the device open too */
        bool opens_known;  /* it could be found out who has the device open */
        bool opened;       /* this workload has, now */
        uint32_t waiting;  /* threads blocked in a synchronisation: the device, or what it waits for, works for them */
        uint32_t open_requests;
        uint32_t cpu_millicores;
        uint64_t io_bytes_per_second;
        uint32_t percent;          /* the vendor's utilisation; meaningful while that source is known */
        uint32_t power_milliwatts; /* of the device; 0: not known */
};

struct gpu_rules {
        uint64_t window_ns;       /* idle.gpu.after; at least three cold starts are waited for */
        uint64_t cold_start_ns;   /* how long the workload takes to become ready; 0: not known */
        unsigned factor;          /* gpu_window_factor(); 1 to 4 */
        uint64_t unused_after_ns; /* allocated for that long and never opened; 0: GPU_UNUSED_AFTER_NS */
        uint64_t stuck_after_ns;  /* at full load for that long without a submission; 0: GPU_STUCK_AFTER_NS */
};

#define GPU_IDLE_AFTER_NS (1800 * NSEC_PER_SEC) /* where nobody says otherwise */
#define GPU_UNUSED_AFTER_NS (1800 * NSEC_PER_SEC)
#define GPU_STUCK_AFTER_NS (600 * NSEC_PER_SEC)

enum { GPU_POWER_SAMPLES = 64 };

struct gpu_machine {
        enum gpu_state state;
        uint64_t since_ns; /* when the state began */
        uint64_t began_ns; /* when the device was allocated, as far as is known */
        uint64_t opened_ns;
        uint64_t worked_ns;     /* the first work seen; 0: none yet */
        uint64_t last_busy_ns;  /* the newest */
        uint64_t full_since_ns; /* at full load without a break since then; 0: not now */
        uint64_t stepped_ns;
        uint32_t power_milliwatts[GPU_POWER_SAMPLES]; /* while it worked, the newest ones */
        unsigned n_power, next_power;
};

struct gpu_verdict {
        enum gpu_state state;
        uint64_t since_ns;
        uint64_t idle_ns;     /* for how long nothing was done, as far as two sources know; 0 when active or unknown */
        uint64_t required_ns; /* the window */
        unsigned n_sources;   /* that count now */
        uint32_t sources;     /* 1 << enum gpu_source_kind each */
        char reason[256];     /* for people, without a full stop */
};

void gpu_machine_begin(struct gpu_machine *machine, uint64_t now_ns);
void gpu_machine_step(struct gpu_machine *machine, const struct gpu_rules *rules, const struct gpu_evidence *evidence,
                      uint64_t now_ns, struct gpu_verdict *ret_verdict);

struct gpu_part {
        const char *name; /* of the device, for the reason */
        const struct gpu_verdict *verdict;
};

/* The verdict on a workload with several devices, or on a device of several workloads: idle only when all parts are (an unused one does
 * not matter beside an idle one), and otherwise what the most active part says. Of no part nothing is known. */
void gpu_verdict_all(const struct gpu_part *parts, size_t n_parts, struct gpu_verdict *ret_verdict);

/* Woken within ten minutes of its sleep, a workload is given twice the window next time, four times at most; else half of it again. */
unsigned gpu_window_factor(unsigned factor, uint64_t slept_ns);

const char *gpu_state_to_string(enum gpu_state state);         /* "active", ... */
const char *gpu_source_to_string(enum gpu_source_kind source); /* "calls", "vendor", "kernel" */
