/* SPDX-License-Identifier: Apache-2.0 */
/* How long a server takes by itself: starts it, connects until it answers, prints the nanoseconds, and kills it.
 *
 *     time_start ADDRESS PORT COMMAND…
 *
 * A refused connect costs some microseconds, so that asking every 100 us takes little of the CPU from the server.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int answers(const struct sockaddr_in *address)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                err(1, "socket");
        r = connect(fd, (const struct sockaddr *)address, sizeof(*address));
        close(fd);
        return r == 0;
}

/* In a session of its own, as lulld does it: sessions share the CPU evenly (sched_autogroup_enabled). */
static pid_t start(char **command)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        pid_t pid;

        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        errno = posix_spawnp(&pid, command[0], &actions, &attributes, command, environ);
        if (errno != 0)
                err(1, "%s", command[0]);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        return pid;
}

int main(int argc, char **argv)
{
        struct sockaddr_in address = { .sin_family = AF_INET };
        const struct timespec pause = { .tv_nsec = 100000 };
        int64_t began;
        pid_t pid;

        if (argc < 4 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
                errx(2, "time_start ADDRESS PORT COMMAND...");
        address.sin_port = htons((uint16_t)atoi(argv[2]));

        began = now_ns();
        pid = start(argv + 3);
        while (!answers(&address)) {
                if (waitpid(pid, NULL, WNOHANG) == pid)
                        errx(1, "%s has ended", argv[3]);
                nanosleep(&pause, NULL);
        }
        printf("%lld\n", (long long)(now_ns() - began));

        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return 0;
}
