/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A connection as sock_ops programs see it. */
#ifndef ACTIVITY_SOCK_OPS_BPF_H
#define ACTIVITY_SOCK_OPS_BPF_H

#include "activity_packet.bpf.h"

static __always_inline void sock_ops_tuple(struct bpf_sock_ops *ops, struct activity_tuple *tuple)
{
        if (ops->family == AF_INET6) {
                __u32 local[4] = { ops->local_ip6[0], ops->local_ip6[1], ops->local_ip6[2], ops->local_ip6[3] };
                __u32 remote[4] = { ops->remote_ip6[0], ops->remote_ip6[1], ops->remote_ip6[2], ops->remote_ip6[3] };

                __builtin_memcpy(tuple->local, local, sizeof(local));
                __builtin_memcpy(tuple->remote, remote, sizeof(remote));
        } else {
                __be32 local = ops->local_ip4, remote = ops->remote_ip4;

                /* Else the compiler makes one load of both branches' last ones, from a computed place, which the kernel does not take. */
                barrier_var(local);
                barrier_var(remote);
                address_from_ipv4(tuple->local, local);
                address_from_ipv4(tuple->remote, remote);
        }
        tuple->local_port = (__u16)ops->local_port;
        tuple->remote_port = (__u16)bpf_ntohl(ops->remote_port);
        tuple->transport = IPPROTO_TCP;
}

#endif
