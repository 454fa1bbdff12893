/* SPDX-License-Identifier: Apache-2.0 */
/* prog and map: what the daemon has in the kernel. */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/table.h"

static void program_row(struct table *table, const json_t *program)
{
        long long runs = member_integer(program, "run_count");
        char duration[DURATION_TEXT_MAX] = "";

        if (runs > 0)
                duration_format((uint64_t)(member_number(program, "run_time_seconds") * 1e9 / (double)runs + 0.5), duration);
        table_cell(table, "%lld", member_integer(program, "id"));
        table_cell(table, "%s", member_text(program, "name"));
        table_cell(table, "%s", member_text(program, "type"));
        table_cell(table, "%s", member_text(program, "attach"));
        table_cell(table, "%s", member_yes_or_no(program, "attached"));
        table_cell(table, "%lld", runs);
        table_cell(table, "%s", duration);
}

static int prog_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "ID", "NAME", "TYPE", "ATTACH", "ATTACHED", "RUNS", "TIME/RUN" };
        static const struct listing listing = { "/v1/programs", "programs", headers, ELEMENTSOF(headers), program_row };

        return show_list(cli, &listing);
}

static void map_row(struct table *table, const json_t *map)
{
        table_cell(table, "%s", member_text(map, "name"));
        table_cell(table, "%s", member_text(map, "type"));
        if (json_is_integer(json_object_get(map, "entries")))
                table_cell(table, "%lld", member_integer(map, "entries"));
        else
                table_cell(table, "-");
        table_cell(table, "%lld", member_integer(map, "max_entries"));
}

static int map_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "NAME", "TYPE", "ENTRIES", "MAX" };
        static const struct listing listing = { "/v1/maps", "maps", headers, ELEMENTSOF(headers), map_row };

        return show_list(cli, &listing);
}

static const struct command prog_commands[] = {
        { .name = "list", .help = "programs; runs are counted while kernel.bpf_stats_enabled is 1", .run = prog_list },
        { .name = NULL },
};
static const struct command map_commands[] = {
        { .name = "list", .help = "maps and how full they are", .run = map_list },
        { .name = NULL },
};

const struct object object_prog = { .name = "prog", .help = "lulld's BPF programs", .commands = prog_commands };
const struct object object_map = { .name = "map", .help = "lulld's BPF maps", .commands = map_commands };
