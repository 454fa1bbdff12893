/* SPDX-License-Identifier: Apache-2.0 */
/* IP packets as bytes: what flow they belong to, their checksums, and how to split a large one again.
 *
 * Pure. No function reads past the length it is given, and a parsed packet's offsets lie within its length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"

enum {
        PACKET_ETHERNET_HEADER = 14,
        PACKET_MAC = 6,
        PACKET_MAX = 65535,
        PACKET_SYN_MAX = 60,
};

struct packet {
        struct flow flow;
        uint32_t length;    /* of the whole packet, as its IP header says */
        uint16_t transport; /* offset of the TCP or UDP header, past IPv4 options and IPv6 extension headers */
        uint16_t payload;   /* offset of what follows that header */
        uint32_t end;       /* offset of the first byte past the payload: UDP has a length of its own */
        bool ipv6;
};

/* Returns 0, -EBADMSG for headers that end early or contradict each other, or -EPROTONOSUPPORT for what is neither whole (a fragment)
 * nor TCP or UDP. */
int packet_parse(const void *data, size_t length, struct packet *ret_packet);

/* Completes a checksum of which the kernel has only summed the pseudo header so far (CHECKSUM_PARTIAL). */
void packet_complete_checksum(void *data, const struct packet *packet);

/* How many datagrams of at most @gso_size bytes of payload a UDP packet makes; 1 for 0, and for TCP. */
size_t packet_datagrams(const struct packet *packet, uint16_t gso_size);

/* Writes the @index-th of them into @buffer (at least packet->length bytes), complete with headers and checksums; the identification
 * of IPv4 counts up, as the kernel's own segmentation does. @checksum: false leaves an IPv4 datagram without one. Returns its
 * length. */
size_t packet_datagram(const void *data, const struct packet *packet, uint16_t gso_size, size_t index, bool checksum, void *buffer);

/* Writes a TCP SYN of @flow, with a sequence number of nobody's, into @buffer (at least PACKET_SYN_MAX bytes). Returns its length. */
size_t packet_syn(const struct flow *flow, uint32_t sequence, void *buffer);

/* Whether the sender left the checksum out: zero means that for UDP over IPv4 (RFC 768). */
bool packet_lacks_checksum(const void *data, const struct packet *packet);

/* Writes an Ethernet header for the packet to @frame. The source is a locally administered address of no host. */
void packet_ethernet_header(bool ipv6, const uint8_t destination[static PACKET_MAC], uint8_t frame[static PACKET_ETHERNET_HEADER]);
