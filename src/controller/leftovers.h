/* SPDX-License-Identifier: Apache-2.0 */
/* The pods that ran when a target went to zero. Until they are deleted and EndpointSlices have followed, these call them ready still, and
 * a wake that comes meanwhile must not be taken for finished by them, nor send anybody there. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"
#include "kube/resource.h"
#include "policy/policy.h"

enum { LEFTOVERS_MAX = 4096 }; /* pods; further ones are not remembered */

struct leftovers;

/* Those in @slices that may be @target's and do not end yet. Returns 0 or -ENOMEM. */
int leftovers_take(const struct target_reference *target, const struct kube_endpoint_slice *const *slices, size_t n_slices,
                   struct leftovers **ret_leftovers);
struct leftovers *leftovers_free(struct leftovers *leftovers);
DEFINE_CLEANUP(struct leftovers, leftovers_free)

bool leftovers_have(const struct leftovers *leftovers, const char *pod_uid); /* NULL has none */
