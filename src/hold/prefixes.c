/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/prefixes.h"

#include <errno.h>
#include <stdlib.h>

int prefixes_intersect(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b, struct prefix **ret_prefixes,
                       size_t *ret_n)
{
        struct prefix *prefixes = calloc(MAX(n_a * n_b, (size_t)1), sizeof(*prefixes));
        size_t n = 0;

        if (!prefixes)
                return -ENOMEM;

        for (size_t i = 0; i < n_a; i++)
                for (size_t j = 0; j < n_b; j++) {
                        if (a[i].length >= b[j].length && prefix_contains(&b[j], &a[i].address))
                                prefixes[n++] = a[i];
                        else if (b[j].length > a[i].length && prefix_contains(&a[i], &b[j].address))
                                prefixes[n++] = b[j];
                }

        *ret_prefixes = prefixes;
        *ret_n = n;
        return 0;
}

bool prefixes_contain(const struct prefix *prefixes, size_t n, const struct address *address)
{
        for (size_t i = 0; i < n; i++)
                if (prefix_contains(&prefixes[i], address))
                        return true;
        return false;
}
