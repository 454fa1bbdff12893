/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/egress.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { DISCARD_PORT = 9 };

int egress_address(const struct address *towards, struct address *ret_address)
{
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(towards, DISCARD_PORT, &name);
        _cleanup_(close_fdp) int fd = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&name, size) < 0)
                return -errno;

        size = sizeof(name);
        if (getsockname(fd, (struct sockaddr *)&name, &size) < 0)
                return -errno;

        if (name.ss_family == AF_INET)
                *ret_address = address_from_ipv4(((struct sockaddr_in *)&name)->sin_addr.s_addr);
        else
                *ret_address = address_from_bytes(AF_INET6, &((struct sockaddr_in6 *)&name)->sin6_addr);
        return 0;
}

int egress_primary(bool ipv4, struct address *ret_address)
{
        struct address anywhere;

        /* Of the documentation's ranges (RFC 5737, RFC 3849): no host has one, so the default route decides. */
        if (address_parse(ipv4 ? "192.0.2.1" : "2001:db8::1", &anywhere) < 0)
                return -EINVAL;
        return egress_address(&anywhere, ret_address);
}
