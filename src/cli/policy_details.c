/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_details.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/table.h"

static void row_phase(struct table *table, const json_t *policy)
{
        char duration[DURATION_TEXT_MAX];

        table_cell(table, "phase");
        table_cell(table, "%s since %s (%s)%s", member_text(policy, "phase"), member_text(policy, "since"),
                   member_duration(policy, "since_seconds", duration),
                   json_is_true(json_object_get(policy, "dry_run")) ? ", in a dry run" : "");
}

static int row_listen(struct cli *cli, struct table *table, const json_t *policy)
{
        _cleanup_(freep) char *listen = NULL;
        int r;

        r = member_joined(cli, policy, "listen", ", ", &listen);
        if (r < 0)
                return r;
        table_cell(table, "listen");
        table_cell(table, "%s", listen);
        return 0;
}

static int rows_target(struct cli *cli, struct table *table, const json_t *target)
{
        _cleanup_(freep) char *command = NULL;
        long long pid = member_integer(target, "pid");
        int r;

        r = member_joined(cli, target, "command", " ", &command);
        if (r < 0)
                return r;
        table_cell(table, "target");
        if (pid > 0)
                table_cell(table, "%s, %s, pid %lld", member_text(target, "kind"), member_text(target, "state"), pid);
        else
                table_cell(table, "%s, %s", member_text(target, "kind"), member_text(target, "state"));
        table_cell(table, "  command");
        table_cell(table, "%s", command);
        table_cell(table, "  cgroup");
        table_cell(table, "%s", member_text(target, "cgroup"));
        return 0;
}

static void row_idle(struct table *table, const json_t *idle)
{
        char duration[DURATION_TEXT_MAX];

        if (!json_is_object(idle))
                return;
        table_cell(table, "idle");
        table_cell(table, "%s: %s; sleeps after %s", member_text(idle, "verdict"), member_text(idle, "reason"),
                   member_duration(idle, "required_seconds", duration));
}

static void rows_activity(struct table *table, const json_t *activity)
{
        if (!json_is_object(activity))
                return;
        table_cell(table, "activity");
        table_cell(table, "connections: %lld served, %lld outbound; open requests: %lld", member_integer(activity, "connections"),
                   member_integer(activity, "outbound"), member_integer(activity, "open_requests"));
        table_cell(table, "  in all");
        table_cell(table, "connections: %lld; bytes: %lld received, %lld sent", member_integer(activity, "connections_total"),
                   member_integer(activity, "received_bytes"), member_integer(activity, "sent_bytes"));
        table_cell(table, "  CPU");
        table_cell(table, "%.2f cores", member_number(activity, "cpu_cores"));
}

static void row_gpu(struct table *table, const json_t *gpu)
{
        if (!json_is_object(gpu))
                return;
        table_cell(table, "GPU");
        table_cell(table, "%s: %s; devices: %lld, open: %lld", member_text(gpu, "state"), member_text(gpu, "reason"),
                   member_integer(gpu, "devices"), member_integer(gpu, "open"));
}

static void row_wake(struct table *table, const json_t *wake)
{
        char duration[DURATION_TEXT_MAX];

        if (!json_is_object(wake))
                return;
        table_cell(table, "last wake");
        table_cell(table, "%s, by %s%s%s, ready after %s", member_text(wake, "time"), member_text(wake, "cause"),
                   json_is_string(json_object_get(wake, "source")) ? " from " : "",
                   json_is_string(json_object_get(wake, "source")) ? member_text(wake, "source") : "",
                   member_duration(json_object_get(wake, "phases"), "ready", duration));
}

static void row_sleep(struct table *table, const json_t *sleep)
{
        if (!json_is_object(sleep))
                return;
        table_cell(table, "last sleep");
        table_cell(table, "%s, %s: %s", member_text(sleep, "time"), member_text(sleep, "cause"), member_text(sleep, "reason"));
}

static void rows_conditions(struct table *table, const json_t *conditions)
{
        const json_t *condition;
        size_t i;

        json_array_foreach((json_t *)conditions, i, condition) {
                table_cell(table, "condition");
                table_cell(table, "%s (%s): %s", member_text(condition, "type"), member_text(condition, "reason"),
                           member_text(condition, "message"));
        }
}

static int rows_policy(struct cli *cli, struct table *table, const json_t *policy)
{
        int r;

        table_cell(table, "policy");
        table_cell(table, "%s", member_text(policy, "name"));
        table_cell(table, "  from");
        table_cell(table, "%s", member_text(policy, "origin"));
        row_phase(table, policy);
        r = row_listen(cli, table, policy);
        if (r < 0)
                return r;
        r = rows_target(cli, table, json_object_get(policy, "target"));
        if (r < 0)
                return r;

        row_idle(table, json_object_get(policy, "idle"));
        rows_activity(table, json_object_get(policy, "activity"));
        row_gpu(table, json_object_get(policy, "gpu"));
        table_cell(table, "held");
        table_cell(table, "parked packets: %lld", member_integer(json_object_get(policy, "held"), "parked"));
        row_wake(table, json_object_get(policy, "last_wake"));
        row_sleep(table, json_object_get(policy, "last_sleep"));
        rows_conditions(table, json_object_get(policy, "conditions"));
        return 0;
}

int policy_print_details(struct cli *cli, const json_t *policy)
{
        _cleanup_(table_freep) struct table *table = NULL;
        int r;

        r = table_new(NULL, 2, &table);
        if (r < 0)
                return cli_fail(cli, r, "out of memory");
        r = rows_policy(cli, table, policy);
        if (r < 0)
                return r;
        r = table_print(table, stdout);
        return r < 0 ? cli_fail(cli, r, "out of memory") : 0;
}
