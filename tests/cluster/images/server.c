/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server for pods: answers every request with "HOSTNAME PEER" and goes on with the connection.
 *
 *     server [PORT [LISTEN_AFTER_MS]]
 *
 * A request for /after/MS is answered after so many milliseconds.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve.h"

/* Returns after how many milliseconds a request is to be answered, or -1 when there is no more. */
static int read_delay(int fd)
{
        char request[8192];
        int after_ms = 0;

        if (read_request(fd, request, sizeof(request)) < 0)
                return -1;
        sscanf(request, "GET /after/%d", &after_ms);
        return after_ms;
}

static void peer_name(int fd, char *name, size_t size)
{
        struct sockaddr_in6 peer = { 0 };
        socklen_t length = sizeof(peer);

        getpeername(fd, (struct sockaddr *)&peer, &length);
        if (IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr))
                inet_ntop(AF_INET, &peer.sin6_addr.s6_addr[12], name, (socklen_t)size);
        else
                inet_ntop(AF_INET6, &peer.sin6_addr, name, (socklen_t)size);
}

static void *converse(void *argument)
{
        int fd = (int)(intptr_t)argument;
        const char *host = getenv("HOSTNAME");
        char peer[INET6_ADDRSTRLEN], body[512], answer[1024];
        int after_ms;

        peer_name(fd, peer, sizeof(peer));
        snprintf(body, sizeof(body), "%s %s\n", host ? host : "?", peer);
        snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        while ((after_ms = read_delay(fd)) >= 0) {
                usleep((useconds_t)after_ms * 1000);
                if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
                        break;
        }
        close(fd);
        return NULL;
}

int main(int argc, char **argv)
{
        int port = argc > 1 ? atoi(argv[1]) : 8080;
        int fd;

        signal(SIGTERM, end);
        signal(SIGINT, end);
        if (argc > 2)
                usleep((useconds_t)atoi(argv[2]) * 1000);
        fd = listen_on((uint16_t)port);
        for (;;) {
                int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
                pthread_t thread;

                if (connection < 0)
                        continue;
                if (pthread_create(&thread, NULL, converse, (void *)(intptr_t)connection) != 0)
                        close(connection);
                else
                        pthread_detach(thread);
        }
}
