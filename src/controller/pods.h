/* SPDX-License-Identifier: Apache-2.0 */
/* The pods of one waking target, watched for the readiness probes that they declare.
 *
 * A watch of its own, by the target's selector, for as long as somebody may wait: what a pod declares can be run once its containers do,
 * and no list of all pods of the cluster is kept for that.
 */
#pragma once

#include "controller/resolve.h"
#include "kube/client.h"

enum { PODS_PROBES_MAX = 64 };

struct pods;

/* @changed: another answer may come of pods_probes(). Returns 0 or -errno. */
int pods_new(struct kube_client *client, const char *namespace, const char *selector, void (*changed)(void *userdata),
             void *userdata, struct pods **ret_pods);
struct pods *pods_free(struct pods *pods);
DEFINE_CLEANUP(struct pods, pods_free)

/* Fills @ret with what the pods declare, at most PODS_PROBES_MAX; borrowed until the event loop runs. NULL: none. Returns how many. */
size_t pods_probes(const struct pods *pods, struct resolve_probe ret[static PODS_PROBES_MAX]);
