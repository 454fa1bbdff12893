// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Tells of processes that open a GPU: a program on cgroups that is asked whether a device may be used, and always says that it may. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "gpu_opens_wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/uapi/linux/bpf.h */
struct bpf_cgroup_dev_ctx {
        __u32 access_type; /* kinds of access << 16 | kind of device */
        __u32 major;
        __u32 minor;
};

enum {
        BPF_DEVCG_DEV_CHAR = 1 << 1,
        BPF_DEVCG_ACC_READ = 1 << 1,
        BPF_DEVCG_ACC_WRITE = 1 << 2,
        ALLOW = 1,
};

/* Major numbers of GPU drivers. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, GPU_OPEN_MAJORS_MAX);
        __type(key, __u32);
        __type(value, __u8);
} gpu_majors SEC(".maps");

/* Cgroup id → when its opens were told last. */
struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, GPU_OPEN_CGROUPS_MAX);
        __type(key, __u64);
        __type(value, __u64);
} gpu_opens_told SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, GPU_OPEN_RING_BYTES);
} gpu_open_events SEC(".maps");

__u64 opens, lost_opens;

static __always_inline bool opens_gpu(const struct bpf_cgroup_dev_ctx *ctx)
{
        __u32 access = ctx->access_type, major = ctx->major;

        if ((access & 0xffff) != BPF_DEVCG_DEV_CHAR || !(access >> 16 & (BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE)))
                return false;
        return bpf_map_lookup_elem(&gpu_majors, &major);
}

/* What is not told because the ring is full is told by the cgroup's next open. */
static __always_inline void tell(__u64 cgroup, __u64 now)
{
        struct gpu_open_event *event = bpf_ringbuf_reserve(&gpu_open_events, sizeof(*event), 0);

        if (!event) {
                __sync_fetch_and_add(&lost_opens, 1);
                return;
        }
        event->cgroup = cgroup;
        bpf_ringbuf_submit(event, 0);
        bpf_map_update_elem(&gpu_opens_told, &cgroup, &now, BPF_ANY);
}

SEC("cgroup/dev")
int gpu_device(struct bpf_cgroup_dev_ctx *ctx)
{
        __u64 cgroup, now;
        const __u64 *told;

        if (!opens_gpu(ctx))
                return ALLOW;
        cgroup = bpf_get_current_cgroup_id();
        now = bpf_ktime_get_ns();
        __sync_fetch_and_add(&opens, 1);
        told = bpf_map_lookup_elem(&gpu_opens_told, &cgroup);
        if (!told || now - *told >= GPU_OPEN_INTERVAL_NS)
                tell(cgroup, now);
        return ALLOW;
}
