/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/output.h"

/* The daemon's version is told where a daemon answers; none is no error. */
static int version_show(struct cli *cli, char **arguments)
{
        _cleanup_(json_decrefp) json_t *status = NULL, *versions = NULL;
        const char *daemon = NULL;

        if (client_get(cli, "/v1/status", &status) == 0)
                daemon = json_string_value(json_object_get(status, "version"));

        if (cli->output == OUTPUT_TEXT) {
                printf("lull   %s\nlulld  %s\n", LULL_VERSION, daemon ? daemon : "not running, or not for you to ask");
                return 0;
        }
        versions = json_pack("{s:s, s:s?}", "lull", LULL_VERSION, "lulld", daemon);
        if (!versions)
                return cli_fail(cli, -ENOMEM, "out of memory");
        print_json(cli, versions);
        return 0;
}

static const struct command commands[] = {
        { .name = "show", .help = "the versions of lull and, if it answers, lulld", .run = version_show },
        { .name = NULL },
};

const struct object object_version = {
        .name = "version", .help = "the versions of lull and lulld", .commands = commands, .has_default = true
};
