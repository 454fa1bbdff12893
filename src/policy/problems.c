/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/problems.h"

#include <stdarg.h>
#include <string.h>

void problems_done(struct problems *problems)
{
        for (size_t i = 0; i < problems->n_messages; i++)
                free(problems->messages[i]);
        free(problems->messages);
        *problems = (struct problems){ 0 };
}

void problems_next_file(struct problems *problems)
{
        problems->n_of_file = 0;
}

/* Takes @message, also on failure. */
static int message_append(struct problems *problems, char *message)
{
        _cleanup_(freep) char *owned = message;
        char **messages;

        if (!owned)
                return -ENOMEM;
        messages = reallocarray(problems->messages, problems->n_messages + 1, sizeof(*messages));
        if (!messages)
                return -ENOMEM;

        problems->messages = messages;
        messages[problems->n_messages++] = TAKE_PTR(owned);
        return 0;
}

static char *message_format(const char *file, size_t line, const char *text)
{
        char *message;
        int r;

        if (!file)
                return strdup(text);
        if (line)
                r = asprintf(&message, "%s:%zu: %s", file, line, text);
        else
                r = asprintf(&message, "%s: %s", file, text);
        return r < 0 ? NULL : message;
}

int problems_add(struct problems *problems, const char *file, size_t line, const char *format, ...)
{
        _cleanup_(freep) char *text = NULL;
        va_list arguments;
        int r;

        problems->n_found++;
        problems->n_of_file++;
        if (problems->n_messages > PROBLEMS_MAX || problems->n_of_file > PROBLEMS_FILE_MAX + 1)
                return 0;
        if (problems->n_messages == PROBLEMS_MAX || problems->n_of_file == PROBLEMS_FILE_MAX + 1)
                return message_append(problems, message_format(file, line, "more problems from here on are not shown"));

        va_start(arguments, format);
        r = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (r < 0) {
                text = NULL; /* undefined after a failure */
                return -ENOMEM;
        }
        return message_append(problems, message_format(file, line, text));
}

static size_t cut_length(const char *text, size_t length)
{
        if (length <= PROBLEM_VALUE_MAX)
                return length;

        /* Not inside a UTF-8 sequence. */
        for (length = PROBLEM_VALUE_MAX; length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80; length--)
                ;
        return length;
}

char *problem_quote(const char *text, size_t length, char buffer[static PROBLEM_QUOTED_MAX])
{
        size_t shown = cut_length(text, length);
        char *p = buffer;

        *p++ = '"';
        for (size_t i = 0; i < shown; i++) {
                unsigned char c = (unsigned char)text[i];

                if (c < 0x20 || c == 0x7f)
                        p += sprintf(p, "\\x%02x", c);
                else
                        *p++ = (char)c;
        }
        strcpy(p, shown < length ? "...\"" : "\"");
        return buffer;
}
