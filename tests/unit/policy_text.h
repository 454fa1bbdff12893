/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as text, and what is loaded of it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "policy/load.h"

#define HEAD "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: web}\nspec:\n"
#define LISTEN "  listen: [tcp/0.0.0.0:8080]\n"
#define TARGET "  target: {kind: Process, command: [server]}\n"
#define POLICY(name, listen)                                                                                                       \
        "---\napiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: " name "}\nspec:\n  listen: [" listen "]\n" TARGET

static inline struct policy_set *load_length(const char *text, size_t length)
{
        struct policy_set *set = NULL;

        assert_int_equal(policy_set_load_text(text, length, "t.yaml", &set), 0);
        return set;
}

static inline struct policy_set *load(const char *text)
{
        return load_length(text, strlen(text));
}

static inline void assert_errors(const struct policy_set *set, size_t n, const char *first)
{
        if (set->n_errors != n || (n && strcmp(set->errors[0], first) != 0)) {
                for (size_t i = 0; i < set->n_errors; i++)
                        print_error("%s\n", set->errors[i]);
                fail_msg("expected %zu errors, first \"%s\"", n, first);
        }
}
