/* SPDX-License-Identifier: Apache-2.0 */
/* Hands a held packet on, as if it arrived once more: through its interface, or, when it is this host's own, through a raw socket.
 *
 * The packet meets the hook again, so an exemption always comes first (injector_exempt()); it says how long the flow passes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bpf/hold_hooks.h"

struct injector;

struct injection {
        uint32_t ifindex;
        uint16_t gso_size;
        uint16_t flags; /* enum lull_packet_flags */
        const void *data;
        size_t length;
};

/* Opens the raw sockets: needs CAP_NET_RAW. */
int injector_new(struct hold_hooks *hooks, struct injector **ret_injector);
struct injector *injector_free(struct injector *injector);
DEFINE_CLEANUP(struct injector, injector_free)

/* Lets @flow pass the hook until @until_ns (CLOCK_MONOTONIC). */
int injector_exempt(struct injector *injector, const struct lull_flow *flow, uint64_t until_ns);
/* Ends that: what its sender repeats is held. */
void injector_hold_again(struct injector *injector, const struct lull_flow *flow);

/* Completes the checksum, splits what was sent as one GSO packet, and sends it. Returns 0, -EBADMSG or -EPROTONOSUPPORT for what is
 * no whole packet, or -errno of the first datagram that could not be sent. */
int injector_send(struct injector *injector, const struct injection *injection);
