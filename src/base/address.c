/* SPDX-License-Identifier: Apache-2.0 */
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { MAPPED_BITS = 96, MAPPED_BYTES = 12 };

static const struct address mapped = { { [10] = 0xff, [11] = 0xff } };

int address_parse(const char *text, struct address *ret_address)
{
        struct address address = mapped;

        if (inet_pton(AF_INET, text, address.bytes + MAPPED_BYTES) != 1 && inet_pton(AF_INET6, text, address.bytes) != 1)
                return -EINVAL;

        *ret_address = address;
        return 0;
}

char *address_format(const struct address *address, char buffer[static ADDRESS_TEXT_MAX])
{
        if (address_is_ipv4(address))
                inet_ntop(AF_INET, address->bytes + MAPPED_BYTES, buffer, ADDRESS_TEXT_MAX);
        else
                inet_ntop(AF_INET6, address->bytes, buffer, ADDRESS_TEXT_MAX);
        return buffer;
}

bool address_equal(const struct address *a, const struct address *b)
{
        return memcmp(a, b, sizeof(*a)) == 0;
}

bool address_is_ipv4(const struct address *address)
{
        return memcmp(address, &mapped, MAPPED_BYTES) == 0;
}

bool address_is_wildcard(const struct address *address)
{
        static const struct address any = { { 0 } };

        return address_equal(address, &mapped) || address_equal(address, &any);
}

bool address_is_loopback(const struct address *address)
{
        static const struct address loopback = { { [15] = 1 } };

        if (address_is_ipv4(address))
                return address->bytes[MAPPED_BYTES] == 127;
        return address_equal(address, &loopback);
}

struct address address_from_ipv4(uint32_t network_order)
{
        return address_from_bytes(AF_INET, &network_order);
}

struct address address_from_bytes(int family, const void *bytes)
{
        struct address address = mapped;

        if (family == AF_INET)
                memcpy(address.bytes + MAPPED_BYTES, bytes, 4);
        else
                memcpy(address.bytes, bytes, sizeof(address.bytes));
        return address;
}

socklen_t address_to_sockaddr(const struct address *address, uint16_t port, struct sockaddr_storage *ret_sockaddr)
{
        *ret_sockaddr = (struct sockaddr_storage){ 0 };

        if (address_is_ipv4(address)) {
                struct sockaddr_in *in = (struct sockaddr_in *)ret_sockaddr;

                in->sin_family = AF_INET;
                in->sin_port = htons(port);
                memcpy(&in->sin_addr, address->bytes + MAPPED_BYTES, 4);
                return sizeof(*in);
        }

        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_sockaddr;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, address->bytes, sizeof(address->bytes));
        return sizeof(*in6);
}

static struct address address_mask(const struct address *address, unsigned length)
{
        struct address masked = { { 0 } };

        memcpy(masked.bytes, address->bytes, length / 8);
        if (length % 8)
                masked.bytes[length / 8] = address->bytes[length / 8] & (uint8_t)(0xff << (8 - length % 8));
        return masked;
}

static int prefix_length_parse(const char *text, unsigned max, unsigned *ret_length)
{
        unsigned long length;
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        length = strtoul(text, &end, 10);
        if (*end || length > max)
                return -EINVAL;

        *ret_length = (unsigned)length;
        return 0;
}

int prefix_parse(const char *text, struct prefix *ret_prefix)
{
        char copy[ADDRESS_TEXT_MAX];
        const char *slash = strchrnul(text, '/');
        unsigned base, length;
        struct address address, masked;
        int r;

        if ((size_t)(slash - text) >= sizeof(copy))
                return -EINVAL;
        *(char *)mempcpy(copy, text, (size_t)(slash - text)) = '\0';

        r = address_parse(copy, &address);
        if (r < 0)
                return r;

        base = strchr(copy, ':') ? 0 : MAPPED_BITS;
        length = 128 - base;
        if (*slash) {
                r = prefix_length_parse(slash + 1, 128 - base, &length);
                if (r < 0)
                        return r;
        }

        masked = address_mask(&address, base + length);
        if (!address_equal(&masked, &address))
                return -ERANGE;

        *ret_prefix = (struct prefix){ .address = address, .length = (uint8_t)(base + length) };
        return 0;
}

char *prefix_format(const struct prefix *prefix, char buffer[static PREFIX_TEXT_MAX])
{
        bool ipv4 = address_is_ipv4(&prefix->address) && prefix->length >= MAPPED_BITS;
        char text[ADDRESS_TEXT_MAX];

        snprintf(buffer, PREFIX_TEXT_MAX, "%s/%u", address_format(&prefix->address, text),
                 ipv4 ? prefix->length - MAPPED_BITS : prefix->length);
        return buffer;
}

bool prefix_contains(const struct prefix *prefix, const struct address *address)
{
        struct address masked = address_mask(address, prefix->length);

        return address_equal(&masked, &prefix->address);
}

static int port_parse(const char *text, uint16_t *ret_port)
{
        unsigned long port;
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        port = strtoul(text, &end, 10);
        if (*end || port == 0 || port > UINT16_MAX)
                return -EINVAL;

        *ret_port = (uint16_t)port;
        return 0;
}

/* Splits "127.0.0.1:80" or "[::1]:80" at its last colon. */
static int endpoint_parse(const char *text, struct address *ret_address, uint16_t *ret_port)
{
        char copy[ADDRESS_TEXT_MAX + 2];
        const char *colon = strrchr(text, ':');
        size_t length;
        int r;

        if (!colon)
                return -EINVAL;
        length = (size_t)(colon - text);
        if (length < 2 || length >= sizeof(copy))
                return -EINVAL;

        if (text[0] == '[' && colon[-1] == ']') {
                *(char *)mempcpy(copy, text + 1, length - 2) = '\0';
                if (!strchr(copy, ':'))
                        return -EINVAL;
        } else {
                *(char *)mempcpy(copy, text, length) = '\0';
                if (strchr(copy, ':'))
                        return -EINVAL;
        }

        r = address_parse(copy, ret_address);
        if (r < 0)
                return r;
        return port_parse(colon + 1, ret_port);
}

int frontend_parse(const char *text, struct frontend *ret_frontend)
{
        struct frontend frontend = { 0 };
        const char *slash = strchr(text, '/');
        int r;

        if (!slash)
                return -EINVAL;
        if (strncmp(text, "tcp/", 4) == 0)
                frontend.protocol = IPPROTO_TCP;
        else if (strncmp(text, "udp/", 4) == 0)
                frontend.protocol = IPPROTO_UDP;
        else
                return -EPROTONOSUPPORT;

        r = endpoint_parse(slash + 1, &frontend.address, &frontend.port);
        if (r < 0)
                return r;

        *ret_frontend = frontend;
        return 0;
}

char *endpoint_format(const struct address *address, uint16_t port, char buffer[static ENDPOINT_TEXT_MAX])
{
        char text[ADDRESS_TEXT_MAX];

        address_format(address, text);
        snprintf(buffer, ENDPOINT_TEXT_MAX, address_is_ipv4(address) ? "%s:%u" : "[%s]:%u", text, port);
        return buffer;
}

char *frontend_format(const struct frontend *frontend, char buffer[static FRONTEND_TEXT_MAX])
{
        char endpoint[ENDPOINT_TEXT_MAX];

        snprintf(buffer, FRONTEND_TEXT_MAX, "%s/%s", protocol_to_string(frontend->protocol),
                 endpoint_format(&frontend->address, frontend->port, endpoint));
        return buffer;
}

bool frontend_equal(const struct frontend *a, const struct frontend *b)
{
        return a->port == b->port && a->protocol == b->protocol && address_equal(&a->address, &b->address);
}

static bool wildcard_covers(const struct address *wildcard, const struct address *address)
{
        if (!address_is_wildcard(wildcard))
                return false;
        return !address_is_ipv4(wildcard) || address_is_ipv4(address);
}

bool frontend_overlaps(const struct frontend *a, const struct frontend *b)
{
        if (a->port != b->port || a->protocol != b->protocol)
                return false;
        return address_equal(&a->address, &b->address) || wildcard_covers(&a->address, &b->address) ||
               wildcard_covers(&b->address, &a->address);
}

bool frontend_matches(const struct frontend *frontend, const struct address *address, uint16_t port, uint8_t protocol)
{
        if (frontend->port != port || frontend->protocol != protocol)
                return false;
        return address_equal(&frontend->address, address) || wildcard_covers(&frontend->address, address);
}

bool flow_equal(const struct flow *a, const struct flow *b)
{
        return address_equal(&a->source, &b->source) && address_equal(&a->destination, &b->destination) &&
               a->source_port == b->source_port && a->destination_port == b->destination_port && a->protocol == b->protocol;
}

char *flow_format(const struct flow *flow, char buffer[static FLOW_TEXT_MAX])
{
        char source[ENDPOINT_TEXT_MAX], destination[ENDPOINT_TEXT_MAX];

        snprintf(buffer, FLOW_TEXT_MAX, "%s %s > %s", protocol_to_string(flow->protocol),
                 endpoint_format(&flow->source, flow->source_port, source),
                 endpoint_format(&flow->destination, flow->destination_port, destination));
        return buffer;
}

const char *protocol_to_string(uint8_t protocol)
{
        switch (protocol) {
        case IPPROTO_TCP:
                return "tcp";
        case IPPROTO_UDP:
                return "udp";
        default:
                return "unknown";
        }
}
