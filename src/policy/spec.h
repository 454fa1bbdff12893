/* SPDX-License-Identifier: Apache-2.0 */
/* One document as a policy: the fields of ScaleToZero, their types, ranges and defaults. docs/policy.md describes them. */
#pragma once

#include "policy/policy.h"
#include "policy/reader.h"

enum {
        SPEC_STRINGS_MAX = 1024,             /* entries of command, and of environment */
        SPEC_STRINGS_BYTES_MAX = 128 * 1024, /* and their length in all; aliases count each time */
};

/* Returns 1 with a policy (the caller owns it), 0 after noting all problems of the document, or -ENOMEM. */
int spec_read(struct reader *reader, struct policy **ret_policy);

/* Entry @index of spec.listen, for messages about it. */
int spec_listen_problem(struct reader *reader, size_t index, const char *text);
