/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, prefixes, frontends and flows, as values.
 *
 * Every address is 16 bytes in network order, IPv4 as ::ffff:a.b.c.d, so that one map and one comparison serve both families (the
 * same form as on the BPF side, include/lull_wire.h). Ports are in host order here; the wire structs keep network order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/macros.h"

struct address {
        uint8_t bytes[16];
};

struct prefix {
        struct address address; /* bits past the length are zero */
        uint8_t length;         /* of the 128-bit form: 10.0.0.0/8 has 104 */
};

/* (address, port, protocol) that clients use. An all-zero IPv4 or IPv6 address stands for every local address; [::] covers IPv4 too,
 * as a socket bound to it does by default. */
struct frontend {
        struct address address;
        uint16_t port;
        uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
};

struct flow {
        struct address source, destination;
        uint16_t source_port, destination_port;
        uint8_t protocol;
};

enum {
        ADDRESS_TEXT_MAX = 46,
        PREFIX_TEXT_MAX = ADDRESS_TEXT_MAX + 4,
        ENDPOINT_TEXT_MAX = ADDRESS_TEXT_MAX + 10, /* "[...]:65535" */
        FRONTEND_TEXT_MAX = ENDPOINT_TEXT_MAX + 8, /* "unknown/[...]:65535" */
        FLOW_TEXT_MAX = 2 * ENDPOINT_TEXT_MAX + 12,
};

/* "192.0.2.1", "2001:db8::1"; brackets are not accepted. Returns 0 or -EINVAL. */
int address_parse(const char *text, struct address *ret_address);
char *address_format(const struct address *address, char buffer[static ADDRESS_TEXT_MAX]);
bool address_equal(const struct address *a, const struct address *b);
bool address_is_ipv4(const struct address *address);
bool address_is_wildcard(const struct address *address); /* 0.0.0.0 or :: */
bool address_is_loopback(const struct address *address); /* 127.0.0.0/8 or ::1 */
struct address address_from_ipv4(uint32_t network_order);
struct address address_from_bytes(int family, const void *bytes); /* AF_INET: 4 bytes, AF_INET6: 16 */
/* Fills a socket address for bind, connect or sendto. Returns its length. */
socklen_t address_to_sockaddr(const struct address *address, uint16_t port, struct sockaddr_storage *ret_sockaddr);

/* "10.0.0.0/8", "2001:db8::/32", or an address alone. Returns 0, -EINVAL for text that is none, or -ERANGE for bits set past the
 * length. */
int prefix_parse(const char *text, struct prefix *ret_prefix);
char *prefix_format(const struct prefix *prefix, char buffer[static PREFIX_TEXT_MAX]);
bool prefix_contains(const struct prefix *prefix, const struct address *address);

/* "tcp/0.0.0.0:8080", "udp/[::]:5353". Returns 0, -EINVAL, or -EPROTONOSUPPORT for another protocol. */
int frontend_parse(const char *text, struct frontend *ret_frontend);
char *frontend_format(const struct frontend *frontend, char buffer[static FRONTEND_TEXT_MAX]);
bool frontend_equal(const struct frontend *a, const struct frontend *b);
/* Whether some packet could belong to both. */
bool frontend_overlaps(const struct frontend *a, const struct frontend *b);
/* Whether a packet to (address, port, protocol) belongs to @frontend, @address being a local one. */
bool frontend_matches(const struct frontend *frontend, const struct address *address, uint16_t port, uint8_t protocol);

bool flow_equal(const struct flow *a, const struct flow *b);
/* "192.0.2.1:40000", "[2001:db8::1]:40000" */
char *endpoint_format(const struct address *address, uint16_t port, char buffer[static ENDPOINT_TEXT_MAX]);
/* "tcp 192.0.2.1:40000 > 192.0.2.2:80" */
char *flow_format(const struct flow *flow, char buffer[static FLOW_TEXT_MAX]);

const char *protocol_to_string(uint8_t protocol); /* "tcp", "udp", or "unknown" */
