/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "cli/printable.h"

enum { GAP = 2 };

struct table {
        const char *const *headers;
        size_t n_columns;
        char **cells;
        size_t n_cells, room;
        bool failed;
};

int table_new(const char *const *headers, size_t n_columns, struct table **ret_table)
{
        struct table *table = calloc(1, sizeof(*table));

        if (!table)
                return -ENOMEM;
        table->headers = headers;
        table->n_columns = n_columns;
        *ret_table = table;
        return 0;
}

struct table *table_free(struct table *table)
{
        if (!table)
                return NULL;
        for (size_t i = 0; i < table->n_cells; i++)
                free(table->cells[i]);
        free(table->cells);
        free(table);
        return NULL;
}

static int make_room(struct table *table)
{
        size_t room = table->room ? 2 * table->room : 64;
        char **cells;

        if (table->n_cells < table->room)
                return 0;
        cells = reallocarray(table->cells, room, sizeof(*cells));
        if (!cells)
                return -ENOMEM;
        table->cells = cells;
        table->room = room;
        return 0;
}

void table_cell(struct table *table, const char *format, ...)
{
        char *text = NULL;
        va_list arguments;
        int length;

        if (make_room(table) < 0) {
                table->failed = true;
                return;
        }
        va_start(arguments, format);
        length = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (length < 0) {
                table->failed = true;
                return;
        }
        make_printable(text);
        table->cells[table->n_cells++] = text;
}

/* Characters, not bytes: continuation bytes of UTF-8 take no place. */
static size_t width_of(const char *text)
{
        size_t width = 0;

        for (; *text; text++)
                width += ((unsigned char)*text & 0xc0) != 0x80;
        return width;
}

static const char *shown(const char *cell)
{
        return *cell ? cell : "-";
}

static size_t column_width(const struct table *table, size_t column)
{
        size_t width = table->headers ? width_of(table->headers[column]) : 0;

        for (size_t i = column; i < table->n_cells; i += table->n_columns)
                width = MAX(width, width_of(shown(table->cells[i])));
        return width;
}

static void print_row(const struct table *table, FILE *file, const char *const *cells, const size_t *widths)
{
        for (size_t i = 0; i < table->n_columns; i++) {
                bool last = i + 1 == table->n_columns;

                fprintf(file, "%s%*s", shown(cells[i]), last ? 0 : (int)(widths[i] - width_of(shown(cells[i])) + GAP), "");
        }
        fputc('\n', file);
}

int table_print(const struct table *table, FILE *file)
{
        _cleanup_(freep) size_t *widths = calloc(table->n_columns, sizeof(*widths));

        if (!widths || table->failed)
                return -ENOMEM;
        for (size_t i = 0; i < table->n_columns; i++)
                widths[i] = column_width(table, i);

        if (table->headers)
                print_row(table, file, table->headers, widths);
        for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns)
                print_row(table, file, (const char *const *)table->cells + i, widths);
        return 0;
}
