/* SPDX-License-Identifier: Apache-2.0 */
/* Netfilter links by hand: libbpf 1.1 and its kernel headers do not know them yet.
 *
 * Values from the kernel's include/uapi/linux/bpf.h, 6.4 and later.
 */
#pragma once

#include <stdint.h>

enum {
        NETFILTER_PROGRAM = 32,     /* BPF_PROG_TYPE_NETFILTER */
        NETFILTER_ATTACH = 45,      /* BPF_NETFILTER */
        NETFILTER_DEFRAG = 1U << 0, /* BPF_F_NETFILTER_IP_DEFRAG, 6.6 and later */
};

struct netfilter_hook {
        uint32_t family; /* NFPROTO_… */
        uint32_t number; /* NF_INET_… */
        int32_t priority;
        uint32_t flags;
};

/* Attaches in the caller's network namespace. Returns the link's fd, -EBUSY where a BPF program with the same priority is already on
 * that hook (the kernel wants their order defined), or -errno. */
int netfilter_link_create(int program_fd, const struct netfilter_hook *hook);
