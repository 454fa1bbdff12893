/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/options.h"

#include <getopt.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/text.h"
#include "serve/daemon.h"

static const char usage[] =
        "Usage: lulld agent [OPTIONS]\n"
        "\n"
        "The part of lull on each node of a Kubernetes cluster: holds first packets to sleeping Services and says which of the\n"
        "node's workloads are idle.\n"
        "\n"
        "  --node NAME                  this node (default: $NODE_NAME)\n"
        "  --namespace NAME             lull's own, where its Leases are (default: $POD_NAMESPACE, then lull-system)\n"
        "  --kubeconfig FILE            how to reach the API server (default: in-cluster, then as kubectl finds it)\n"
        "  --bpffs DIR                  pinned BPF objects (default: /sys/fs/bpf/lull)\n"
        "  --cgroup DIR                 cgroup2 directory below which the node's pods are (default: the mount's root)\n"
        "  --kubelet-cgroup DIR         the kubelet's, whose probes count for nothing (default: found by its name)\n"
        "  --run-dir DIR                control socket (default: /run/lull)\n"
        "  --metrics ADDRESS:PORT|none  Prometheus metrics over HTTP (default: 0.0.0.0:9474)\n"
        "  --release auto|wait          wait: held flows always wait for the data plane (default: auto)\n"
        "  --gpu                        watch what pods do with their GPUs; without it those that request one stay awake\n"
        "  --gpu-unused-after DURATION  how long an allocated GPU must not have been opened to be unused (default: 30m)\n"
        "  --gpu-stuck-after DURATION   how long one must be busy without any work to be stuck (default: 10m)\n"
        "  --masquerade-all             kube-proxy runs with --masquerade-all\n"
        "  --cluster-cidr LIST          kube-proxy's --cluster-cidr, where it has one\n"
        "\n"
        "SIGTERM stops the agent; first packets are held for the next one.\n";

enum long_option {
        OPTION_NODE = 256,
        OPTION_NAMESPACE,
        OPTION_KUBECONFIG,
        OPTION_BPFFS,
        OPTION_CGROUP,
        OPTION_KUBELET_CGROUP,
        OPTION_RUN_DIR,
        OPTION_METRICS,
        OPTION_RELEASE,
        OPTION_GPU,
        OPTION_GPU_UNUSED_AFTER,
        OPTION_GPU_STUCK_AFTER,
        OPTION_MASQUERADE_ALL,
        OPTION_CLUSTER_CIDR,
};

static const struct option long_options[] = {
        { "node", required_argument, NULL, OPTION_NODE },
        { "namespace", required_argument, NULL, OPTION_NAMESPACE },
        { "kubeconfig", required_argument, NULL, OPTION_KUBECONFIG },
        { "bpffs", required_argument, NULL, OPTION_BPFFS },
        { "cgroup", required_argument, NULL, OPTION_CGROUP },
        { "kubelet-cgroup", required_argument, NULL, OPTION_KUBELET_CGROUP },
        { "run-dir", required_argument, NULL, OPTION_RUN_DIR },
        { "metrics", required_argument, NULL, OPTION_METRICS },
        { "release", required_argument, NULL, OPTION_RELEASE },
        { "gpu", no_argument, NULL, OPTION_GPU },
        { "gpu-unused-after", required_argument, NULL, OPTION_GPU_UNUSED_AFTER },
        { "gpu-stuck-after", required_argument, NULL, OPTION_GPU_STUCK_AFTER },
        { "masquerade-all", no_argument, NULL, OPTION_MASQUERADE_ALL },
        { "cluster-cidr", required_argument, NULL, OPTION_CLUSTER_CIDR },
        { NULL, 0, NULL, 0 },
};

void agent_options_help(void)
{
        fputs(usage, stdout);
}

struct agent_options *agent_options_free(struct agent_options *options)
{
        if (!options)
                return NULL;
        free(options->node);
        free(options->namespace);
        free(options->kubeconfig);
        free(options->bpffs);
        free(options->cgroup);
        free(options->kubelet);
        free(options->run_dir);
        free(options->metrics);
        free(options->release);
        free(options->cluster_cidr);
        free(options);
        return NULL;
}

/* Where the option's text goes, or NULL for one without. */
static char **text_of(struct agent_options *options, int option)
{
        switch (option) {
        case OPTION_NODE:
                return &options->node;
        case OPTION_NAMESPACE:
                return &options->namespace;
        case OPTION_KUBECONFIG:
                return &options->kubeconfig;
        case OPTION_BPFFS:
                return &options->bpffs;
        case OPTION_CGROUP:
                return &options->cgroup;
        case OPTION_KUBELET_CGROUP:
                return &options->kubelet;
        case OPTION_RUN_DIR:
                return &options->run_dir;
        case OPTION_METRICS:
                return &options->metrics;
        case OPTION_RELEASE:
                return &options->release;
        case OPTION_CLUSTER_CIDR:
                return &options->cluster_cidr;
        default:
                return NULL;
        }
}

static int option_apply(struct agent_options *options, int option)
{
        char **text = text_of(options, option);

        if (text)
                return text_replace(text, optarg);
        switch (option) {
        case OPTION_GPU:
                options->gpu = true;
                return 0;
        case OPTION_GPU_UNUSED_AFTER:
                return daemon_parse_duration("gpu-unused-after", optarg, &options->gpu_rules.unused_after_ns);
        case OPTION_GPU_STUCK_AFTER:
                return daemon_parse_duration("gpu-stuck-after", optarg, &options->gpu_rules.stuck_after_ns);
        case OPTION_MASQUERADE_ALL:
                options->masquerade_all = true;
                return 0;
        default:
                log_error("see \"lulld agent --help\"");
                return -EINVAL;
        }
}

/* The first of what the environment and the table say, unless it was given. */
static int fill(char **text, const char *variable, const char *otherwise)
{
        const char *value = variable ? getenv(variable) : NULL;

        if (*text)
                return 0;
        if (!value || !*value)
                value = otherwise;
        return value ? text_replace(text, value) : 0;
}

static int defaults_fill(struct agent_options *options)
{
        int r = fill(&options->node, "NODE_NAME", NULL);

        if (r >= 0)
                r = fill(&options->namespace, "POD_NAMESPACE", "lull-system");
        if (r >= 0)
                r = fill(&options->bpffs, NULL, "/sys/fs/bpf/lull");
        if (r >= 0)
                r = fill(&options->run_dir, NULL, "/run/lull");
        if (r >= 0)
                r = fill(&options->metrics, NULL, "0.0.0.0:9474");
        if (r >= 0)
                r = fill(&options->release, NULL, "auto");
        if (r < 0)
                return r;
        if (strcmp(options->metrics, "none") == 0) {
                free(options->metrics);
                options->metrics = NULL;
        }
        if (options->cgroup)
                return 0;
        r = cgroup_find_root(&options->cgroup);
        if (r < 0)
                log_error("no cgroup2 hierarchy is mounted; mount one, or name a directory on it with --cgroup");
        return r;
}

static int check(const struct agent_options *options)
{
        if (!options->node || !*options->node) {
                log_error("--node: which node is this? name it as Kubernetes does, or set NODE_NAME to the pod's spec.nodeName");
                return -EINVAL;
        }
        if (strcmp(options->release, "auto") != 0 && strcmp(options->release, "wait") != 0) {
                log_error("--release: \"%s\" is neither \"auto\" nor \"wait\"", options->release);
                return -EINVAL;
        }
        return 0;
}

int agent_options_parse(int argc, char **argv, struct agent_options **ret_options)
{
        _cleanup_(agent_options_freep) struct agent_options *options = calloc(1, sizeof(*options));
        int option, r;

        if (!options)
                return -ENOMEM;
        while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
                r = option_apply(options, option);
                if (r < 0)
                        return r;
        }
        if (optind < argc) {
                log_error("\"%s\" is not an option; see \"lulld agent --help\"", argv[optind]);
                return -EINVAL;
        }
        r = defaults_fill(options);
        if (r >= 0)
                r = check(options);
        if (r < 0)
                return r;

        *ret_options = TAKE_PTR(options);
        return 0;
}
