/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a server that has bound a UDP socket waits for datagrams yet.
 *
 * TCP has listen(), which comes last. UDP has only bind(), and servers go on from there: dnsmasq turns IP_PKTINFO on afterwards, and
 * throws a datagram away that came in between. Whoever is done with that sleeps, in poll() or the like.
 */
#pragma once

#include <stdbool.h>

/* No thread in the cgroup2 directory @cgroup runs, is ready to run, or waits for a disk. With more than 64 threads: false. */
bool cgroup_has_settled(const char *cgroup);
