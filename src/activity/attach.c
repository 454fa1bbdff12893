/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"
#include "bpf/pins.h"

static const struct attachment {
        const char *pin, *type, *name;
        enum bpf_attach_type attach;
        size_t program; /* in the skeleton's programs */
} attachments[] = {
#define PROGRAM(field) offsetof(struct activity_bpf, progs.field)
        { "sock_ops", "sock_ops", "cgroup/sock_ops", BPF_CGROUP_SOCK_OPS, PROGRAM(activity_sock_ops) },
        { "ingress", "cgroup_skb", "cgroup/ingress", BPF_CGROUP_INET_INGRESS, PROGRAM(activity_ingress) },
        { "egress", "cgroup_skb", "cgroup/egress", BPF_CGROUP_INET_EGRESS, PROGRAM(activity_egress) },
        { "bind4", "cgroup_sock", "cgroup/post_bind4", BPF_CGROUP_INET4_POST_BIND, PROGRAM(activity_bind4) },
        { "bind6", "cgroup_sock", "cgroup/post_bind6", BPF_CGROUP_INET6_POST_BIND, PROGRAM(activity_bind6) },
#undef PROGRAM
};
static_assert(ELEMENTSOF(attachments) == ACTIVITY_PROGRAMS, "one attachment a program");

const char *attach_name(size_t program)
{
        return attachments[program].name;
}

const char *attach_type_name(size_t program)
{
        return attachments[program].type;
}

struct bpf_program *attach_program(const struct activity *activity, size_t program)
{
        return *(struct bpf_program **)((char *)activity->programs + attachments[program].program);
}

static bool links_cgroup(int link_fd, uint64_t cgroup)
{
        struct bpf_link_info info = {};
        __u32 length = sizeof(info);

        return bpf_obj_get_info_by_fd(link_fd, &info, &length) == 0 && info.type == BPF_LINK_TYPE_CGROUP &&
               info.cgroup.cgroup_id == cgroup;
}

/* The earlier daemon's link goes on with our program, without a packet in between. Only where the maps are the same: the kernel has
 * tied the link to its cgroup storage. */
static int adopt_link(struct workload *workload, const struct attachment *attachment, int program_fd)
{
        _cleanup_(close_fdp) int fd = pin_open(workload->directory, attachment->pin);

        if (fd < 0)
                return fd;
        if (!workload->activity->adopted || !links_cgroup(fd, workload->config.cgroup))
                return -ESTALE;
        if (bpf_link_update(fd, program_fd, NULL) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int attach_one(struct workload *workload, size_t program)
{
        const struct attachment *attachment = &attachments[program];
        int program_fd = bpf_program__fd(attach_program(workload->activity, program));
        _cleanup_(close_fdp) int fd = adopt_link(workload, attachment, program_fd);
        int r;

        if (fd < 0) {
                fd = bpf_link_create(program_fd, workload->cgroup_fd, attachment->attach, NULL);
                if (fd < 0)
                        return -errno;
                r = pin_replace(workload->directory, attachment->pin, fd);
                if (r < 0)
                        return r;
        }
        workload->links[program] = TAKE_FD(fd);
        return 0;
}

int workload_attach(struct workload *workload)
{
        int r;

        r = pins_prepare(workload->directory);
        for (size_t i = 0; r >= 0 && i < ACTIVITY_PROGRAMS; i++)
                r = attach_one(workload, i);
        return r;
}

int pins_remove_all(const char *directory)
{
        int r;

        for (size_t i = 0; i < ACTIVITY_PROGRAMS; i++) {
                r = pin_remove(directory, attachments[i].pin);
                if (r < 0)
                        return r;
        }
        return rmdir(directory) < 0 && errno != ENOENT ? -errno : 0;
}

void workload_detach(struct workload *workload)
{
        pins_remove_all(workload->directory);
        for (size_t i = 0; i < ACTIVITY_PROGRAMS; i++) /* another process may hold the link's fd; it ends here all the same */
                if (workload->links[i] >= 0)
                        bpf_link_detach(workload->links[i]);
}
