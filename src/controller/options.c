/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/options.h"

#include <getopt.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "kube/chance.h"

static const char usage[] =
        "Usage: lulld controller [OPTIONS]\n"
        "\n"
        "Scales the targets of all ScaleToZero objects of a cluster to zero and back. Run two replicas.\n"
        "\n"
        "  --kubeconfig FILE            where the API server is (default: in-cluster, then as kubectl finds it)\n"
        "  --namespace NAME             lull's own, with its Leases (default: $POD_NAMESPACE, then lull-system)\n"
        "  --identity NAME              of this replica (default: $POD_NAME, then the host's and a random part)\n"
        "  --run-dir DIR                control socket (default: /run/lull)\n"
        "  --metrics ADDRESS:PORT|none  Prometheus metrics over HTTP (default: 0.0.0.0:9474)\n"
        "  --parking-ports FIRST-LAST   of the nodes, for clients that dial endpoints (default: 42000-42999)\n";

enum { IDENTITY_MAX = 128, HOST_NAME_BYTES = 65 };

enum long_option {
        OPTION_KUBECONFIG = 256,
        OPTION_NAMESPACE,
        OPTION_IDENTITY,
        OPTION_RUN_DIR,
        OPTION_METRICS,
        OPTION_PARKING_PORTS,
};

static const struct option long_options[] = {
        { "kubeconfig", required_argument, NULL, OPTION_KUBECONFIG },
        { "namespace", required_argument, NULL, OPTION_NAMESPACE },
        { "identity", required_argument, NULL, OPTION_IDENTITY },
        { "run-dir", required_argument, NULL, OPTION_RUN_DIR },
        { "metrics", required_argument, NULL, OPTION_METRICS },
        { "parking-ports", required_argument, NULL, OPTION_PARKING_PORTS },
        { NULL, 0, NULL, 0 },
};

void controller_options_help(void)
{
        fputs(usage, stdout);
}

struct controller_options *controller_options_free(struct controller_options *options)
{
        if (!options)
                return NULL;
        free(options->identity);
        free(options->namespace);
        free(options->kubeconfig);
        free(options->run_dir);
        free(options->metrics);
        free(options);
        return NULL;
}

static int parking_ports_parse(struct controller_options *options, const char *text)
{
        unsigned first, last;
        int end = 0;

        if (sscanf(text, "%5u-%5u%n", &first, &last, &end) != 2 || text[end] || first < 1 || last < first || last > UINT16_MAX) {
                log_error("--parking-ports: \"%s\" is not a range of ports; write it like 42000-42999", text);
                return -EINVAL;
        }
        options->parking_first = (uint16_t)first;
        options->parking_last = (uint16_t)last;
        return 0;
}

static int option_apply(struct controller_options *options, int option)
{
        switch (option) {
        case OPTION_KUBECONFIG:
                return text_replace(&options->kubeconfig, optarg);
        case OPTION_NAMESPACE:
                return text_replace(&options->namespace, optarg);
        case OPTION_IDENTITY:
                return text_replace(&options->identity, optarg);
        case OPTION_RUN_DIR:
                return text_replace(&options->run_dir, optarg);
        case OPTION_METRICS:
                return text_replace(&options->metrics, optarg);
        case OPTION_PARKING_PORTS:
                return parking_ports_parse(options, optarg);
        default:
                log_error("see \"lulld controller --help\"");
                return -EINVAL;
        }
}

/* Events are named after it, so it has to be a name as DNS has them; a replica that was started again is another one. */
static int identity_default(struct controller_options *options)
{
        const char *pod = getenv("POD_NAME");
        char host[HOST_NAME_BYTES] = "";

        if (pod && *pod)
                return text_replace(&options->identity, pod);
        if (gethostname(host, sizeof(host) - 1) < 0)
                return -errno;
        for (char *at = host; *at; at++)
                if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", *at))
                        *at = '-';
        if (asprintf(&options->identity, "lulld-%.64s-%08x", host, (unsigned)(kube_chance() * 0xffffffff)) < 0) {
                options->identity = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int defaults_fill(struct controller_options *options)
{
        const char *namespace = getenv("POD_NAMESPACE");
        int r = 0;

        if (!options->identity)
                r = identity_default(options);
        if (r >= 0 && !options->namespace)
                r = text_replace(&options->namespace, namespace && *namespace ? namespace : "lull-system");
        if (r >= 0 && !options->run_dir)
                r = text_replace(&options->run_dir, "/run/lull");
        if (r >= 0 && !options->metrics)
                r = text_replace(&options->metrics, "0.0.0.0:9474");
        if (r < 0)
                return r;
        if (options->metrics && strcmp(options->metrics, "none") == 0) {
                free(options->metrics);
                options->metrics = NULL;
        }
        if (options->identity && strlen(options->identity) > IDENTITY_MAX) {
                log_error("--identity: \"%s\" is longer than %d bytes", options->identity, IDENTITY_MAX);
                return -EINVAL;
        }
        return 0;
}

int controller_options_parse(int argc, char **argv, struct controller_options **ret_options)
{
        _cleanup_(controller_options_freep) struct controller_options *options = calloc(1, sizeof(*options));
        int option, r;

        if (!options)
                return -ENOMEM;
        options->parking_first = 42000;
        options->parking_last = 42999;

        while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
                r = option_apply(options, option);
                if (r < 0)
                        return r;
        }
        if (optind < argc) {
                log_error("\"%s\": lulld controller takes options only; policies are ScaleToZero objects of the cluster",
                          argv[optind]);
                return -EINVAL;
        }
        r = defaults_fill(options);
        if (r < 0)
                return r;

        *ret_options = TAKE_PTR(options);
        return 0;
}
