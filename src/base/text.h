/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: those that are owned by what holds them, and those cut to what there is room for. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/macros.h"

/* Makes *@text a copy of @value and frees what it was; it may have been NULL. Returns 0, or -ENOMEM with *@text as it was. */
int text_replace(char **text, const char *value);

/* As snprintf() and vsnprintf() into @buffer of @size bytes, but what does not fit is cut at a character of its UTF-8. */
void text_format(char *buffer, size_t size, const char *format, ...) _printf_(3, 4);
void text_format_list(char *buffer, size_t size, const char *format, va_list arguments) _printf_(3, 0);
