/* SPDX-License-Identifier: Apache-2.0 */
/* Whether packets are translated in this network namespace as their connection tracking entries say.
 *
 * The kernel does that only where something has asked for it (some nat chain of nftables or iptables, and a rule that has to do with
 * connections). Without it, a flow with an entry of ours would go out as it is and be refused.
 */
#pragma once

#include "hold/conntrack.h"

/* Sends a datagram from this host to itself with an entry that leads it to another port, and looks where it comes out. Takes well below
 * a millisecond, 50 ms at most. Returns 1, 0, or -errno. */
int nat_probe(struct conntrack *conntrack, bool ipv4);
