/* SPDX-License-Identifier: Apache-2.0 */
/* One document as a policy: the fields of ScaleToZero, their types, ranges and defaults. docs/policy.md describes them. */
#pragma once

#include "policy/policy.h"
#include "policy/reader.h"

/* Returns 1 with a policy (the caller owns it), 0 after noting all problems of the document, or -ENOMEM. In a cluster the document has
 * a spec and nothing else, and the policy gets no name. */
int spec_read(struct reader *reader, struct policy **ret_policy);

/* Entry @index of spec.listen, for messages about it. */
int spec_listen_problem(struct reader *reader, size_t index, const char *text);

/* The fields of spec, for who compares them with a schema. */
extern const struct field spec_fields[];
