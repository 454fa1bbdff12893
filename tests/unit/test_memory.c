/* SPDX-License-Identifier: Apache-2.0 */
/* What only the start needed is given back, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/macros.h"
#include "base/memory.h"

enum { STATE_BYTES = 64 * 1024 };

/* Pages of files that are mapped now. */
static unsigned long file_pages(void)
{
        _cleanup_(fclosep) FILE *file = fopen("/proc/self/statm", "re");
        unsigned long size, resident, shared;

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%lu %lu %lu", &size, &resident, &shared), 3);
        return shared;
}

/* Relocations, which only the start makes, and what was written since. */
static void what_was_written_stays(void **state)
{
        static int (*volatile compare)(const char *, const char *) = strcmp;
        _cleanup_(freep) char *heap = malloc(STATE_BYTES);
        char *text;
        json_t *json;

        assert_non_null(heap);
        memset(heap, 'x', STATE_BYTES);
        memory_settle();

        for (size_t i = 0; i < STATE_BYTES; i++)
                assert_int_equal(heap[i], 'x');
        json = json_pack("{ss}", "key", "value");
        text = json_dumps(json, JSON_COMPACT);
        assert_int_equal(compare(text, "{\"key\":\"value\"}"), 0);
        free(text);
        json_decref(json);
}

static void fewer_pages_of_files_stay(void **state)
{
        unsigned long before = file_pages(), after;

        memory_settle();
        after = file_pages();

        assert_true(after < before);
        print_message("pages of files: %lu, then %lu\n", before, after);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fewer_pages_of_files_stay),
                cmocka_unit_test(what_was_written_stays),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
