/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

enum {
        IPV4_HEADER = 20,
        IPV6_HEADER = 40,
        TCP_HEADER = 20,
        UDP_HEADER = 8,
        EXTENSION_HEADERS_MAX = 8,

        IPV4_LENGTH = 2,
        IPV4_IDENTIFICATION = 4,
        IPV4_FRAGMENT = 6,
        IPV4_TTL = 8,
        IPV4_PROTOCOL = 9,
        IPV4_CHECKSUM = 10,
        IPV4_SOURCE = 12,
        IPV4_DESTINATION = 16,
        IPV4_FRAGMENT_BITS = 0x3fff, /* more fragments, and the offset */
        IPV6_LENGTH = 4,
        IPV6_NEXT_HEADER = 6,
        IPV6_HOP_LIMIT = 7,
        IPV6_SOURCE = 8,
        IPV6_DESTINATION = 24,
        UDP_LENGTH = 4,
        UDP_CHECKSUM = 6,
        TCP_DATA_OFFSET = 12,
        TCP_FLAGS = 13,
        TCP_WINDOW = 14,
        TCP_CHECKSUM = 16,

        TCP_FLAG_SYN = 0x02,
        HOPS = 64,
};

static uint16_t get16(const uint8_t *bytes)
{
        return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void put16(uint8_t *bytes, uint16_t value)
{
        bytes[0] = (uint8_t)(value >> 8);
        bytes[1] = (uint8_t)value;
}

static int parse_ipv4(const uint8_t *data, size_t length, struct packet *packet, uint8_t *ret_protocol)
{
        size_t header;

        if (length < IPV4_HEADER)
                return -EBADMSG;

        header = (size_t)(data[0] & 0xf) * 4;
        packet->length = get16(data + IPV4_LENGTH);
        if (header < IPV4_HEADER || header > packet->length || packet->length > length)
                return -EBADMSG;
        if (get16(data + IPV4_FRAGMENT) & IPV4_FRAGMENT_BITS)
                return -EPROTONOSUPPORT;

        packet->flow.source = address_from_bytes(AF_INET, data + IPV4_SOURCE);
        packet->flow.destination = address_from_bytes(AF_INET, data + IPV4_DESTINATION);
        packet->transport = (uint16_t)header;
        *ret_protocol = data[IPV4_PROTOCOL];
        return 0;
}

/* Steps over one extension header. Returns 1 when @protocol is none, so that the transport header has been reached. */
static int skip_extension_header(const uint8_t *data, size_t end, uint8_t *protocol, size_t *offset)
{
        size_t header;

        switch (*protocol) {
        case IPPROTO_HOPOPTS:
        case IPPROTO_ROUTING:
        case IPPROTO_DSTOPTS:
        case IPPROTO_FRAGMENT:
        case IPPROTO_AH:
                break;
        default:
                return 1;
        }
        if (end - *offset < 8)
                return -EBADMSG;

        header = (size_t)(data[*offset + 1] + 1) * 8;
        if (*protocol == IPPROTO_AH)
                header = (size_t)(data[*offset + 1] + 2) * 4; /* RFC 4302, section 2.2 */
        if (*protocol == IPPROTO_FRAGMENT) {
                header = 8;
                if (get16(data + *offset + 2) & 0xfff9) /* offset, or more fragments: not an atomic one (RFC 6946) */
                        return -EPROTONOSUPPORT;
        }
        if (header > end - *offset)
                return -EBADMSG;

        *protocol = data[*offset];
        *offset += header;
        return 0;
}

static int parse_ipv6(const uint8_t *data, size_t length, struct packet *packet, uint8_t *ret_protocol)
{
        size_t offset = IPV6_HEADER;
        int r;

        if (length < IPV6_HEADER)
                return -EBADMSG;

        packet->length = IPV6_HEADER + (uint32_t)get16(data + IPV6_LENGTH);
        if (packet->length > length || packet->length > PACKET_MAX)
                return -EBADMSG;

        packet->ipv6 = true;
        packet->flow.source = address_from_bytes(AF_INET6, data + IPV6_SOURCE);
        packet->flow.destination = address_from_bytes(AF_INET6, data + IPV6_DESTINATION);
        *ret_protocol = data[IPV6_NEXT_HEADER];
        for (unsigned i = 0; i < EXTENSION_HEADERS_MAX; i++) {
                r = skip_extension_header(data, packet->length, ret_protocol, &offset);
                if (r < 0)
                        return r;
                if (r > 0) {
                        packet->transport = (uint16_t)offset;
                        return 0;
                }
        }
        return -EPROTONOSUPPORT;
}

static int parse_transport(const uint8_t *data, struct packet *packet)
{
        const uint8_t *transport = data + packet->transport;
        size_t available = packet->length - packet->transport, header = UDP_HEADER;

        packet->end = packet->length;
        if (packet->flow.protocol == IPPROTO_TCP) {
                if (available < TCP_HEADER)
                        return -EBADMSG;
                header = (size_t)(transport[TCP_DATA_OFFSET] >> 4) * 4;
                if (header < TCP_HEADER || header > available)
                        return -EBADMSG;
        } else {
                if (available < UDP_HEADER || get16(transport + UDP_LENGTH) < UDP_HEADER ||
                    get16(transport + UDP_LENGTH) > available)
                        return -EBADMSG;
                packet->end = (uint32_t)packet->transport + get16(transport + UDP_LENGTH);
        }

        packet->flow.source_port = get16(transport);
        packet->flow.destination_port = get16(transport + 2);
        packet->payload = (uint16_t)(packet->transport + header);
        return 0;
}

int packet_parse(const void *data, size_t length, struct packet *ret_packet)
{
        const uint8_t *bytes = data;
        struct packet packet = { 0 };
        uint8_t protocol;
        int r;

        if (length < 1)
                return -EBADMSG;

        switch (bytes[0] >> 4) {
        case 4:
                r = parse_ipv4(bytes, length, &packet, &protocol);
                break;
        case 6:
                r = parse_ipv6(bytes, length, &packet, &protocol);
                break;
        default:
                return -EBADMSG;
        }
        if (r < 0)
                return r;
        if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
                return -EPROTONOSUPPORT;

        packet.flow.protocol = protocol;
        r = parse_transport(bytes, &packet);
        if (r < 0)
                return r;

        *ret_packet = packet;
        return 0;
}

/* The Internet checksum's sum (RFC 1071), not yet folded; 64 KiB cannot overflow it. */
static uint32_t sum_bytes(const uint8_t *bytes, size_t length, uint32_t sum)
{
        size_t i;

        for (i = 0; i + 1 < length; i += 2)
                sum += get16(bytes + i);
        if (i < length)
                sum += (uint32_t)bytes[i] << 8;
        return sum;
}

static uint16_t sum_finish(uint32_t sum)
{
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)~sum;
}

static uint8_t *checksum_field(uint8_t *data, const struct packet *packet)
{
        return data + packet->transport + (packet->flow.protocol == IPPROTO_TCP ? TCP_CHECKSUM : UDP_CHECKSUM);
}

/* Zero would mean that there is none: UDP sends its other representation (RFC 768). */
static void put_checksum(uint8_t *data, const struct packet *packet, uint32_t sum)
{
        uint16_t checksum = sum_finish(sum);

        if (checksum == 0 && packet->flow.protocol == IPPROTO_UDP)
                checksum = 0xffff;
        put16(checksum_field(data, packet), checksum);
}

void packet_complete_checksum(void *data, const struct packet *packet)
{
        uint8_t *bytes = data;

        /* The field holds the pseudo header's sum already, as in the kernel's skb_checksum_help(): sum it with the rest. */
        put_checksum(bytes, packet, sum_bytes(bytes + packet->transport, packet->end - packet->transport, 0));
}

bool packet_lacks_checksum(const void *data, const struct packet *packet)
{
        const uint8_t *bytes = data;

        return !packet->ipv6 && packet->flow.protocol == IPPROTO_UDP && get16(bytes + packet->transport + UDP_CHECKSUM) == 0;
}

size_t packet_datagrams(const struct packet *packet, uint16_t gso_size)
{
        size_t payload = packet->end - packet->payload;

        if (gso_size == 0 || packet->flow.protocol != IPPROTO_UDP || payload <= gso_size)
                return 1;
        return (payload + gso_size - 1) / gso_size;
}

static void finish_ip_header(uint8_t *bytes, const struct packet *packet, size_t length, size_t index)
{
        if (packet->ipv6) {
                put16(bytes + IPV6_LENGTH, (uint16_t)(length - IPV6_HEADER));
                return;
        }

        put16(bytes + IPV4_LENGTH, (uint16_t)length);
        put16(bytes + IPV4_IDENTIFICATION, (uint16_t)(get16(bytes + IPV4_IDENTIFICATION) + index));
        put16(bytes + IPV4_CHECKSUM, 0);
        put16(bytes + IPV4_CHECKSUM, sum_finish(sum_bytes(bytes, packet->transport, 0)));
}

static uint32_t sum_pseudo_header(const uint8_t *bytes, const struct packet *packet, uint32_t transport_length)
{
        uint32_t sum = packet->flow.protocol + (transport_length >> 16) + (transport_length & 0xffff);

        if (packet->ipv6)
                return sum_bytes(bytes + IPV6_SOURCE, 32, sum);
        return sum_bytes(bytes + IPV4_SOURCE, 8, sum);
}

size_t packet_datagram(const void *data, const struct packet *packet, uint16_t gso_size, size_t index, bool checksum, void *buffer)
{
        const uint8_t *bytes = data;
        uint8_t *out = buffer;
        size_t offset = packet->payload + index * gso_size, length = MIN((size_t)gso_size, packet->end - offset);
        size_t transport_length = packet->payload - packet->transport + length;

        memcpy(out, bytes, packet->payload);
        memcpy(out + packet->payload, bytes + offset, length);
        length += packet->payload;

        finish_ip_header(out, packet, length, index);
        put16(out + packet->transport + UDP_LENGTH, (uint16_t)transport_length);
        put16(checksum_field(out, packet), 0);
        if (checksum)
                put_checksum(out, packet,
                             sum_bytes(out + packet->transport, transport_length,
                                       sum_pseudo_header(out, packet, (uint32_t)transport_length)));
        return length;
}

size_t packet_syn(const struct flow *flow, uint32_t sequence, void *buffer)
{
        bool ipv4 = address_is_ipv4(&flow->destination);
        struct packet packet = { .flow = *flow, .transport = ipv4 ? IPV4_HEADER : IPV6_HEADER, .ipv6 = !ipv4 };
        size_t length = (size_t)packet.transport + TCP_HEADER;
        uint8_t *bytes = buffer, *tcp = bytes + packet.transport;

        memset(bytes, 0, length);
        bytes[0] = ipv4 ? 4 << 4 | IPV4_HEADER / 4 : 6 << 4;
        bytes[ipv4 ? IPV4_TTL : IPV6_HOP_LIMIT] = HOPS;
        bytes[ipv4 ? IPV4_PROTOCOL : IPV6_NEXT_HEADER] = IPPROTO_TCP;
        memcpy(bytes + (ipv4 ? IPV4_SOURCE : IPV6_SOURCE), flow->source.bytes + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
        memcpy(bytes + (ipv4 ? IPV4_DESTINATION : IPV6_DESTINATION), flow->destination.bytes + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
        finish_ip_header(bytes, &packet, length, 0);

        put16(tcp, flow->source_port);
        put16(tcp + 2, flow->destination_port);
        put16(tcp + 4, (uint16_t)(sequence >> 16));
        put16(tcp + 6, (uint16_t)sequence);
        tcp[TCP_DATA_OFFSET] = TCP_HEADER / 4 << 4;
        tcp[TCP_FLAGS] = TCP_FLAG_SYN;
        put16(tcp + TCP_WINDOW, UINT16_MAX);
        put_checksum(bytes, &packet, sum_bytes(tcp, TCP_HEADER, sum_pseudo_header(bytes, &packet, TCP_HEADER)));
        return length;
}

void packet_ethernet_header(bool ipv6, const uint8_t destination[static PACKET_MAC], uint8_t frame[static PACKET_ETHERNET_HEADER])
{
        static const uint8_t source[PACKET_MAC] = { 0x02, 'l', 'u', 'l', 'l', 0 };

        memcpy(frame, destination, PACKET_MAC);
        memcpy(frame + PACKET_MAC, source, PACKET_MAC);
        put16(frame + 2 * PACKET_MAC, ipv6 ? 0x86dd : 0x0800);
}
