/* SPDX-License-Identifier: Apache-2.0 */
/* What a server needs that is process 1 of its pod. */
#pragma once

#include <err.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* The handler of the signals that end it: process 1 has no default action. */
static void end(int number)
{
        (void)number;
        _exit(0);
}

/* Ends the program where @port cannot be had. */
static int listen_on(uint16_t port)
{
        struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT };
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

        if (fd < 0)
                err(1, "socket");
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 4096) < 0)
                err(1, "port %u", port);
        return fd;
}
