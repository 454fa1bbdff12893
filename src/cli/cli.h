/* SPDX-License-Identifier: Apache-2.0 */
/* The lull command: lull [OPTIONS] OBJECT {COMMAND | help}.
 *
 * An object is a table of commands in a file of its own. Data goes to stdout, everything else to stderr. A command that fails leaves
 * one message with cli_fail(); main prints it and exits with 1. Wrong words and options are found before a command runs and exit
 * with 2.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

enum output {
        OUTPUT_TEXT,
        OUTPUT_JSON,   /* the daemon's JSON on one line */
        OUTPUT_PRETTY, /* the same, indented */
};

struct cli {
        const char *socket; /* path of the daemon's control socket */
        enum output output;
        char *error; /* what went wrong, or NULL */
};

struct command {
        const char *name;
        const char *arguments; /* "NAME", or NULL when it takes none */
        const char *help;
        bool text_only; /* has no JSON form */
        int (*run)(struct cli *cli, char **arguments);
};

struct object {
        const char *name;
        const char *help;
        const struct command *commands; /* ends with a NULL name */
        bool has_default;               /* the first command runs when none is named */
};

extern const struct object object_status, object_policy, object_hold, object_gpu, object_event, object_prog, object_map,
        object_feature, object_metrics, object_version;

/* Leaves a message for people, unless there is one already; returns @error (-errno). */
int cli_fail(struct cli *cli, int error, const char *format, ...) _printf_(3, 4);
