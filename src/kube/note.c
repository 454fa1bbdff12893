/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/note.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(char byte)
{
        return ((uint8_t)byte & 0xc0) == 0x80;
}

static size_t sequence_length(uint8_t lead)
{
        if (lead < 0x80)
                return 1;
        if (lead >= 0xc2 && lead <= 0xdf)
                return 2;
        if (lead >= 0xe0 && lead <= 0xef)
                return 3;
        return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}

/* The second byte excludes overlong forms, surrogates and what is past U+10FFFF (RFC 3629, section 4). */
static bool is_second(uint8_t lead, uint8_t second)
{
        switch (lead) {
        case 0xe0:
                return second >= 0xa0;
        case 0xed:
                return second <= 0x9f;
        case 0xf0:
                return second >= 0x90;
        case 0xf4:
                return second <= 0x8f;
        default:
                return true;
        }
}

/* Bytes of the character at @text, or 0 when there is none. The NUL at the end is no continuation. */
static size_t character_length(const char *text)
{
        size_t length = sequence_length((uint8_t)text[0]);

        for (size_t i = 1; i < length; i++)
                if (!is_continuation(text[i]) || (i == 1 && !is_second((uint8_t)text[0], (uint8_t)text[1])))
                        return 0;
        return length;
}

static void cut_incomplete(char *text, size_t length)
{
        size_t begin = length - 1;

        while (begin > 0 && length - begin < 4 && is_continuation(text[begin]))
                begin--;
        if (begin + sequence_length((uint8_t)text[begin]) > length)
                text[begin] = '\0';
}

char *note_format(char note[static NOTE_MAX + 1], const char *format, va_list arguments)
{
        char *at = note;

        note[0] = '\0';
        if (vsnprintf(note, NOTE_MAX + 1, format, arguments) > NOTE_MAX)
                cut_incomplete(note, NOTE_MAX);
        while (*at) {
                size_t length = character_length(at);

                if (length == 0)
                        *at = '?';
                at += length ? length : 1;
        }
        return note;
}
