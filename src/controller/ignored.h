/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of the pods that spec.ignore's selectors mean: who neither wakes a policy's target nor keeps it awake.
 *
 * One watch of pods for each selector and namespace, shared by all policies that have it, and one of namespaces once somebody selects
 * those. Pods in their host's network are left out: their address is that of everything on the node.
 */
#pragma once

#include "kube/client.h"
#include "kube/scale_to_zero.h"

struct ignored;
struct ignored_policy; /* what one policy ignores */

/* @changed: the addresses of some policies may be others now; they are the ones with ignored_policy. */
int ignored_new(struct kube_client *client, void (*changed)(void *userdata), void *userdata, struct ignored **ret_ignored);
struct ignored *ignored_free(struct ignored *ignored); /* all policies must have been freed */
DEFINE_CLEANUP(struct ignored, ignored_free)

/* Follows @policy: *policy_ignores, NULL at first, is what it ignores from now on, NULL where it has no selectors. Returns 0, -EINVAL for
 * a selector that is none, or -errno: then *policy_ignores is NULL. */
int ignored_follow(struct ignored *ignored, const char *namespace, const struct policy *policy,
                   struct ignored_policy **policy_ignores);
struct ignored_policy *ignored_policy_free(struct ignored_policy *policy);

/* Fills @ret in order, each address once; *ret_n is at most STATUS_IGNORED_MAX. Returns 0; -ENOSPC where there are more; -EAGAIN while not
 * all is known: @ret says nothing then. */
int ignored_list(const struct ignored_policy *policy, struct prefix ret[static STATUS_IGNORED_MAX], size_t *ret_n);
