/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the command line: what they are, which are wrong, and which was likely meant. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct cli;
struct command;
struct object;

void usage_print(FILE *file);
void usage_print_object(const struct object *object, FILE *file);

/* NULL, after a message on stderr, for a word that names none. */
const struct object *usage_find_object(const char *word);
/* The command that @words begins with, or the object's default; *ret_arguments is what follows. */
const struct command *usage_find_command(const struct object *object, char **words, char ***ret_arguments);

/* Whether @arguments are as many as the command takes, and the wanted form of output is one that it has; says what is wrong. */
bool usage_check(const struct cli *cli, const struct object *object, const struct command *command, char **arguments);

/* @option is what getopt_long() returned, '?' or ':', @letter its optopt, and @word the last one it looked at. */
void usage_wrong_option(int option, int letter, const char *word);
