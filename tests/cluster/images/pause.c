/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a pod's namespaces; as process 1 of a pod that shares its process namespace it also reaps. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number)
{
        _exit(number == SIGINT || number == SIGTERM ? 0 : 1);
}

static void reap(int number)
{
        (void)number;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
}

int main(void)
{
        signal(SIGINT, end);
        signal(SIGTERM, end);
        signal(SIGCHLD, reap);
        for (;;)
                pause();
}
