/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from a few words: what a row does not say is an ordinary packet's. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PACKET_BYTES_MAX = 4096, EXTENSIONS_MAX = 10 };

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, URG = 32, ECE = 64, CWR = 128 };

struct packet {
        bool ipv6;
        bool udp;
        const char *source, *destination; /* 198.51.100.7 or 2001:db8:1::7, 192.0.2.1 or 2001:db8::1 */
        uint16_t destination_port;        /* 80, or 53 for UDP; the source port is 40000 */
        uint8_t tcp_flags;                /* SYN */
        uint8_t tcp_words;                /* 5: what the header says of its own length */
        uint32_t sequence;
        uint8_t option_words; /* IPv4 */
        uint8_t extensions[EXTENSIONS_MAX];
        size_t n_extensions;
        uint8_t segments_left; /* of routing headers */
        uint16_t fragment;     /* IPv4: flags and offset; IPv6: offset and flag */
        uint8_t protocol;      /* in place of TCP or UDP */
        uint8_t version;
        uint8_t ipv4_words; /* what the header says of its own length */
        uint8_t ttl;        /* 64 */
        size_t payload;
        int ip_length_lie, udp_length_lie; /* added to what is true */
        size_t cut;                        /* only so many bytes are there */
};

static inline const char *packet_source(const struct packet *packet)
{
        return packet->source ?: (packet->ipv6 ? "2001:db8:1::7" : "198.51.100.7");
}

static inline const char *packet_destination(const struct packet *packet)
{
        return packet->destination ?: (packet->ipv6 ? "2001:db8::1" : "192.0.2.1");
}

static inline uint16_t packet_port(const struct packet *packet)
{
        return packet->destination_port ?: (packet->udp ? 53 : 80);
}

static inline void put_16(uint8_t *at, uint16_t value)
{
        at[0] = value >> 8;
        at[1] = value;
}

/* The Internet checksum (RFC 1071) of what is added to @sum. */
static inline uint16_t checksum(uint64_t sum, const uint8_t *data, size_t length)
{
        for (size_t i = 0; i < length; i++)
                sum += i % 2 ? data[i] : data[i] << 8;
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return ~sum;
}

static inline size_t put_transport(const struct packet *packet, uint8_t *at)
{
        put_16(at, 40000);
        put_16(at + 2, packet_port(packet));
        if (packet->udp) {
                put_16(at + 4, 8 + packet->payload + packet->udp_length_lie);
                return 8;
        }
        put_16(at + 4, packet->sequence >> 16);
        put_16(at + 6, packet->sequence);
        at[12] = (packet->tcp_words ?: 5) << 4;
        at[13] = packet->tcp_flags ?: SYN;
        put_16(at + 14, 64240);
        return 20;
}

static inline uint8_t transport_protocol(const struct packet *packet)
{
        return packet->protocol ?: (packet->udp ? IPPROTO_UDP : IPPROTO_TCP);
}

static inline size_t put_ipv4(const struct packet *packet, uint8_t *at, size_t transport)
{
        size_t length = 20 + 4 * packet->option_words;

        at[0] = (packet->version ?: 4) << 4 | (packet->ipv4_words ?: length / 4);
        put_16(at + 2, length + transport + packet->ip_length_lie);
        put_16(at + 6, packet->fragment);
        at[8] = packet->ttl ?: 64;
        at[9] = transport_protocol(packet);
        inet_pton(AF_INET, packet_source(packet), at + 12);
        inet_pton(AF_INET, packet_destination(packet), at + 16);
        memset(at + 20, 1, 4 * packet->option_words); /* no operation */
        put_16(at + 10, checksum(0, at, length));
        return length;
}

/* Every extension header is 16 bytes long, but for the fragment header's 8. */
static inline size_t put_extension(const struct packet *packet, uint8_t type, uint8_t *at)
{
        if (type == IPPROTO_FRAGMENT) {
                put_16(at + 2, packet->fragment);
                return 8;
        }
        at[1] = type == IPPROTO_AH ? 2 : 1;
        if (type == IPPROTO_ROUTING)
                at[3] = packet->segments_left;
        return 16;
}

static inline size_t put_ipv6(const struct packet *packet, uint8_t *at, size_t transport)
{
        uint8_t *next = at + 6;
        size_t length = 40;

        at[0] = (packet->version ?: 6) << 4;
        at[7] = packet->ttl ?: 64;
        inet_pton(AF_INET6, packet_source(packet), at + 8);
        inet_pton(AF_INET6, packet_destination(packet), at + 24);
        for (size_t i = 0; i < packet->n_extensions; i++) {
                *next = packet->extensions[i];
                next = at + length;
                length += put_extension(packet, packet->extensions[i], at + length);
        }
        *next = transport_protocol(packet);
        put_16(at + 4, length - 40 + transport + packet->ip_length_lie);
        return length;
}

/* Returns its length, from the IP header on. */
static inline size_t packet_build(const struct packet *packet, uint8_t bytes[static PACKET_BYTES_MAX])
{
        uint8_t transport[PACKET_BYTES_MAX] = {};
        size_t transport_length = put_transport(packet, transport) + packet->payload, header;

        for (size_t i = transport_length - packet->payload; i < transport_length; i++)
                transport[i] = i;
        memset(bytes, 0, PACKET_BYTES_MAX);
        header = packet->ipv6 ? put_ipv6(packet, bytes, transport_length) : put_ipv4(packet, bytes, transport_length);
        memcpy(bytes + header, transport, transport_length);
        return packet->cut ?: header + transport_length;
}
