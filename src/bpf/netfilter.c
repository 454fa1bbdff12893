/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/netfilter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

/* union bpf_attr, as far as BPF_LINK_CREATE of a netfilter link reads it. */
struct link_create {
        uint32_t program_fd;
        uint32_t target_fd;
        uint32_t attach_type;
        uint32_t flags;
        struct netfilter_hook netfilter;
};

int netfilter_link_create(int program_fd, const struct netfilter_hook *hook)
{
        struct link_create attributes = { .program_fd = program_fd, .attach_type = NETFILTER_ATTACH, .netfilter = *hook };
        int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));

        return fd < 0 ? -errno : fd;
}
