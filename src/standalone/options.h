/* SPDX-License-Identifier: Apache-2.0 */
/* lulld's command line. */
#pragma once

#include <stddef.h>

#include "base/macros.h"
#include "gpu/verdict.h"

enum role {
        ROLE_STANDALONE, /* one machine, no Kubernetes */
        ROLE_GPU,        /* watch GPUs, nothing else */
        ROLE_CHECK,      /* validate policies, nothing else */
        ROLE_VERSION,
        ROLE_HELP,
};

struct options {
        enum role role;
        char *bpffs;                /* directory for pins */
        char *cgroup;               /* directory below which each target gets its own */
        char *run_dir;              /* control socket and state */
        char *log_dir;              /* NULL: the journal */
        char *metrics;              /* "address:port", or NULL for none */
        struct gpu_rules gpu_rules; /* of what "lulld gpu" finds */
        const char **paths;         /* policy files and directories */
        size_t n_paths;
};

/* Reads the command line and fills in the defaults. Returns 0, -EINVAL after saying on stderr what is wrong, or -errno. The strings of
 * @paths are argv's own. */
int options_parse(int argc, char **argv, struct options **ret_options);
struct options *options_free(struct options *options);
DEFINE_CLEANUP(struct options, options_free)

/* The usage, for --help. */
void options_help(void);
