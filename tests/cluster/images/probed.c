/* SPDX-License-Identifier: Apache-2.0 */
/* An application with a readiness of its own, which tells what it met:
 *
 *     probed PORT LISTEN_AFTER_MS READY_AFTER_MS
 *
 * It listens after LISTEN_AFTER_MS and is ready READY_AFTER_MS later. By path:
 *   /              200 when ready, else 503
 *   /header        the same with a header "X-Ready: yes", else 401
 *   /redirect      302 to /        /elsewhere  302 to another host       /missing  404
 *   /met           JSON: "listening", "ready", "accepted" (of this connection): CLOCK_MONOTONIC ns; "kubelet" and "lull": the heads
 *                  of the last request of each
 */
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve.h"

enum { HEAD_MAX = 2048 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char kubelet_head[HEAD_MAX], lull_head[HEAD_MAX];
static uint64_t listening_ns, ready_ns;

struct connection {
        int fd;
        uint64_t accepted_ns;
};

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void remember(const char *head)
{
        const char *agent = strstr(head, "User-Agent: kube-probe/");

        if (!agent)
                return;
        pthread_mutex_lock(&lock);
        strcpy(strstr(agent, "lull") ? lull_head : kubelet_head, head);
        pthread_mutex_unlock(&lock);
}

static void write_text(FILE *out, const char *name, const char *text)
{
        fprintf(out, ", \"%s\": \"", name);
        for (; *text; text++)
                if (*text == '\r')
                        fputs("\\r", out);
                else if (*text == '\n')
                        fputs("\\n", out);
                else if (*text != '"' && *text != '\\')
                        fputc(*text, out);
        fputc('"', out);
}

static void answer_met(FILE *out, const struct connection *connection)
{
        char *body = NULL;
        size_t size = 0;
        FILE *text = open_memstream(&body, &size);

        fprintf(text, "{\"listening\": %ju, \"ready\": %ju, \"accepted\": %ju", (uintmax_t)listening_ns, (uintmax_t)ready_ns,
                (uintmax_t)connection->accepted_ns);
        pthread_mutex_lock(&lock);
        write_text(text, "kubelet", kubelet_head);
        write_text(text, "lull", lull_head);
        pthread_mutex_unlock(&lock);
        fputs("}\n", text);
        fclose(text);
        fprintf(out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", size, body);
        free(body);
}

static void answer(FILE *out, const char *head, const struct connection *connection)
{
        static const char empty[] = "Content-Length: 0\r\n\r\n";

        if (strncmp(head, "GET /met ", 9) == 0)
                answer_met(out, connection);
        else if (strncmp(head, "GET /redirect ", 14) == 0)
                fprintf(out, "HTTP/1.1 302 Found\r\nLocation: /\r\n%s", empty);
        else if (strncmp(head, "GET /elsewhere ", 15) == 0)
                fprintf(out, "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n%s", empty);
        else if (strncmp(head, "GET /missing ", 13) == 0)
                fprintf(out, "HTTP/1.1 404 Not Found\r\n%s", empty);
        else if (strncmp(head, "GET /header ", 12) == 0 && !strstr(head, "\r\nX-Ready: yes\r\n"))
                fprintf(out, "HTTP/1.1 401 Unauthorized\r\n%s", empty);
        else
                fprintf(out, "HTTP/1.1 %s\r\nContent-Length: 6\r\n\r\nhello\n",
                        now_ns() >= ready_ns ? "200 OK" : "503 Service Unavailable");
        fflush(out);
}

static void *converse(void *argument)
{
        struct connection *connection = argument;
        FILE *out = fdopen(connection->fd, "w");
        char head[HEAD_MAX];

        while (read_request(connection->fd, head, sizeof(head)) == 0) {
                remember(head);
                answer(out, head, connection);
        }
        fclose(out);
        free(connection);
        return NULL;
}

static void take(int listener)
{
        struct connection *connection = malloc(sizeof(*connection));
        pthread_t thread;

        connection->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        connection->accepted_ns = now_ns();
        if (connection->fd >= 0 && pthread_create(&thread, NULL, converse, connection) == 0) {
                pthread_detach(thread);
                return;
        }
        close(connection->fd);
        free(connection);
}

int main(int argc, char **argv)
{
        int listener;

        if (argc != 4)
                errx(2, "usage: probed PORT LISTEN_AFTER_MS READY_AFTER_MS");
        signal(SIGTERM, end);
        signal(SIGPIPE, SIG_IGN);
        usleep((useconds_t)atoi(argv[2]) * 1000);
        listening_ns = now_ns();
        ready_ns = listening_ns + (uint64_t)atoi(argv[3]) * 1000000;
        listener = listen_on((uint16_t)atoi(argv[1]));
        for (;;)
                take(listener);
}
