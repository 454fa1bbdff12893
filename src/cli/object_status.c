/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/table.h"

static void cell_policies(struct table *table, const json_t *policies)
{
        static const char *const phases[] = { "Awake", "Sleeping", "Asleep", "Waking" };
        long long count[ELEMENTSOF(phases)], all = 0;

        for (size_t i = 0; i < ELEMENTSOF(phases); i++)
                all += count[i] = member_integer(policies, phases[i]);
        table_cell(table, "%lld: %lld awake, %lld sleeping, %lld asleep, %lld waking", all, count[0], count[1], count[2], count[3]);
}

static void print_errors(const json_t *errors)
{
        const json_t *error;
        size_t i;

        if (json_array_size(errors) > 0)
                puts("\nPolicies left out because of errors:");
        json_array_foreach((json_t *)errors, i, error)
                printf("  %s\n", json_string_value(error));
}

static int print_status(struct cli *cli, const json_t *status)
{
        _cleanup_(table_freep) struct table *table = NULL;
        const json_t *hold = json_object_get(status, "hold");
        char uptime[DURATION_TEXT_MAX];
        int r;

        r = table_new(NULL, 2, &table);
        if (r < 0)
                return cli_fail(cli, r, "out of memory");
        table_cell(table, "daemon");
        table_cell(table, "lulld %s, %s, pid %lld, up %s", member_text(status, "version"), member_text(status, "role"),
                   member_integer(status, "pid"), member_duration(status, "uptime_seconds", uptime));
        table_cell(table, "policies");
        cell_policies(table, json_object_get(status, "policies"));
        table_cell(table, "holding");
        table_cell(table, "hooks %s; parked packets: %lld",
                   json_is_true(json_object_get(hold, "attached")) ? "attached" : "not attached", member_integer(hold, "parked"));

        r = table_print(table, stdout);
        if (r < 0)
                return cli_fail(cli, r, "out of memory");
        print_errors(json_object_get(status, "configuration_errors"));
        return 0;
}

static int status_show(struct cli *cli, char **arguments)
{
        return show(cli, "/v1/status", print_status);
}

static const struct command commands[] = {
        { .name = "show", .help = "the daemon, how many policies are in which phase, errors in policies", .run = status_show },
        { .name = NULL },
};

const struct object object_status = {
        .name = "status", .help = "the daemon at a glance", .commands = commands, .has_default = true
};
