/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of "lulld controller". */
#pragma once

#include <stdint.h>

#include "base/macros.h"

struct controller_options {
        char *identity;                       /* --identity; default $POD_NAME, then host name and a random part */
        char *namespace;                      /* --namespace: lull's own; default $POD_NAMESPACE, then "lull-system" */
        char *kubeconfig;                     /* --kubeconfig; NULL: in-cluster, then as kubectl finds it */
        char *run_dir;                        /* --run-dir: control socket; default /run/lull */
        char *metrics;                        /* --metrics: "address:port", or NULL for none; default 0.0.0.0:9474 */
        uint16_t parking_first, parking_last; /* --parking-ports FIRST-LAST; default 42000-42999 */
};

int controller_options_parse(int argc, char **argv, struct controller_options **ret_options); /* as options_parse() */
struct controller_options *controller_options_free(struct controller_options *options);
DEFINE_CLEANUP(struct controller_options, controller_options_free)
void controller_options_help(void);
