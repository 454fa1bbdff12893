/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of prefixes, as sets of addresses. */
#pragma once

#include <stddef.h>

#include "base/address.h"

/* The addresses that are in some prefix of both lists, as a new list; of two that overlap, that is the longer one. Returns 0 or -ENOMEM;
 * the caller owns *ret_prefixes (never NULL). */
int prefixes_intersect(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b, struct prefix **ret_prefixes,
                       size_t *ret_n);
bool prefixes_contain(const struct prefix *prefixes, size_t n, const struct address *address);
