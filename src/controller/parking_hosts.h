/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of nodes that run an agent: those of its pod, which is in the host's network. A watch of lull's own namespace. */
#pragma once

#include <stdbool.h>

#include "controller/parking.h"
#include "kube/client.h"

#define AGENT_POD_SELECTOR "app.kubernetes.io/name=lull,app.kubernetes.io/component=agent" /* as deploy/agent.yaml labels them */

struct parking_hosts;

/* @changed: a node has got addresses, or has lost or changed them. From the event loop. */
int parking_hosts_new(struct kube_client *client, const char *namespace, void (*changed)(void *userdata), void *userdata,
                      struct parking_hosts **ret_hosts);
struct parking_hosts *parking_hosts_free(struct parking_hosts *hosts);
DEFINE_CLEANUP(struct parking_hosts, parking_hosts_free)

/* The nodes with addresses that @is_fresh says yes to. Returns 0 or -ENOMEM; the list is the caller's to free(), its contents live until
 * the event loop runs. */
int parking_hosts_list(const struct parking_hosts *hosts, bool (*is_fresh)(const char *node, void *userdata), void *userdata,
                       struct parking_node **ret_nodes, size_t *ret_n_nodes);
const struct kube_reflector *parking_hosts_view(const struct parking_hosts *hosts); /* for the metrics */
