/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/suggest.h"

#include <ctype.h>
#include <string.h>

#include "base/macros.h"

/* Lower case, and without what other ways of writing put between words. Returns the length, or 0 where it does not fit. */
static size_t normalize(const char *word, char normal[static SUGGEST_LENGTH_MAX])
{
        size_t length = 0;

        for (; *word; word++) {
                if (*word == '-' || *word == '_')
                        continue;
                if (length == SUGGEST_LENGTH_MAX)
                        return 0;
                normal[length++] = (char)tolower((unsigned char)*word);
        }
        return length;
}

/* Levenshtein's distance, with two letters swapped as one mistake. table[i][j] is that of the first i letters of @a and j of @b. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
        size_t table[SUGGEST_LENGTH_MAX + 1][SUGGEST_LENGTH_MAX + 1];

        for (size_t j = 0; j <= b_length; j++)
                table[0][j] = j;

        for (size_t i = 1; i <= a_length; i++) {
                table[i][0] = i;
                for (size_t j = 1; j <= b_length; j++) {
                        size_t replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
                        size_t added = MIN(table[i][j - 1], table[i - 1][j]) + 1;

                        table[i][j] = MIN(added, replaced);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                table[i][j] = MIN(table[i][j], table[i - 2][j - 2] + 1);
                }
        }
        return table[a_length][b_length];
}

const char *suggest_nearest(const char *word, const char *const *known, size_t n_known)
{
        char a[SUGGEST_LENGTH_MAX], b[SUGGEST_LENGTH_MAX];
        size_t a_length = normalize(word, a), best = MIN(a_length / 3, (size_t)2) + 1;
        const char *nearest = NULL;

        if (a_length == 0)
                return NULL;

        for (size_t i = 0; i < n_known; i++) {
                size_t found = distance(a, a_length, b, normalize(known[i], b));

                if (found < best) {
                        best = found;
                        nearest = known[i];
                }
        }
        return nearest;
}
