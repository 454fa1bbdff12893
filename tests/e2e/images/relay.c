/* SPDX-License-Identifier: Apache-2.0 */
/* A service that needs another: passes each connection on, once its client has said something.
 *
 *     relay PORT ADDRESS PORT
 *
 * A client that says nothing, as a TCP probe, thus asks nothing of the other service.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cluster/images/serve.h"

static struct sockaddr_in other;

/* Returns whether there may be more. */
static int pass_on(int from, int to)
{
        char buffer[8192];
        ssize_t length = recv(from, buffer, sizeof(buffer), 0);

        return length > 0 && send(to, buffer, (size_t)length, MSG_NOSIGNAL) == length;
}

static void *converse(void *argument)
{
        struct pollfd ends[2] = { { .fd = (int)(intptr_t)argument, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
        int connection = -1;

        if (poll(ends, 1, -1) == 1 && recv(ends[0].fd, &(char){ 0 }, 1, MSG_PEEK) == 1) {
                connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (connect(connection, (struct sockaddr *)&other, sizeof(other)) == 0)
                        ends[1].fd = connection;
        }
        while (ends[1].fd >= 0 && poll(ends, 2, -1) > 0)
                if ((ends[0].revents && !pass_on(ends[0].fd, ends[1].fd)) || (ends[1].revents && !pass_on(ends[1].fd, ends[0].fd)))
                        break;
        if (connection >= 0)
                close(connection);
        close(ends[0].fd);
        return NULL;
}

int main(int argc, char **argv)
{
        int fd;

        if (argc != 4)
                errx(2, "usage: relay PORT ADDRESS PORT");
        signal(SIGTERM, end);
        other = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3])) };
        if (inet_pton(AF_INET, argv[2], &other.sin_addr) != 1)
                errx(2, "%s is no address", argv[2]);
        fd = listen_on((uint16_t)atoi(argv[1]));
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
