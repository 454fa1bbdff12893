/* SPDX-License-Identifier: Apache-2.0 */
/* lulld puts idle workloads to sleep and wakes them on their first packet. */
#include <stdio.h>

#include "standalone/manager.h"
#include "standalone/options.h"

enum { EXIT_USAGE = 2 };

static int run_standalone(const struct options *options)
{
        _cleanup_(manager_freep) struct manager *manager = NULL;
        int r;

        r = manager_new(options, &manager);
        if (r < 0)
                return r;
        return manager_run(manager);
}

static int run(const struct options *options)
{
        switch (options->role) {
        case ROLE_STANDALONE:
                return run_standalone(options);
        case ROLE_CHECK:
                return manager_check(options);
        case ROLE_VERSION:
                puts("lulld " LULL_VERSION);
                return 0;
        case ROLE_HELP:
                options_help();
                return 0;
        }
        return -EINVAL;
}

int main(int argc, char **argv)
{
        _cleanup_(options_freep) struct options *options = NULL;

        if (options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        return run(options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
