/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/usage.h"

#include <string.h>

#include "cli/cli.h"
#include "policy/suggest.h"

enum { COMMANDS_MAX = 8 };

static const struct object *const objects[] = {
        &object_status, &object_policy, &object_hold,    &object_gpu,     &object_event,
        &object_prog,   &object_map,    &object_feature, &object_metrics, &object_version,
};

static void print_commands(const struct object *object, FILE *file)
{
        for (const struct command *command = object->commands; command->name; command++)
                fprintf(file, "%s%s%s%s", command == object->commands ? "" : " | ", command->name, command->arguments ? " " : "",
                        command->arguments ? command->arguments : "");
}

void usage_print(FILE *file)
{
        fputs("Usage: lull [OPTIONS] OBJECT {COMMAND | help}\n"
              "\n"
              "Shows what lulld does, and wakes policies or puts them to sleep.\n"
              "\n"
              "Objects and their commands:\n",
              file);
        for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
                fprintf(file, "  %-9s", objects[i]->name);
                print_commands(objects[i], file);
                fputc('\n', file);
        }
        fputs("\n"
              "Options, before the object:\n"
              "  -j, --json         print JSON on one line\n"
              "  -p, --pretty       print indented JSON\n"
              "  -s, --socket PATH  the daemon's control socket (default: $LULL_SOCKET, else /run/lull/control.sock)\n"
              "  -V, --version      print the version\n"
              "  -h, --help         print this help\n",
              file);
}

void usage_print_object(const struct object *object, FILE *file)
{
        fprintf(file, "Usage: lull [OPTIONS] %s %s", object->name, object->has_default ? "[" : "{");
        print_commands(object, file);
        fprintf(file, " | help%s\n\n%s:\n", object->has_default ? "]" : "}", object->help);
        for (const struct command *command = object->commands; command->name; command++) {
                int printed = fprintf(file, "  %s %s", command->name, command->arguments ? command->arguments : "");

                fprintf(file, "%*s%s\n", MAX(16 - printed, 1), "", command->help);
        }
}

static void suggest(const char *word, const char *const *known, size_t n_known)
{
        const char *nearest = suggest_nearest(word, known, n_known);

        if (nearest)
                fprintf(stderr, "; did you mean \"%s\"?\n", nearest);
        else
                fputc('\n', stderr);
}

const struct object *usage_find_object(const char *word)
{
        const char *known[ELEMENTSOF(objects)];

        for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
                known[i] = objects[i]->name;
                if (strcmp(word, known[i]) == 0)
                        return objects[i];
        }
        fprintf(stderr, "lull: \"%s\" is not an object (\"lull help\" lists them)", word);
        suggest(word, known, ELEMENTSOF(objects));
        return NULL;
}

static void say_options_come_first(const struct object *object, const char *option)
{
        fprintf(stderr, "lull: options come before the object: lull %s %s\n", option, object->name);
}

const struct command *usage_find_command(const struct object *object, char **words, char ***ret_arguments)
{
        const char *known[COMMANDS_MAX];
        size_t n = 0;

        *ret_arguments = words[0] ? words + 1 : words;
        if (!words[0]) {
                if (object->has_default)
                        return object->commands;
                fprintf(stderr, "lull: which command? lull %s {", object->name);
                print_commands(object, stderr);
                fputs("}\n", stderr);
                return NULL;
        }
        for (const struct command *command = object->commands; command->name && n < COMMANDS_MAX; command++) {
                known[n++] = command->name;
                if (strcmp(words[0], command->name) == 0)
                        return command;
        }
        if (words[0][0] == '-') {
                say_options_come_first(object, words[0]);
                return NULL;
        }
        fprintf(stderr, "lull: \"%s\" is not a command of %s (\"lull %s help\" lists them)", words[0], object->name, object->name);
        suggest(words[0], known, n);
        return NULL;
}

bool usage_check(const struct cli *cli, const struct object *object, const struct command *command, char **arguments)
{
        size_t wanted = command->arguments ? 1 : 0;

        if (wanted > 0 && !arguments[0]) {
                fprintf(stderr, "lull: %s missing: lull %s %s %s\n", command->arguments, object->name, command->name,
                        command->arguments);
                return false;
        }
        if (arguments[wanted] && arguments[wanted][0] == '-') {
                say_options_come_first(object, arguments[wanted]);
                return false;
        }
        if (arguments[wanted]) {
                fprintf(stderr, "lull: \"%s\" is one word too many for %s %s\n", arguments[wanted], object->name, command->name);
                return false;
        }
        if (command->text_only && cli->output != OUTPUT_TEXT) {
                fprintf(stderr, "lull: %s has no JSON form\n", object->name);
                return false;
        }
        return true;
}

void usage_wrong_option(int option, int letter, const char *word)
{
        char name[] = { '-', (char)letter, '\0' };

        if (letter != 0)
                word = name;
        if (option == ':')
                fprintf(stderr, "lull: %s needs a value (\"lull help\" tells more)\n", word);
        else
                fprintf(stderr, "lull: %s is not an option (\"lull help\" lists them)\n", word);
}
