// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Counts what processes ask their GPU driver to do: probes on functions of driver libraries.
 *
 * Probes of calls are attached to one process each, with its workload's watch as cookie. Those of initialisation are on the library,
 * for every process: they run once in a process's life.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "gpu_calls_wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A probe's context, as far as it is read: arch/ARCH/include/uapi/asm/ptrace.h. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
        __u64 others[19];
        __u64 sp;
};
enum { RETURN_ADDRESS_BYTES = 8 }; /* on the stack at the first instruction, and off it after the return */
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
        __u64 others[31];
        __u64 sp;
};
enum { RETURN_ADDRESS_BYTES = 0 };
#else
#error "gpu_calls: no layout of pt_regs for this architecture"
#endif

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
        __uint(max_entries, GPU_WORKLOADS_MAX);
        __type(key, __u64);
        __type(value, struct gpu_counts);
} gpu_counts SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, GPU_WAITS_MAX);
        __type(key, __u64);
        __type(value, struct gpu_wait);
} gpu_waits SEC(".maps");

/* Cgroup ids of workloads. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, GPU_WORKLOADS_MAX);
        __type(key, __u64);
        __type(value, __u8);
} gpu_workloads SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, GPU_RING_BYTES);
} gpu_events SEC(".maps");

__u64 lost_events;

static __always_inline void tell(__u32 kind, __u64 subject, __u64 now)
{
        struct gpu_event *event = bpf_ringbuf_reserve(&gpu_events, sizeof(*event), 0);

        if (!event) {
                __sync_fetch_and_add(&lost_events, 1);
                return;
        }
        event->subject = subject;
        event->when_ns = now;
        event->kind = kind;
        event->process = bpf_get_current_pid_tgid() >> 32;
        bpf_ringbuf_submit(event, 0);
}

static __always_inline struct gpu_counts *counts_of(__u64 watch, __u64 now)
{
        struct gpu_counts *counts = bpf_map_lookup_elem(&gpu_counts, &watch);
        __u64 last;

        if (!counts)
                return NULL;
        last = counts->last_submission_ns > counts->last_wait_ns ? counts->last_submission_ns : counts->last_wait_ns;
        if (now > last && now - last >= GPU_SILENCE_NS)
                tell(GPU_EVENT_CALL, watch, now);
        return counts;
}

/* Atomic though the CPU is this one: a probe can be preempted by another's thread. */
SEC("uprobe")
int gpu_submit(struct pt_regs *ctx)
{
        __u64 now = bpf_ktime_get_ns();
        struct gpu_counts *counts = counts_of(bpf_get_attach_cookie(ctx), now);

        if (!counts)
                return 0;
        counts->last_submission_ns = now;
        __sync_fetch_and_add(&counts->submissions, 1);
        return 0;
}

/* A wait inside a wait changes nothing. One whose frame is gone was left without a return: an exception, a longjmp. */
SEC("uprobe")
int gpu_wait_enter(struct pt_regs *ctx)
{
        struct gpu_wait *outer, wait = { .watch = bpf_get_attach_cookie(ctx), .stack_pointer = ctx->sp };
        __u64 thread = bpf_get_current_pid_tgid();
        struct gpu_counts *counts;

        wait.since_ns = bpf_ktime_get_ns();
        counts = counts_of(wait.watch, wait.since_ns);
        if (!counts)
                return 0;
        counts->last_wait_ns = wait.since_ns;
        __sync_fetch_and_add(&counts->waits, 1);

        outer = bpf_map_lookup_elem(&gpu_waits, &thread);
        if (outer && outer->watch == wait.watch && outer->stack_pointer > wait.stack_pointer)
                return 0;
        if (bpf_map_update_elem(&gpu_waits, &thread, &wait, BPF_ANY) < 0)
                __sync_fetch_and_add(&counts->lost_waits, 1);
        return 0;
}

SEC("uprobe")
int gpu_wait_leave(struct pt_regs *ctx)
{
        __u64 watch = bpf_get_attach_cookie(ctx), thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
        struct gpu_counts *counts = counts_of(watch, now);
        struct gpu_wait *wait;

        if (!counts)
                return 0;
        counts->last_wait_ns = now;
        wait = bpf_map_lookup_elem(&gpu_waits, &thread);
        if (wait && ctx->sp >= wait->stack_pointer + RETURN_ADDRESS_BYTES)
                bpf_map_delete_elem(&gpu_waits, &thread);
        return 0;
}

/* A thread that ends in a wait waits no more. */
SEC("raw_tp/sched_process_exit")
int gpu_thread_exit(void *ctx)
{
        __u64 thread = bpf_get_current_pid_tgid();

        bpf_map_delete_elem(&gpu_waits, &thread);
        return 0;
}

SEC("uprobe")
int gpu_initialise(struct pt_regs *ctx)
{
        for (int level = 0; level < GPU_CGROUP_LEVELS_MAX; level++) {
                __u64 cgroup = bpf_get_current_ancestor_cgroup_id(level);

                if (!cgroup)
                        break;
                if (bpf_map_lookup_elem(&gpu_workloads, &cgroup)) {
                        tell(GPU_EVENT_INITIALISED, cgroup, bpf_ktime_get_ns());
                        break;
                }
        }
        return 0;
}
