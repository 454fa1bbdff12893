/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The connections that the kubelet makes: a program on its cgroup, so that the pods' own can tell its probes from clients. */
#include "activity_maps.bpf.h"
#include "activity_sock_ops.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("sockops")
int activity_probe(struct bpf_sock_ops *ops)
{
        struct activity_connect_key key = {};
        __u8 nothing = 0;

        if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
                sock_ops_tuple(ops, &key.tuple);
                bpf_map_update_elem(&activity_probes, &key, &nothing, BPF_ANY);
                bpf_sock_ops_cb_flags_set(ops, (int)(ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG));
        } else if (ops->op == BPF_SOCK_OPS_STATE_CB && ops->args[1] == BPF_TCP_CLOSE) {
                /* The next user of the same local port may be somebody else. */
                sock_ops_tuple(ops, &key.tuple);
                bpf_map_delete_elem(&activity_probes, &key);
        }
        return 1;
}
