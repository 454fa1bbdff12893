/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/features.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

static void feature_row(struct table *table, const json_t *feature)
{
        table_cell(table, "%s", member_text(feature, "name"));
        table_cell(table, "%s", member_yes_or_no(feature, "available"));
        table_cell(table, "%s", member_text(feature, "used_for"));
        table_cell(table, "%s", member_text(feature, "detail"));
}

/* Probing needs the right to load BPF programs. Root probes here, so that it works before a daemon does; others ask the daemon. */
static int feature_probe_all(struct cli *cli, char **arguments)
{
        static const char *const headers[] = { "FEATURE", "AVAILABLE", "USED FOR", "DETAIL" };
        static const struct listing listing = { "/v1/features", "features", headers, ELEMENTSOF(headers), feature_row };
        _cleanup_(json_decrefp) json_t *answer = NULL;
        json_t *features;

        if (geteuid() != 0)
                return show_list(cli, &listing);

        features = features_json();
        answer = features ? json_pack("{s:o}", "features", features) : NULL;
        if (!answer)
                return cli_fail(cli, -ENOMEM, "out of memory");
        return print_listing(cli, &listing, answer);
}

static const struct command commands[] = {
        { .name = "probe", .help = "what this kernel can do of what lull uses, found out by trying", .run = feature_probe_all },
        { .name = NULL },
};

const struct object object_feature = { .name = "feature", .help = "what this kernel can do", .commands = commands };
