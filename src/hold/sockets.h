/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's socket tables know, asked over sock_diag(7) in the daemon's network namespace.
 *
 * One struct sockets is one netlink socket; every call is a synchronous round trip of some microseconds. Needs no privilege.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/address.h"

struct sockets;

int sockets_new(struct sockets **ret_sockets);
struct sockets *sockets_free(struct sockets *sockets);
DEFINE_CLEANUP(struct sockets, sockets_free)

struct listener {
        unsigned count;       /* sockets that would take a packet to the frontend (several with SO_REUSEPORT) */
        uint32_t queued;      /* TCP: connections waiting for accept(); UDP: bytes of receive buffer used; the fullest socket's */
        uint32_t queue_limit; /* TCP: the backlog of that socket; UDP: its receive buffer's size */
        uint64_t cgroup;      /* cgroup2 id of the first of them, or 0 where the kernel does not say */
};

/* Who would take a packet to @frontend: a TCP listener or a bound, unconnected UDP socket, its own address or a wildcard's. Returns 0,
 * -ENOENT when nobody listens, or -errno. */
int sockets_find_listener(struct sockets *sockets, const struct frontend *frontend, struct listener *ret_listener);

enum connection_state {
        CONNECTION_NONE,        /* no such socket */
        CONNECTION_HANDSHAKE,   /* the SYN was taken, the connection is not yet established */
        CONNECTION_ESTABLISHED, /* established, closing, or in TIME-WAIT */
};

/* The server's end, on this host, of the TCP @flow whose client is the flow's source. */
int sockets_find_connection(struct sockets *sockets, const struct flow *flow, enum connection_state *ret_state);

/* The same for any @flow as it arrives on @ifindex, and where no connection takes it, who else would: the very listener (or UDP
 * socket) that the kernel would choose, so that its queue is the one to look at before the flow is released. ret_listener->count is
 * then 1, else 0. */
int sockets_probe_flow(struct sockets *sockets, const struct flow *flow, uint32_t ifindex, enum connection_state *ret_state,
                       struct listener *ret_listener);

struct socket_owner {
        uint64_t cgroup; /* cgroup2 id, or 0 where the kernel does not say */
        uint64_t inode;
        uid_t uid;
};

/* The client's end of @flow, where it is a socket of this host. Returns 0, -ENOENT, or -errno. */
int sockets_find_client(struct sockets *sockets, const struct flow *flow, struct socket_owner *ret_owner);
