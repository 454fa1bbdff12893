/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/nat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

enum {
        PATIENCE_MS = 50,
        ENTRY_SECONDS = 2,
};

static int open_socket(const struct address *address, uint16_t *ret_port)
{
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(address, 0, &name);
        _cleanup_(close_fdp) int fd = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&name, size) < 0 || getsockname(fd, (struct sockaddr *)&name, &size) < 0)
                return -errno;

        *ret_port = ntohs(name.ss_family == AF_INET ? ((struct sockaddr_in *)&name)->sin_port
                                                    : ((struct sockaddr_in6 *)&name)->sin6_port);
        return TAKE_FD(fd);
}

static int send_datagram(int fd, const struct flow *flow)
{
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(&flow->destination, flow->destination_port, &name);

        return sendto(fd, "", 1, 0, (struct sockaddr *)&name, size) < 0 ? -errno : 0;
}

int nat_probe(struct conntrack *conntrack, bool ipv4)
{
        struct address loopback = address_from_ipv4(htonl(INADDR_LOOPBACK));
        struct conntrack_translation translation = { .timeout_seconds = ENTRY_SECONDS };
        _cleanup_(close_fdp) int sender = -1, named = -1, meant = -1;
        struct flow flow = { .protocol = IPPROTO_UDP };
        struct pollfd ends[2];
        int r;

        if (!ipv4)
                loopback = address_from_bytes(AF_INET6, &in6addr_loopback);
        flow.source = flow.destination = translation.endpoint = loopback;
        if ((sender = r = open_socket(&loopback, &flow.source_port)) < 0 ||
            (named = r = open_socket(&loopback, &flow.destination_port)) < 0 ||
            (meant = r = open_socket(&loopback, &translation.port)) < 0)
                return r;

        r = conntrack_create(conntrack, &flow, &translation);
        if (r < 0)
                return r;

        r = send_datagram(sender, &flow);
        ends[0] = (struct pollfd){ .fd = meant, .events = POLLIN };
        ends[1] = (struct pollfd){ .fd = named, .events = POLLIN };
        if (r >= 0 && poll(ends, 2, PATIENCE_MS) < 0)
                r = -errno;
        (void)conntrack_delete(conntrack, &flow);
        return r < 0 ? r : ends[0].revents & POLLIN ? 1 : 0;
}
