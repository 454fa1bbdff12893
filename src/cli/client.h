/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the daemon over its control socket. Errors, those that the daemon answers included, are left with cli_fail(). */
#pragma once

#include <jansson.h>

struct cli;

/* The caller owns the answer. Bounded: 10 s, 16 MiB. */
int client_get(struct cli *cli, const char *path, json_t **ret_answer);
int client_post(struct cli *cli, const char *path, json_t **ret_answer);
int client_get_text(struct cli *cli, const char *path, char **ret_text);

struct collection {
        const char *path;   /* "/v1/policies" */
        const char *member; /* "a policy's name", for people */
};

/* The path of @name in @collection, and @rest ("" or "/why") after it. The caller owns *ret_path. */
int client_path(struct cli *cli, const struct collection *collection, const char *name, const char *rest, char **ret_path);

/* Calls @line with every line of an answer as it comes, until it returns a negative error, SIGINT or SIGTERM arrives, or nobody reads
 * stdout any more; these are no failures. The daemon's ending the answer is one. */
typedef int (*client_line)(struct cli *cli, const char *line, void *userdata);
int client_follow(struct cli *cli, const char *path, client_line line, void *userdata);
