/* SPDX-License-Identifier: Apache-2.0 */
/* Half-open probes: does this node's data plane lead a frontend to an endpoint yet?
 *
 * A probe is a SYN from a port of this host that is reserved and not listened on. When its answer comes back the kernel resets it, so
 * that the application never sees a connection; that an endpoint answered is then known from connection tracking. TCP only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

struct conntrack_entry;
struct held_frontend;

struct data_plane_probe {
        struct flow flow;
        int port_fd;       /* reserves the source port; -1: no probe */
        uint64_t began_ns; /* 0: not yet */
        uint64_t first_ns; /* since when the SYN goes to an endpoint */
        uint64_t next_ns;
        bool unable; /* no way from here to the frontend */
};

void data_plane_init(struct data_plane_probe *probe);
/* Begins, where that has not happened yet. */
void data_plane_begin(struct held_frontend *frontend, uint64_t now_ns);
/* Sends what is due. Returns whether the data plane has answered. */
bool data_plane_run(struct held_frontend *frontend, uint64_t now_ns);
/* Whether @entry is the probe's, and answered by an endpoint. */
bool data_plane_proves(const struct held_frontend *frontend, const struct conntrack_entry *entry);
/* Ends, and removes the probe's traces. */
void data_plane_end(struct held_frontend *frontend);
