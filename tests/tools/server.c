/* SPDX-License-Identifier: Apache-2.0 */
/* A server that misbehaves on request.
 *
 *     server [OPTION…] tcp/ADDRESS:PORT|udp/ADDRESS:PORT…
 *
 *     --backlog N            of listen(); default 128
 *     --wait MS              before it listens
 *     --accept-every MS      pause between two accept()s
 *     --answer-after MS      time an answer takes
 *     --greet TEXT           says so first, as SMTP does
 *     --exit STATUS          ends after --wait instead of listening
 *     --burn                 keeps one CPU busy
 *     --ignore-term          does not end at SIGTERM
 *     --v6only               leaves IPv4 to another socket of the same port
 *
 * TCP: each piece received is answered by "HTTP/1.1 200 OK" with the process id as its body. UDP: each datagram is answered by
 * "NUMBER LENGTH START": how many came before it, its length, its first 32 bytes.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct settings {
        int backlog;
        unsigned wait_ms, accept_every_ms, answer_after_ms;
        const char *greeting;
        int exit_status; /* -1: listen */
        bool burn, ignore_term, v6only;
};

struct connection {
        const struct settings *settings;
        int fd;
};

static void sleep_ms(unsigned ms)
{
        struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

static void in_thread(void *(*run)(void *), void *argument)
{
        pthread_attr_t attributes;
        pthread_t thread;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 256 * 1024);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (pthread_create(&thread, &attributes, run, argument) != 0)
                errx(1, "cannot start a thread");
        pthread_attr_destroy(&attributes);
}

static struct connection *connection_new(const struct settings *settings, int fd)
{
        struct connection *connection = malloc(sizeof(*connection));

        if (!connection)
                err(1, "malloc");
        *connection = (struct connection){ .settings = settings, .fd = fd };
        return connection;
}

static void *converse(void *argument)
{
        struct connection *connection = argument;
        const struct settings *settings = connection->settings;
        char request[4096], body[32], answer[128];

        if (settings->greeting && send(connection->fd, settings->greeting, strlen(settings->greeting), MSG_NOSIGNAL) < 0)
                goto hang_up;

        while (recv(connection->fd, request, sizeof(request), 0) > 0) {
                int body_length = snprintf(body, sizeof(body), "%d\n", getpid());
                int length = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", body_length, body);

                sleep_ms(settings->answer_after_ms);
                if (send(connection->fd, answer, (size_t)length, MSG_NOSIGNAL) < 0)
                        break;
        }
hang_up:
        close(connection->fd);
        free(connection);
        return NULL;
}

static void *serve_tcp(void *argument)
{
        struct connection *listener = argument;

        for (;;) {
                int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

                if (fd >= 0)
                        in_thread(converse, connection_new(listener->settings, fd));
                sleep_ms(listener->settings->accept_every_ms);
        }
        return NULL;
}

static void *serve_udp(void *argument)
{
        struct connection *socket = argument;
        static char datagram[65536];
        char answer[128];

        for (unsigned number = 0;; number++) {
                struct sockaddr_storage from;
                socklen_t from_length = sizeof(from);
                ssize_t length = recvfrom(socket->fd, datagram, sizeof(datagram), 0, (struct sockaddr *)&from, &from_length);
                int answer_length;

                if (length < 0)
                        continue;
                answer_length =
                        snprintf(answer, sizeof(answer), "%u %zd %.*s", number, length, (int)(length < 32 ? length : 32), datagram);
                sleep_ms(socket->settings->answer_after_ms);
                sendto(socket->fd, answer, (size_t)answer_length, 0, (struct sockaddr *)&from, from_length);
        }
        return NULL;
}

static socklen_t parse_address(char *text, struct sockaddr_storage *ret_address)
{
        char *colon = strrchr(text, ':');
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;

        if (!colon)
                errx(2, "%s: no port", text);
        *colon = '\0';
        memset(ret_address, 0, sizeof(*ret_address));

        if (*text == '[') {
                text[strlen(text) - 1] = '\0';
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)atoi(colon + 1));
                if (inet_pton(AF_INET6, text + 1, &v6->sin6_addr) != 1)
                        errx(2, "%s: not an address", text + 1);
                return sizeof(*v6);
        }

        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)atoi(colon + 1));
        if (inet_pton(AF_INET, text, &v4->sin_addr) != 1)
                errx(2, "%s: not an address", text);
        return sizeof(*v4);
}

static void serve(const struct settings *settings, const char *where)
{
        bool tcp = strncmp(where, "tcp/", 4) == 0;
        struct sockaddr_storage address;
        char text[128];
        socklen_t length;
        int fd, on = 1;

        snprintf(text, sizeof(text), "%s", where + 4);
        length = parse_address(text, &address);

        fd = socket(address.ss_family, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
        if (fd < 0)
                err(1, "socket");
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (address.ss_family == AF_INET6 && settings->v6only)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *)&address, length) < 0)
                err(1, "bind to %s", where);
        if (tcp && listen(fd, settings->backlog) < 0)
                err(1, "listen on %s", where);

        in_thread(tcp ? serve_tcp : serve_udp, connection_new(settings, fd));
}

static void *burn(void *argument)
{
        for (volatile unsigned long turns = 0;; turns++)
                ;
        return NULL;
}

static void parse_options(int argc, char **argv, struct settings *settings)
{
        static const struct option options[] = {
                { "backlog", required_argument, NULL, 'b' },
                { "wait", required_argument, NULL, 'w' },
                { "accept-every", required_argument, NULL, 'a' },
                { "answer-after", required_argument, NULL, 's' },
                { "greet", required_argument, NULL, 'g' },
                { "exit", required_argument, NULL, 'e' },
                { "burn", no_argument, NULL, 'u' },
                { "ignore-term", no_argument, NULL, 't' },
                { "v6only", no_argument, NULL, '6' },
                {},
        };

        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;)
                switch (option) {
                case 'b':
                        settings->backlog = atoi(optarg);
                        break;
                case 'w':
                        settings->wait_ms = (unsigned)atoi(optarg);
                        break;
                case 'a':
                        settings->accept_every_ms = (unsigned)atoi(optarg);
                        break;
                case 's':
                        settings->answer_after_ms = (unsigned)atoi(optarg);
                        break;
                case 'g':
                        settings->greeting = optarg;
                        break;
                case 'e':
                        settings->exit_status = atoi(optarg);
                        break;
                case 'u':
                        settings->burn = true;
                        break;
                case 't':
                        settings->ignore_term = true;
                        break;
                case '6':
                        settings->v6only = true;
                        break;
                default:
                        errx(2, "see the head of server.c");
                }
}

int main(int argc, char **argv)
{
        struct settings settings = { .backlog = 128, .exit_status = -1 };

        parse_options(argc, argv, &settings);
        if (settings.ignore_term)
                signal(SIGTERM, SIG_IGN);
        sleep_ms(settings.wait_ms);
        if (settings.exit_status >= 0) {
                warnx("told to exit with status %d", settings.exit_status);
                return settings.exit_status;
        }

        for (int i = optind; i < argc; i++)
                serve(&settings, argv[i]);
        if (settings.burn)
                in_thread(burn, NULL);
        for (;;)
                pause();
}
