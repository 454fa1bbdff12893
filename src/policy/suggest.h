/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that a mistyped one is likely meant to be. */
#pragma once

#include <stddef.h>

enum { SUGGEST_LENGTH_MAX = 32 }; /* bytes; nothing is near a longer word */

/* Returns the nearest of @known, letter case, "-" and "_" aside, or NULL when none is near: at most one mistake in three letters, and
 * at most two. */
const char *suggest_nearest(const char *word, const char *const *known, size_t n_known);
