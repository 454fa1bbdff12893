/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong in the configuration, as messages for people.
 *
 * Bounded: past PROBLEMS_FILE_MAX of one file, or PROBLEMS_MAX in all, one last message says that there are more, and the rest is
 * only counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

enum {
        PROBLEMS_MAX = 1000,
        PROBLEMS_FILE_MAX = 100,
        PROBLEM_VALUE_MAX = 64, /* bytes of a value shown in a message; the rest is cut */
        PROBLEM_QUOTED_MAX = 4 * PROBLEM_VALUE_MAX + 8,
};

struct problems {
        char **messages;
        size_t n_messages;
        size_t n_found; /* those not kept counted too */
        size_t n_of_file;
};

void problems_done(struct problems *problems);
/* The messages from now on are about another file. */
void problems_next_file(struct problems *problems);
/* Adds "FILE:LINE: MESSAGE", "FILE: MESSAGE" for line 0, or "MESSAGE" without a file. Returns 0 or -ENOMEM. */
int problems_add(struct problems *problems, const char *file, size_t line, const char *format, ...) _printf_(4, 5);

/* Writes @text in quotes: cut where it is long, control characters escaped. Returns @buffer. */
char *problem_quote(const char *text, size_t length, char buffer[static PROBLEM_QUOTED_MAX]);
