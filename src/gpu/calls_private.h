/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of calls: calls.c owns programs and maps, workload.c one cgroup's processes and probes, duty.c when they are on,
 * reading.c what is told. */
#pragma once

#include <sys/queue.h>

#include "bpf/gpu_calls.skel.h"
#include "gpu/calls.h"
#include "gpu/hooks.h"
#include "gpu/libraries.h"
#include "gpu/processes.h"
#include "gpu_calls_wire.h"

enum { GPU_USERS_MAX = 256 }; /* processes of one workload that are probed */

struct gpu_calls {
        sd_event *event;
        struct gpu_calls_callbacks callbacks;
        enum hook_method method;
        struct gpu_calls_bpf *programs;
        struct bpf_link *exit_link;
        struct ring_buffer *ring;
        sd_event_source *ring_source;
        struct detacher *detacher;
        struct libraries *libraries;
        int n_cpus;
        uint64_t last_watch;
        LIST_HEAD(gpu_workloads, gpu_workload) workloads;
        size_t n_workloads;
};

struct use { /* of a library by a process */
        struct library *library;
        struct hook_links submissions, waits; /* none while not probed */
        int error;                            /* of the last attempt to probe */
};

struct process {
        pid_t pid;
        struct process_stamp stamp;
        uint64_t mappings_read_ns;
        struct use uses[PROCESS_LIBRARIES_MAX];
        size_t n_uses;
        int error; /* of the last look at its mappings */
        bool seen; /* in the look that is on */
};

struct call_totals {
        uint64_t submissions, waits, lost_waits;
        uint64_t last_submission_ns, last_wait_ns;
};

enum duty {
        DUTY_OFF,
        DUTY_PROBING,
        DUTY_PAUSED, /* submissions are not probed, nor are waits where waits_off */
};

struct gpu_workload {
        struct gpu_calls *calls;
        LIST_ENTRY(gpu_workload) others;
        void *userdata;
        char *cgroup;
        uint64_t cgroup_id;

        struct process *processes; /* ascending by pid */
        size_t n_processes;
        uint32_t n_users;
        char reason[GPU_REASON_MAX]; /* the last look's first trouble; "" */
        bool gap;                    /* it found somebody who may have called before being probed */

        enum duty duty;
        bool waits_off; /* in this pause */
        uint64_t watch; /* while armed */
        uint64_t covered_since_ns, initialised_ns;

        sd_event_source *timer; /* of the next check */
        uint64_t pause_until_ns;
        uint64_t window_began_ns, window_submissions, window_waits; /* what is checked against */
        uint64_t attach_ns;                                         /* what attaching all probes took */
};

/* workload.c. Looks for processes and libraries, and probes them while the workload is being probed. @began_now is the process whose
 * initialisation has just been seen; 0: none. Returns 0 or -errno. */
int workload_look(struct gpu_workload *workload, pid_t began_now);
int workload_begin_watch(struct gpu_workload *workload); /* from now on calls count, of processes that are probed */
void workload_end_watch(struct gpu_workload *workload);
void workload_unprobe(struct gpu_workload *workload, bool waits_too);
void workload_forget_processes(struct gpu_workload *workload);
size_t workload_slow(const struct gpu_workload *workload); /* libraries with functions where probes are slow */

/* reading.c */
int workload_totals(const struct gpu_workload *workload, struct call_totals *ret_totals); /* since it was armed */
int workload_waiting(const struct gpu_workload *workload, uint32_t *ret_threads);
void workload_forget_waits(const struct gpu_workload *workload);

/* duty.c */
int duty_new(struct gpu_workload *workload);
int duty_start(struct gpu_workload *workload);
void duty_stop(struct gpu_workload *workload);
void duty_called(struct gpu_workload *workload); /* the first call after a silence */
