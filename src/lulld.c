/* SPDX-License-Identifier: Apache-2.0 */
/* lulld puts idle workloads to sleep and wakes them on their first packet. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "controller/controller.h"
#include "controller/options.h"
#include "standalone/gpu_only.h"
#include "standalone/manager.h"
#include "standalone/options.h"

enum { EXIT_USAGE = 2 };

static int run_manager(const struct options *options)
{
        _cleanup_(manager_freep) struct manager *manager = NULL;
        int r;

        r = manager_new(options, &manager);
        if (r < 0)
                return r;
        return manager_run(manager);
}

/* One machine, and whatever is asked without a role. */
static int main_standalone(int argc, char **argv)
{
        _cleanup_(options_freep) struct options *options = NULL;
        int r = 0;

        if (options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        switch (options->role) {
        case ROLE_STANDALONE:
                r = run_manager(options);
                break;
        case ROLE_GPU:
                r = gpu_only_run(options);
                break;
        case ROLE_CHECK:
                r = manager_check(options);
                break;
        case ROLE_VERSION:
                puts("lulld " LULL_VERSION);
                break;
        case ROLE_HELP:
                options_help();
                break;
        }
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int main_agent(int argc, char **argv)
{
        _cleanup_(agent_options_freep) struct agent_options *options = NULL;
        _cleanup_(agent_freep) struct agent *agent = NULL;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                agent_options_help();
                return EXIT_SUCCESS;
        }
        if (agent_options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        if (agent_new(options, &agent) < 0)
                return EXIT_FAILURE;
        return agent_run(agent) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int main_controller(int argc, char **argv)
{
        _cleanup_(controller_options_freep) struct controller_options *options = NULL;
        _cleanup_(controller_freep) struct controller *controller = NULL;

        if (argc == 2 && strcmp(argv[1], "--help") == 0) {
                controller_options_help();
                return EXIT_SUCCESS;
        }
        if (controller_options_parse(argc, argv, &options) < 0)
                return EXIT_USAGE;
        if (controller_new(options, &controller) < 0)
                return EXIT_FAILURE;
        return controller_run(controller) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The roles of a cluster; each is given the command line from its own name on. */
static const struct {
        const char *name;
        int (*main)(int argc, char **argv);
} roles[] = {
        { "agent", main_agent },
        { "controller", main_controller },
};

int main(int argc, char **argv)
{
        for (size_t i = 0; argc > 1 && i < ELEMENTSOF(roles); i++)
                if (strcmp(argv[1], roles[i].name) == 0)
                        return roles[i].main(argc - 1, argv + 1);
        return main_standalone(argc, argv);
}
