/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as tests write it: with ' for ". */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/macros.h"

/* In place. */
static inline char *unquote(char *text)
{
        for (char *c = text; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        return text;
}

static inline json_t *json(const char *text)
{
        _cleanup_(freep) char *copy = strdup(text);
        json_error_t error;
        json_t *value;

        assert_non_null(copy);
        value = json_loads(unquote(copy), JSON_DECODE_ANY, &error);
        if (!value)
                fail_msg("%s: %s", text, error.text);
        return value;
}
