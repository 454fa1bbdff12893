/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/policy_details.h"
#include "cli/table.h"

static const struct collection policies = { "/v1/policies", "a policy's name" };

static void cell_activity(struct table *table, const json_t *policy)
{
        const json_t *idle = json_object_get(policy, "idle");
        const char *verdict = member_text(idle, "verdict");
        char duration[DURATION_TEXT_MAX];

        if (strcmp(verdict, "idle") == 0)
                table_cell(table, "idle for %s", member_duration(idle, "idle_seconds", duration));
        else
                table_cell(table, "%s", verdict);
}

static void policy_row(struct table *table, const json_t *policy)
{
        char duration[DURATION_TEXT_MAX];

        table_cell(table, "%s", member_text(policy, "name"));
        table_cell(table, "%s", member_text(policy, "phase"));
        table_cell(table, "%s", member_duration(policy, "since_seconds", duration));
        cell_activity(table, policy);
        table_cell(table, "%lld", member_integer(json_object_get(policy, "held"), "parked"));
        cell_first_of(table, json_object_get(policy, "listen"), NULL);
        cell_first_of(table, json_object_get(policy, "conditions"), "type");
}

static int policy_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "NAME", "PHASE", "FOR", "ACTIVITY", "PARKED", "LISTEN", "CONDITIONS" };
        static const struct listing listing = { "/v1/policies", "policies", headers, ELEMENTSOF(headers), policy_row };

        return show_list(cli, &listing);
}

static int policy_show(struct cli *cli, char **arguments)
{
        _cleanup_(freep) char *path = NULL;
        int r;

        r = client_path(cli, &policies, arguments[0], "", &path);
        return r < 0 ? r : show(cli, path, policy_print_details);
}

static int policy_why(struct cli *cli, char **arguments)
{
        _cleanup_(freep) char *path = NULL;
        int r;

        r = client_path(cli, &policies, arguments[0], "/why", &path);
        return r < 0 ? r : show(cli, path, print_text_member);
}

static int ask(struct cli *cli, const char *name, const char *what)
{
        _cleanup_(json_decrefp) json_t *answer = NULL;
        _cleanup_(freep) char *path = NULL;
        int r;

        r = client_path(cli, &policies, name, what, &path);
        if (r < 0)
                return r;
        r = client_post(cli, path, &answer);
        if (r < 0)
                return r;

        if (cli->output == OUTPUT_TEXT)
                printf("%s is %s: %s\n", member_text(answer, "name"), member_text(answer, "phase"), member_text(answer, "message"));
        else
                print_json(cli, answer);
        return 0;
}

static int policy_wake(struct cli *cli, char **arguments)
{
        return ask(cli, arguments[0], "/wake");
}

static int policy_sleep(struct cli *cli, char **arguments)
{
        return ask(cli, arguments[0], "/sleep");
}

static const struct command commands[] = {
        { .name = "list", .help = "all policies, one a line", .run = policy_list },
        { .name = "show", .arguments = "NAME", .help = "everything known about one policy", .run = policy_show },
        { .name = "why", .arguments = "NAME", .help = "why it is in its phase, in one paragraph", .run = policy_why },
        { .name = "wake", .arguments = "NAME", .help = "wake it now", .run = policy_wake },
        { .name = "sleep", .arguments = "NAME", .help = "put it to sleep now, unless it is at work", .run = policy_sleep },
        { .name = NULL },
};

const struct object object_policy = { .name = "policy", .help = "what is put to sleep and woken, and why", .commands = commands };
