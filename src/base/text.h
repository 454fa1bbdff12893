/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that are owned by what holds them. */
#pragma once

/* Makes *@text a copy of @value and frees what it was; it may have been NULL. Returns 0, or -ENOMEM with *@text as it was. */
int text_replace(char **text, const char *value);
