/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event, which the API wants to be UTF-8 and short. */
#pragma once

#include <stdarg.h>

#include "base/macros.h"

enum { NOTE_MAX = 1024 }; /* bytes, without the NUL (ValidateEventCreate) */

/* What is not UTF-8 becomes "?"; what is too long is cut before a character. Returns @note. */
char *note_format(char note[static NOTE_MAX + 1], const char *format, va_list arguments) _printf_(2, 0);
