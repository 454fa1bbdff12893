/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned tables for people. Cells are given row by row; what could upset a terminal in them is shown as "?". */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/macros.h"

struct table;

/* @headers, static, are the @n_columns titles, or NULL for none. Returns 0 or -ENOMEM. */
int table_new(const char *const *headers, size_t n_columns, struct table **ret_table);
struct table *table_free(struct table *table);
DEFINE_CLEANUP(struct table, table_free)

/* The next cell; an empty one is shown as "-". */
void table_cell(struct table *table, const char *format, ...) _printf_(2, 3);

/* Returns 0, or -ENOMEM when a cell could not be kept. */
int table_print(const struct table *table, FILE *file);
