/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an event: as long as the API takes it, and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kube/note.h"

static char *format(char note[static NOTE_MAX + 1], const char *text, ...) _printf_(2, 3);
static char *format(char note[static NOTE_MAX + 1], const char *text, ...)
{
        va_list arguments;

        va_start(arguments, text);
        note_format(note, text, arguments);
        va_end(arguments);
        return note;
}

static void a_note_is_cut_before_a_character_and_only_where_it_must(void **state)
{
        char note[NOTE_MAX + 1];

        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX, "x")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX + 1, "x")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*s", NOTE_MAX, "ä")), NOTE_MAX);
        assert_int_equal(strlen(format(note, "%*sä", NOTE_MAX - 1, "x")), NOTE_MAX - 1);
        assert_int_equal(strlen(format(note, "%*s…", NOTE_MAX - 2, "x")), NOTE_MAX - 2);
        assert_int_equal(strlen(format(note, "%*s😀", NOTE_MAX - 3, "x")), NOTE_MAX - 3);
        assert_int_equal(strlen(format(note, "%*s😀yz", NOTE_MAX - 4, "x")), NOTE_MAX);
        assert_string_equal(format(note, "%s", ""), "");
}

static void what_is_no_utf8_becomes_a_question_mark(void **state)
{
        char note[NOTE_MAX + 1];

        assert_string_equal(format(note, "äö…😀"), "äö…😀");
        assert_string_equal(format(note, "a%sb", "\xff"), "a?b");
        assert_string_equal(format(note, "a%sb", "\xc3"), "a?b");
        assert_string_equal(format(note, "%s", "\xc0\xaf"), "??");           /* overlong */
        assert_string_equal(format(note, "%s", "\xe0\x9f\xbf"), "???");      /* overlong */
        assert_string_equal(format(note, "%s", "\xed\xa0\x80"), "???");      /* a surrogate */
        assert_string_equal(format(note, "%s", "\xf0\x8f\xbf\xbf"), "????"); /* overlong */
        assert_string_equal(format(note, "%s", "\xf4\x90\x80\x80"), "????"); /* past the last */
        assert_string_equal(format(note, "%s", "\xf0\x9f\x98"), "???");      /* cut off */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_note_is_cut_before_a_character_and_only_where_it_must),
                cmocka_unit_test(what_is_no_utf8_becomes_a_question_mark),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
