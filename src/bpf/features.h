/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel can do, found out by trying, never by its version. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum feature {
        FEATURE_BTF,
        FEATURE_RING_BUFFER,
        FEATURE_NETFILTER_LINK,
        FEATURE_NETFILTER_DEFRAG,  /* BPF_F_NETFILTER_IP_DEFRAG */
        FEATURE_DYNPTR_SKB,        /* kfuncs bpf_dynptr_from_skb and bpf_dynptr_slice */
        FEATURE_TEST_RUN_REDIRECT, /* BPF_PROG_TEST_RUN of a tc program */
        FEATURE_CGROUP_SKB,
        FEATURE_SOCK_OPS,
        FEATURE_SOCKET_STORAGE,
        FEATURE_CLONE_INTO_CGROUP,
        FEATURE_CGROUP_DEVICE,
        FEATURE_DRM_SCHED, /* a tracepoint of submitted jobs, which comes with the first driver that needs it */
        FEATURE_MAX,
};

/* Probes one feature. Returns 1, 0 when the kernel lacks it, or -errno when that could not be found out (-EPERM: not allowed to). */
int feature_probe(enum feature feature);
const char *feature_to_string(enum feature feature); /* "netfilter-link" */
json_t *features_json(void);                         /* [{name, available, detail, used_for}], probing all */
