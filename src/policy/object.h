/* SPDX-License-Identifier: Apache-2.0 */
/* The policy that the spec of an API object says, read with the same tables as a YAML file on one machine. */
#pragma once

#include <jansson.h>

#include "policy/policy.h"

/* How deep objects and lists may be within each other; the schema has nothing near it. */
enum { OBJECT_DEPTH_MAX = 16 };

/* @name becomes the policy's; @spec may be NULL. Returns 1 with a policy; 0 with all that is wrong in one line ("spec.idle.after: …; …");
 * or -ENOMEM. The caller owns what is returned. */
int policy_from_object(const char *name, const json_t *spec, struct policy **ret_policy, char **ret_problem);
