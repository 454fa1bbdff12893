/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

enum { SHOWN_BEFORE = 10 }; /* events that "follow" begins with */

static void event_row(struct table *table, const json_t *event)
{
        table_cell(table, "%s", member_text(event, "time"));
        table_cell(table, "%s", member_text(event, "policy"));
        table_cell(table, "%s", member_text(event, "reason"));
        table_cell(table, "%s", member_text(event, "message"));
}

static int event_list(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "TIME", "POLICY", "REASON", "MESSAGE" };
        static const struct listing listing = { "/v1/events", "events", headers, ELEMENTSOF(headers), event_row };

        return show_list(cli, &listing);
}

/* One event, shown as soon as it is there: a table of one row. */
static int print_event(struct cli *cli, const char *line, void *userdata)
{
        _cleanup_(json_decrefp) json_t *event = json_loads(line, 0, NULL);
        _cleanup_(table_freep) struct table *table = NULL;
        int r;

        if (!event)
                return -EBADMSG;
        if (cli->output == OUTPUT_TEXT) {
                r = table_new(NULL, 4, &table);
                if (r < 0)
                        return r;
                event_row(table, event);
                r = table_print(table, stdout);
                if (r < 0)
                        return r;
        } else {
                print_json(cli, event);
        }
        return fflush(stdout) == EOF ? -errno : 0;
}

/* The number after which the last few events come. */
static int begin_of_last_events(struct cli *cli, long long *ret_after)
{
        _cleanup_(json_decrefp) json_t *answer = NULL;
        const json_t *events;
        size_t n;
        int r;

        r = client_get(cli, "/v1/events", &answer);
        if (r < 0)
                return r;
        events = json_object_get(answer, "events");
        n = json_array_size(events);
        *ret_after = n > SHOWN_BEFORE ? member_integer(json_array_get(events, n - SHOWN_BEFORE), "seq") - 1 : 0;
        return 0;
}

static int event_follow(struct cli *cli, char **arguments)
{
        long long after;
        char path[64];
        int r;

        r = begin_of_last_events(cli, &after);
        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "/v1/events/stream?after=%lld", after);
        return client_follow(cli, path, print_event, NULL);
}

static const struct command commands[] = {
        { .name = "list", .help = "the newest events, 1024 at most", .run = event_list },
        { .name = "follow", .help = "the last 10 events, and each new one as it happens", .run = event_follow },
        { .name = NULL },
};

const struct object object_event = { .name = "event", .help = "what happened", .commands = commands };
