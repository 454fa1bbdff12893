/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of "lulld agent". */
#pragma once

#include <stdbool.h>

#include "base/macros.h"
#include "gpu/verdict.h"

struct agent_options {
        char *node;       /* --node; default $NODE_NAME */
        char *namespace;  /* --namespace: lull's own, where its Leases are; default $POD_NAMESPACE, then "lull-system" */
        char *kubeconfig; /* --kubeconfig; NULL: in-cluster, then as kubectl finds it */
        char *bpffs;      /* --bpffs: directory for pins; default /sys/fs/bpf/lull */
        char *cgroup;     /* --cgroup: the cgroup2 directory below which the node's pods are; default: the mount's root */
        char *kubelet;    /* --kubelet-cgroup: whose connections are probes; NULL: that of the process called "kubelet" */
        char *run_dir;    /* --run-dir: control socket; default /run/lull */
        char *metrics;    /* --metrics: "address:port", or NULL for none; default 0.0.0.0:9474 */
        char *release;    /* --release: "auto", or "wait" to always leave flows to the data plane (for tests and odd data planes) */
        bool gpu;         /* --gpu: watch the pods' GPUs; needs CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH */
        struct gpu_rules gpu_rules; /* --gpu-unused-after, --gpu-stuck-after; all else is the policies' */
        bool masquerade_all;        /* --masquerade-all: kube-proxy runs with it */
        char *cluster_cidr; /* --cluster-cidr: kube-proxy's, comma-separated; sources outside of it are masqueraded; NULL: none is */
};

int agent_options_parse(int argc, char **argv, struct agent_options **ret_options); /* as options_parse() */
struct agent_options *agent_options_free(struct agent_options *options);
DEFINE_CLEANUP(struct agent_options, agent_options_free)
void agent_options_help(void);
