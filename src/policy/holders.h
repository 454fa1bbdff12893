/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds which name and which frontend, so that no two policies share one. Every question is answered in constant time. */
#pragma once

#include "policy/policy.h"

struct holders;

int holders_new(struct holders **ret_holders); /* 0 or -ENOMEM */
struct holders *holders_free(struct holders *holders);
DEFINE_CLEANUP(struct holders, holders_free)

/* Remembers @policy, which must outlive @holders. Returns 0 or -ENOMEM. */
int holders_add(struct holders *holders, const struct policy *policy);
/* The policy of that name, or one with a frontend that overlaps; NULL: none. */
const struct policy *holders_of_name(const struct holders *holders, const char *name);
const struct policy *holders_of_frontend(const struct holders *holders, const struct frontend *frontend);
