/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/table.h"

static void held_row(struct table *table, const json_t *held)
{
        char duration[DURATION_TEXT_MAX];

        table_cell(table, "%s", member_text(held, "policy"));
        table_cell(table, "%s", member_text(held, "flow"));
        table_cell(table, "%lld", member_integer(held, "packets"));
        table_cell(table, "%lld", member_integer(held, "bytes"));
        table_cell(table, "%s", member_duration(held, "age_seconds", duration));
        table_cell(table, "%s", member_text(held, "state"));
}

static int hold_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "POLICY", "FLOW", "PACKETS", "BYTES", "AGE", "STATE" };
        static const struct listing listing = { "/v1/held", "packets", headers, ELEMENTSOF(headers), held_row };

        return show_list(cli, &listing);
}

static const struct command commands[] = {
        { .name = "list", .help = "flows whose first packets are held, or released and not answered yet", .run = hold_list },
        { .name = NULL },
};

const struct object object_hold = { .name = "hold", .help = "first packets held for sleeping services", .commands = commands };
