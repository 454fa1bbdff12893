// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Lets a frame enter through an interface as if it had just arrived there. Never attached: BPF_PROG_TEST_RUN brings the frame, and the
 * interface's index in cb[0]. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int inject_frame(struct __sk_buff *skb)
{
        return bpf_clone_redirect(skb, skb->cb[0], BPF_F_INGRESS);
}
