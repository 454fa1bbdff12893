/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/scope.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static void freeifaddrsp(struct ifaddrs **interfaces)
{
        if (*interfaces)
                freeifaddrs(*interfaces);
}

static bool is_link_local(const struct address *address)
{
        return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

uint32_t scope_of(const struct address *address)
{
        _cleanup_(freeifaddrsp) struct ifaddrs *interfaces = NULL;

        if (!is_link_local(address) || getifaddrs(&interfaces) < 0)
                return 0;

        for (const struct ifaddrs *i = interfaces; i; i = i->ifa_next) {
                const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)i->ifa_addr;

                if (in6 && in6->sin6_family == AF_INET6 && memcmp(&in6->sin6_addr, address->bytes, sizeof(address->bytes)) == 0)
                        return if_nametoindex(i->ifa_name);
        }
        return 0;
}
