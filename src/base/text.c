/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_replace(char **text, const char *value)
{
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static size_t character_length(unsigned char first)
{
        if (first >= 0xf0)
                return 4;
        if (first >= 0xe0)
                return 3;
        return first >= 0xc0 ? 2 : 1;
}

static void cut_at_character(char *text, size_t length)
{
        size_t start = length;

        while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
                start--;
        if (start > 0 && start - 1 + character_length((unsigned char)text[start - 1]) > length)
                text[start - 1] = '\0';
}

void text_format_list(char *buffer, size_t size, const char *format, va_list arguments)
{
        int length = vsnprintf(buffer, size, format, arguments);

        if (length >= 0 && (size_t)length >= size)
                cut_at_character(buffer, size - 1);
}

void text_format(char *buffer, size_t size, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        text_format_list(buffer, size, format, arguments);
        va_end(arguments);
}
