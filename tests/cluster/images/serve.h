/* SPDX-License-Identifier: Apache-2.0 */
/* What a server needs that is process 1 of its pod. */
#pragma once

#include <err.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The handler of the signals that end it: process 1 has no default action. */
static inline void end(int number)
{
        (void)number;
        _exit(0);
}

/* Ends the program where @port cannot be had. */
static inline int listen_on(uint16_t port)
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

/* A request without a body, which ends at its first empty line, as a string. Returns 0, or -1 where the connection ends before or @buffer is
 * too small. */
static inline int read_request(int fd, char *buffer, size_t size)
{
        size_t length = 0;

        while (length < size - 1) {
                ssize_t more = recv(fd, buffer + length, size - 1 - length, 0);

                if (more <= 0)
                        return -1;
                length += (size_t)more;
                buffer[length] = '\0';
                if (strstr(buffer, "\r\n\r\n"))
                        return 0;
        }
        return -1;
}
