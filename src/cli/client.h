/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the daemon over its control socket. Errors, those that the daemon answers included, are left with cli_fail(). */
#pragma once

#include <jansson.h>

struct cli;

/* The caller owns the answer. Bounded: 10 s, 16 MiB. */
int client_get(struct cli *cli, const char *path, json_t **ret_answer);
int client_post(struct cli *cli, const char *path, json_t **ret_answer);
int client_get_text(struct cli *cli, const char *path, char **ret_text);

/* Escapes @segment for use in a path. The caller owns *ret_escaped. */
int client_escape(struct cli *cli, const char *segment, char **ret_escaped);

/* Calls @line with every line of an answer as it comes, until it returns a negative error, SIGINT or SIGTERM arrives, or nobody reads
 * stdout any more; these are no failures. The daemon's ending the answer is one. */
typedef int (*client_line)(struct cli *cli, const char *line, void *userdata);
int client_follow(struct cli *cli, const char *path, client_line line, void *userdata);
