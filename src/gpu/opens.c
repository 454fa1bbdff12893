/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/opens.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "bpf/describe.h"
#include "bpf/gpu_opens.skel.h"

struct gpu_opens {
        gpu_opened opened;
        void *userdata;
        struct gpu_opens_bpf *programs;
        struct ring_buffer *ring;
        sd_event_source *source;
        struct gpu_majors majors;
};

static int on_event(void *userdata, void *data, size_t size)
{
        const struct gpu_open_event *event = data;
        struct gpu_opens *opens = userdata;

        if (size >= sizeof(*event))
                opens->opened(event->cgroup, opens->userdata);
        return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct gpu_opens *opens = userdata;

        ring_buffer__consume(opens->ring);
        return 0;
}

static int opens_start(struct gpu_opens *opens, sd_event *event)
{
        opens->programs = gpu_opens_bpf__open_and_load();
        if (!opens->programs)
                return -errno;
        opens->ring = ring_buffer__new(bpf_map__fd(opens->programs->maps.gpu_open_events), on_event, opens, NULL);
        if (!opens->ring)
                return -errno;
        return sd_event_add_io(event, &opens->source, ring_buffer__epoll_fd(opens->ring), EPOLLIN, on_ring, opens);
}

int gpu_opens_new(sd_event *event, gpu_opened opened, void *userdata, struct gpu_opens **ret_opens)
{
        _cleanup_(gpu_opens_freep) struct gpu_opens *opens = calloc(1, sizeof(*opens));
        int r;

        if (!opens)
                return -ENOMEM;
        opens->opened = opened;
        opens->userdata = userdata;
        libbpf_log_to_debug();
        r = opens_start(opens, event);
        if (r < 0)
                return r;
        *ret_opens = TAKE_PTR(opens);
        return 0;
}

struct gpu_opens *gpu_opens_free(struct gpu_opens *opens)
{
        if (!opens)
                return NULL;

        sd_event_source_disable_unref(opens->source);
        ring_buffer__free(opens->ring);
        gpu_opens_bpf__destroy(opens->programs);
        free(opens);
        return NULL;
}

/* Two may have exchanged their numbers: all that were there go first. */
int gpu_opens_set_majors(struct gpu_opens *opens, const struct gpu_majors *majors)
{
        const unsigned before[] = { opens->majors.nvidia, opens->majors.nvidia_uvm, opens->majors.nvidia_caps, opens->majors.drm,
                                    opens->majors.kfd };
        const unsigned now[] = { majors->nvidia, majors->nvidia_uvm, majors->nvidia_caps, majors->drm, majors->kfd };
        int fd = bpf_map__fd(opens->programs->maps.gpu_majors);

        static_assert(ELEMENTSOF(now) <= GPU_OPEN_MAJORS_MAX, "all have room");
        for (size_t i = 0; i < ELEMENTSOF(before); i++)
                if (before[i])
                        bpf_map_delete_elem(fd, &before[i]);
        for (size_t i = 0; i < ELEMENTSOF(now); i++)
                if (now[i] && bpf_map_update_elem(fd, &now[i], &(uint8_t){ 1 }, BPF_ANY) < 0)
                        return -errno;
        opens->majors = *majors;
        return 0;
}

int gpu_opens_attach(const struct gpu_opens *opens, const char *cgroup)
{
        _cleanup_(close_fdp) int cgroup_fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd;

        if (cgroup_fd < 0)
                return -errno;
        fd = bpf_link_create(bpf_program__fd(opens->programs->progs.gpu_device), cgroup_fd, BPF_CGROUP_DEVICE, NULL);
        return fd < 0 ? -errno : fd;
}

uint64_t gpu_opens_seen(const struct gpu_opens *opens)
{
        return opens->programs->bss->opens;
}

uint64_t gpu_opens_lost(const struct gpu_opens *opens)
{
        return opens->programs->bss->lost_opens;
}
