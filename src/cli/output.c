/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <string.h>
#include <sys/ioctl.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/printable.h"
#include "cli/table.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 20, REAL_DIGITS = 15 };

void print_json(const struct cli *cli, const json_t *value)
{
        size_t form = cli->output == OUTPUT_PRETTY ? JSON_INDENT(2) : JSON_COMPACT;

        json_dumpf(value, stdout, form | JSON_REAL_PRECISION(REAL_DIGITS));
        putchar('\n');
}

int show(struct cli *cli, const char *path, int (*print_text)(struct cli *cli, const json_t *answer))
{
        _cleanup_(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_get(cli, path, &answer);
        if (r < 0)
                return r;
        if (cli->output == OUTPUT_TEXT)
                return print_text(cli, answer);

        print_json(cli, answer);
        return 0;
}

static int print_table(struct cli *cli, const struct listing *listing, const json_t *answer)
{
        _cleanup_(table_freep) struct table *table = NULL;
        const json_t *element;
        size_t i;
        int r;

        r = table_new(listing->headers, listing->n_columns, &table);
        if (r < 0)
                return cli_fail(cli, r, "out of memory");
        json_array_foreach(json_object_get(answer, listing->name), i, element)
                listing->row(table, element);

        r = table_print(table, stdout);
        return r < 0 ? cli_fail(cli, r, "out of memory") : 0;
}

int print_listing(struct cli *cli, const struct listing *listing, const json_t *answer)
{
        if (cli->output == OUTPUT_TEXT)
                return print_table(cli, listing, answer);
        print_json(cli, answer);
        return 0;
}

int show_list(struct cli *cli, const struct listing *listing)
{
        _cleanup_(json_decrefp) json_t *answer = NULL;
        int r;

        r = client_get(cli, listing->path, &answer);
        return r < 0 ? r : print_listing(cli, listing, answer);
}

static size_t terminal_columns(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
                return COLUMNS_DEFAULT;
        return MAX(size.ws_col, COLUMNS_MIN);
}

void print_wrapped(const char *text)
{
        size_t columns = terminal_columns(), column = 0;

        for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
                size_t length = strcspn(text, " ");

                if (column > 0 && column + 1 + length > columns) {
                        putchar('\n');
                        column = 0;
                }
                column += (size_t)printf("%s%.*s", column > 0 ? " " : "", (int)length, text);
                text += length;
        }
        putchar('\n');
}

const char *member_text(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));

        return text && *text ? text : "-";
}

double member_number(const json_t *object, const char *name)
{
        return json_number_value(json_object_get(object, name));
}

long long member_integer(const json_t *object, const char *name)
{
        return json_integer_value(json_object_get(object, name));
}

char *member_duration(const json_t *object, const char *name, char buffer[static DURATION_TEXT_MAX])
{
        if (!json_is_number(json_object_get(object, name)))
                return memcpy(buffer, "-", sizeof("-"));
        return duration_format((uint64_t)(MAX(member_number(object, name), 0.0) * 1e9 + 0.5), buffer);
}

const char *member_yes_or_no(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);

        if (!json_is_boolean(value))
                return "-";
        return json_is_true(value) ? "yes" : "no";
}

int member_joined(struct cli *cli, const json_t *object, const char *name, const char *separator, char **ret_text)
{
        const json_t *element;
        char *text = NULL;
        size_t i, length;
        FILE *file;

        file = open_memstream(&text, &length);
        if (!file)
                return cli_fail(cli, -errno, "out of memory");
        json_array_foreach(json_object_get(object, name), i, element)
                fprintf(file, "%s%s", i > 0 ? separator : "", json_is_string(element) ? json_string_value(element) : "?");
        if (fclose(file) == EOF) {
                free(text);
                return cli_fail(cli, -ENOMEM, "out of memory");
        }
        *ret_text = text;
        return 0;
}

int print_text_member(struct cli *cli, const json_t *answer)
{
        _cleanup_(freep) char *text = strdup(member_text(answer, "text"));

        if (!text)
                return cli_fail(cli, -ENOMEM, "out of memory");
        make_printable(text);
        print_wrapped(text);
        return 0;
}

void cell_first_of(struct table *table, const json_t *list, const char *member)
{
        const json_t *first = json_array_get(list, 0);
        const char *text = member ? member_text(first, member) : json_string_value(first);
        size_t n = json_array_size(list);

        if (n > 1)
                table_cell(table, "%s +%zu", text, n - 1);
        else
                table_cell(table, "%s", n == 1 && text ? text : "");
}
