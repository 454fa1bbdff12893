/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands print, and how they read the daemon's JSON: a missing member is "-" or 0, never an error. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/time.h"

struct cli;
struct table;

void print_json(const struct cli *cli, const json_t *value);

/* Gets @path and prints it: as JSON where that is wanted, else with @print_text. */
int show(struct cli *cli, const char *path, int (*print_text)(struct cli *cli, const json_t *answer));

/* The same for an answer that is a list: a row of the table for each element of its member @name. */
struct listing {
        const char *path;
        const char *name;
        const char *const *headers;
        size_t n_columns;
        void (*row)(struct table *table, const json_t *element);
};
int show_list(struct cli *cli, const struct listing *listing);
int print_listing(struct cli *cli, const struct listing *listing, const json_t *answer);

/* Prints @text with lines of at most as many columns as the terminal has, 80 where stdout is none. */
void print_wrapped(const char *text);

/* For show(): the answer's member "text", wrapped. */
int print_text_member(struct cli *cli, const json_t *answer);
/* The first of a list, and how many more there are; with @member, of a list of objects. */
void cell_first_of(struct table *table, const json_t *list, const char *member);

const char *member_text(const json_t *object, const char *name);
double member_number(const json_t *object, const char *name);
long long member_integer(const json_t *object, const char *name);
/* A duration in seconds, or "-". */
char *member_duration(const json_t *object, const char *name, char buffer[static DURATION_TEXT_MAX]);
const char *member_yes_or_no(const json_t *object, const char *name);
/* A list of strings with ", " between; the caller owns *ret_text. */
int member_joined(struct cli *cli, const json_t *object, const char *name, const char *separator, char **ret_text);
