/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/client.h"

static int metrics_show(struct cli *cli, char **arguments)
{
        _cleanup_(freep) char *text = NULL;
        int r;

        r = client_get_text(cli, "/metrics", &text);
        if (r < 0)
                return r;
        fputs(text, stdout);
        return 0;
}

static const struct command commands[] = {
        { .name = "show", .help = "all metrics in the Prometheus text format", .text_only = true, .run = metrics_show },
        { .name = NULL },
};

const struct object object_metrics = {
        .name = "metrics", .help = "the daemon's Prometheus metrics", .commands = commands, .has_default = true
};
