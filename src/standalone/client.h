/* SPDX-License-Identifier: Apache-2.0 */
/* Who is behind a flow from this host: its cgroup and its process.
 *
 * The socket tables say the cgroup and the inode at once; which process has that inode open is found by looking through the cgroup's
 * processes, a few at a time while the event loop has nothing better to do. At most 512 processes are looked at.
 */
#pragma once

#include <systemd/sd-event.h>

#include "base/macros.h"
#include "standalone/record.h"

struct client_search;
struct sockets;

/* Fills in the cgroup of @client (whose flow is known) now, and its process later: @client must live until client_search_free(). Returns
 * 0, -ENOENT when the client is not a socket of this host, or -errno. */
int client_search_new(sd_event *event, struct sockets *sockets, const char *cgroup_root, struct client *client,
                      struct client_search **ret_search);
struct client_search *client_search_free(struct client_search *search);
DEFINE_CLEANUP(struct client_search, client_search_free)
