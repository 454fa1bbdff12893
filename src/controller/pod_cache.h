/* SPDX-License-Identifier: Apache-2.0 */
/* The readiness probes of pods, asked for once a pod, when an endpoint of it appears.
 *
 * What a pod declares never changes, and one GET tells. Only where its probe cannot be used until a container runs (pod_probe.h:
 * pending) it is looked at again, after 100 ms, then ever later up to POD_CACHE_RETRY_MAX_NS, until it is Ready, deleted, or nobody has
 * asked for POD_CACHE_INTEREST_NS. POD_CACHE_MAX pods are remembered, the one asked for longest ago forgotten first.
 */
#pragma once

#include "controller/resolve.h"
#include "kube/client.h"

#define POD_CACHE_RETRY_MIN_NS (UINT64_C(100000000))
#define POD_CACHE_RETRY_MAX_NS (UINT64_C(2000000000))
#define POD_CACHE_INTEREST_NS (UINT64_C(600000000000))
enum { POD_CACHE_MAX = 1024 };

struct pod_cache;

/* More is known of a pod that was asked for in the name of @policy ("namespace/name"): from the event loop. */
typedef void (*pod_cache_changed)(const char *policy, void *userdata);

int pod_cache_new(struct kube_client *client, pod_cache_changed changed, void *userdata, struct pod_cache **ret_cache);
struct pod_cache *pod_cache_free(struct pod_cache *cache);
DEFINE_CLEANUP(struct pod_cache, pod_cache_free)

/* Fills @ret with what is known of the pods of @resolution's endpoints, for the next resolve(), and asks for what is not, in the
 * policy's namespace. Those that are ready are left out. Returns how many there are; they live until the event loop runs. */
size_t pod_cache_probes(struct pod_cache *cache, const char *policy, const struct resolution *resolution,
                        struct resolve_probe ret[static STATUS_ENDPOINTS_MAX]);
