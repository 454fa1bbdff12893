/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone/options.h"

#include <getopt.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/log.h"
#include "base/text.h"
#include "serve/daemon.h"

static const char usage[] =
        "Usage: lulld standalone [OPTIONS] [POLICY...]\n"
        "       lulld gpu [OPTIONS]\n"
        "       lulld --check POLICY...\n"
        "       lulld --version | --help\n"
        "\n"
        "Puts idle workloads to sleep and wakes them on their first packet.\n"
        "POLICY is a YAML file or a directory of them (default: /etc/lull/policies.d).\n"
        "\"lulld gpu\" has no policies: it only watches which processes use a GPU, and which waste one.\n"
        "\n"
        "  --bpffs DIR                  pinned BPF objects (default: /sys/fs/bpf/lull)\n"
        "  --cgroup DIR                 parent of the targets' cgroups (default: lull below the cgroup2 mount);\n"
        "                               with \"lulld gpu\" processes below it are watched (default: all)\n"
        "  --run-dir DIR                control socket and state (default: /run/lull)\n"
        "  --log-dir DIR                append the targets' output to DIR/NAME.log (default: the journal, or\n"
        "                               /var/log/lull where there is none)\n"
        "  --metrics ADDRESS:PORT|none  Prometheus metrics over HTTP (default: 127.0.0.1:9474)\n"
        "  --idle-after DURATION        how long GPUs must be idle to count as that, for \"lulld gpu\" (default: 30m)\n"
        "  --stuck-after DURATION       how long they must be busy without any work to count as stuck (default: 10m)\n"
        "  --check                      validate the policies, print what is wrong, and exit\n"
        "\n"
        "SIGHUP reads the policies again. SIGTERM stops the daemon and leaves the workloads as they are.\n";

static const char default_policies[] = "/etc/lull/policies.d";
static const char journal_socket[] = "/run/systemd/journal/stdout";

enum long_option {
        OPTION_BPFFS = 256,
        OPTION_CGROUP,
        OPTION_RUN_DIR,
        OPTION_LOG_DIR,
        OPTION_METRICS,
        OPTION_IDLE_AFTER,
        OPTION_STUCK_AFTER,
        OPTION_CHECK,
};

static const struct option long_options[] = {
        { "bpffs", required_argument, NULL, OPTION_BPFFS },
        { "cgroup", required_argument, NULL, OPTION_CGROUP },
        { "run-dir", required_argument, NULL, OPTION_RUN_DIR },
        { "log-dir", required_argument, NULL, OPTION_LOG_DIR },
        { "metrics", required_argument, NULL, OPTION_METRICS },
        { "idle-after", required_argument, NULL, OPTION_IDLE_AFTER },
        { "stuck-after", required_argument, NULL, OPTION_STUCK_AFTER },
        { "check", no_argument, NULL, OPTION_CHECK },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
};

void options_help(void)
{
        fputs(usage, stdout);
}

struct options *options_free(struct options *options)
{
        if (!options)
                return NULL;

        free(options->bpffs);
        free(options->cgroup);
        free(options->run_dir);
        free(options->log_dir);
        free(options->metrics);
        free(options->paths);
        free(options);
        return NULL;
}

static int option_apply(struct options *options, int option)
{
        switch (option) {
        case OPTION_BPFFS:
                return text_replace(&options->bpffs, optarg);
        case OPTION_CGROUP:
                return text_replace(&options->cgroup, optarg);
        case OPTION_RUN_DIR:
                return text_replace(&options->run_dir, optarg);
        case OPTION_LOG_DIR:
                return text_replace(&options->log_dir, optarg);
        case OPTION_METRICS:
                return text_replace(&options->metrics, optarg);
        case OPTION_IDLE_AFTER:
                return daemon_parse_duration("idle-after", optarg, &options->gpu_rules.window_ns);
        case OPTION_STUCK_AFTER:
                return daemon_parse_duration("stuck-after", optarg, &options->gpu_rules.stuck_after_ns);
        case OPTION_CHECK:
                options->role = ROLE_CHECK;
                return 0;
        case 'V':
                options->role = ROLE_VERSION;
                return 0;
        case 'h':
                options->role = ROLE_HELP;
                return 0;
        default:
                log_error("see \"lulld --help\"");
                return -EINVAL;
        }
}

/* Says which of the roles the first argument without a dash names. */
static int role_parse(struct options *options, char **words, size_t n_words, size_t *ret_used)
{
        *ret_used = 0;
        if (options->role != ROLE_STANDALONE)
                return 0;

        if (n_words == 0) {
                log_error("which role? write \"lulld standalone\", or see \"lulld --help\"");
                return -EINVAL;
        }
        if (strcmp(words[0], "gpu") == 0) {
                if (n_words > 1) {
                        log_error("\"%s\": \"lulld gpu\" has no policies; leave it out", words[1]);
                        return -EINVAL;
                }
                options->role = ROLE_GPU;
        } else if (strcmp(words[0], "standalone") != 0) {
                log_error("\"%s\" is not a role; write \"lulld standalone\" or \"lulld gpu\", or see \"lulld --help\"", words[0]);
                return -EINVAL;
        }
        *ret_used = 1;
        return 0;
}

static int paths_take(struct options *options, char **words, size_t n_words)
{
        options->paths = calloc(MAX(n_words, (size_t)1), sizeof(*options->paths));
        if (!options->paths)
                return -ENOMEM;

        for (size_t i = 0; i < n_words; i++)
                options->paths[options->n_paths++] = words[i];

        if (n_words == 0 && options->role == ROLE_CHECK) {
                log_error("--check: no file named; write \"lulld --check FILE...\"");
                return -EINVAL;
        }
        if (n_words == 0)
                options->paths[options->n_paths++] = default_policies;
        return 0;
}

static int defaults_fill(struct options *options)
{
        int r;

        if (options->gpu_rules.window_ns && options->role != ROLE_GPU) {
                log_error("--idle-after is for \"lulld gpu\"; a policy has idle.gpu.after");
                return -EINVAL;
        }
        if (!options->gpu_rules.window_ns)
                options->gpu_rules.window_ns = GPU_IDLE_AFTER_NS;
        options->gpu_rules.factor = 1;
        if (!options->bpffs && (r = text_replace(&options->bpffs, "/sys/fs/bpf/lull")) < 0)
                return r;
        if (!options->run_dir && (r = text_replace(&options->run_dir, "/run/lull")) < 0)
                return r;
        if (!options->log_dir && access(journal_socket, F_OK) < 0 && (r = text_replace(&options->log_dir, "/var/log/lull")) < 0)
                return r;

        if (!options->metrics && (r = text_replace(&options->metrics, "127.0.0.1:9474")) < 0)
                return r;
        if (strcmp(options->metrics, "none") == 0) {
                free(options->metrics);
                options->metrics = NULL;
        }

        if (!options->cgroup && options->role == ROLE_STANDALONE) {
                _cleanup_(freep) char *root = NULL;

                r = cgroup_find_root(&root);
                if (r < 0) {
                        log_error("no cgroup2 hierarchy is mounted; mount one, or name a directory on it with --cgroup");
                        return r;
                }
                if (asprintf(&options->cgroup, "%s/lull", root) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int options_parse(int argc, char **argv, struct options **ret_options)
{
        _cleanup_(options_freep) struct options *options = calloc(1, sizeof(*options));
        int option, r;
        size_t used;

        if (!options)
                return -ENOMEM;

        while ((option = getopt_long(argc, argv, "hV", long_options, NULL)) >= 0) {
                r = option_apply(options, option);
                if (r < 0)
                        return r;
        }

        r = role_parse(options, argv + optind, (size_t)(argc - optind), &used);
        if (r < 0)
                return r;
        if (options->role == ROLE_STANDALONE || options->role == ROLE_CHECK) {
                r = paths_take(options, argv + optind + used, (size_t)(argc - optind) - used);
                if (r < 0)
                        return r;
        }
        if (options->role == ROLE_STANDALONE || options->role == ROLE_GPU) {
                r = defaults_fill(options);
                if (r < 0)
                        return r;
        }

        *ret_options = TAKE_PTR(options);
        return 0;
}
