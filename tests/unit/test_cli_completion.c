/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli_harness.h"

static const struct http_route routes[] = { { NULL, NULL, NULL } };

/* Has bash complete the last of @words with the command under test first in PATH. */
static void complete(const struct harness *harness, const char *words, char *buffer, size_t size)
{
        _cleanup_(freep) char *command = NULL;
        char *directory = strndupa(harness->program, (size_t)(strrchr(harness->program, '/') - harness->program));
        FILE *bash;
        size_t length;

        assert_true(asprintf(&command,
                             "PATH=%s:$PATH exec bash -c '. deploy/completion/lull.bash; COMP_WORDS=(%s); "
                             "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lull; echo -n \"${COMPREPLY[*]}\"'",
                             directory, words) > 0);
        bash = popen(command, "re");
        assert_non_null(bash);
        length = fread(buffer, 1, size - 1, bash);
        buffer[length] = '\0';
        assert_int_equal(pclose(bash), 0);
}

static void bash_completes_what_the_usage_lists(void **state)
{
        static const struct {
                const char *words, *completions;
        } cases[] = {
                { "lull \"\"", "status policy hold gpu event prog map feature metrics version help" },
                { "lull p", "policy prog" },
                { "lull -j ev", "event" },
                { "lull policy \"\"", "list show why wake sleep help" },
                { "lull policy w", "why wake" },
                { "lull gpu \"\"", "list show why top help" },
                { "lull -s /run/x event f", "follow" },
                { "lull --p", "--pretty" },
                { "lull hold list \"\"", "" },
        };
        struct harness *harness = harness_new(routes);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char completions[1024];

                complete(harness, cases[i].words, completions, sizeof(completions));
                assert_string_equal(completions, cases[i].completions);
        }
        harness_free(harness);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bash_completes_what_the_usage_lists),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
