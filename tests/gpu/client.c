/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses a GPU's driver library, one command a line on stdin, each answered by a line.
 *
 *   open PATH            loads a library, as cudart loads libcuda           close    unloads it
 *   call SYMBOL N        calls it N times        thread SYMBOL N    from another thread
 *   launch N             calls cuLaunchKernel as a program that is linked with libcuda does (in client-linked)
 *   begin SYMBOL         a thread begins to wait in it                      release  lets one of those go on, and waits for it
 *   abandon SYMBOL       a wait is left by siglongjmp
 *   pace SYMBOL RATE MS  calls it RATE times a second for MS milliseconds; the answer: calls, and nanoseconds of CPU
 *   map PATH             maps a file as code
 *   hold PATH            opens it, and keeps it open
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef long (*driver_function)(long argument);
typedef int (*get_proc_address)(const char *symbol, void **ret_function, int version, unsigned long flags, int *ret_status);

enum { WAITING_MAX = 16 };

struct client {
        void *library;
        struct {
                pthread_t thread;
                int pipe[2]; /* what it waits for */
        } waiting[WAITING_MAX];
        int n_waiting;
};

struct job {
        driver_function function;
        long times, argument;
};

static sigjmp_buf abandoned;

/* Of CUDA, as cudart finds it. */
static driver_function resolve(const struct client *client, const char *symbol)
{
        get_proc_address get = (get_proc_address)dlsym(client->library ? client->library : RTLD_DEFAULT, "cuGetProcAddress_v2");
        void *function = NULL;

        if (!get || get(symbol, &function, 12000, 0, NULL) != 0)
                function = dlsym(client->library ? client->library : RTLD_DEFAULT, symbol);
        if (!function) {
                fprintf(stderr, "client: no %s\n", symbol);
                exit(1);
        }
        return (driver_function)function;
}

static void *run(void *userdata)
{
        struct job *job = userdata;

        for (long i = 0; i < job->times; i++)
                job->function(job->argument);
        free(job);
        return NULL;
}

static pthread_t start(struct job job)
{
        struct job *copy = malloc(sizeof(*copy));
        pthread_t thread;

        *copy = job;
        if (pthread_create(&thread, NULL, run, copy) != 0)
                abort();
        return thread;
}

static uint64_t now_ns(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* In bursts of a millisecond, as a program that launches many small kernels does. */
static void pace(driver_function function, long rate, long milliseconds)
{
        uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), began = now_ns(CLOCK_MONOTONIC);
        long calls = 0;

        for (long tick = 1; tick <= milliseconds; tick++) {
                uint64_t end = began + (uint64_t)tick * 1000000;
                struct timespec until = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

                for (; calls < rate * tick / 1000; calls++)
                        function(0);
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        printf("%ld %llu\n", calls, (unsigned long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu));
}

static void leave(int signal)
{
        (void)signal;
        siglongjmp(abandoned, 1);
}

static void abandon(driver_function function)
{
        int never[2];
        struct itimerval soon = { .it_value.tv_usec = 10000 };

        if (pipe(never) < 0)
                abort();
        signal(SIGALRM, leave);
        if (sigsetjmp(abandoned, 1) == 0) {
                setitimer(ITIMER_REAL, &soon, NULL);
                function(never[0]);
        }
        puts("left");
}

#ifdef CLIENT_LINKED
long cuLaunchKernel(long stream);

static void launch(long times)
{
        for (long i = 0; i < times; i++)
                cuLaunchKernel(0);
}
#else
static void launch(long times)
{
        (void)times;
        abort();
}
#endif

static void map(const char *path)
{
        int fd = open(path, O_RDONLY);

        if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
                abort();
        close(fd);
}

static void hold(const char *path)
{
        puts(open(path, O_RDONLY | O_CLOEXEC) < 0 ? strerror(errno) : "held");
}

static void begin(struct client *client, driver_function function)
{
        int n = client->n_waiting++;

        if (n == WAITING_MAX || pipe(client->waiting[n].pipe) < 0)
                abort();
        client->waiting[n].thread = start((struct job){ function, 1, client->waiting[n].pipe[0] });
}

static void release(struct client *client)
{
        int n = --client->n_waiting;

        if (n < 0 || write(client->waiting[n].pipe[1], "", 1) != 1)
                abort();
        pthread_join(client->waiting[n].thread, NULL);
}

static void obey(struct client *client, const char *command, const char *what, long number, long other)
{
        if (strcmp(command, "open") == 0) {
                client->library = dlopen(what, RTLD_NOW | RTLD_LOCAL);
                puts(client->library ? "opened" : dlerror());
        } else if (strcmp(command, "close") == 0) {
                puts(dlclose(client->library) == 0 ? "closed" : dlerror());
        } else if (strcmp(command, "call") == 0) {
                driver_function function = resolve(client, what);

                for (long i = 0; i < number; i++)
                        function(0);
                puts("called");
        } else if (strcmp(command, "thread") == 0) {
                pthread_join(start((struct job){ resolve(client, what), number, 0 }), NULL);
                puts("called");
        } else if (strcmp(command, "launch") == 0) {
                launch(atol(what));
                puts("called");
        } else if (strcmp(command, "begin") == 0) {
                begin(client, resolve(client, what));
                puts("begun");
        } else if (strcmp(command, "release") == 0) {
                release(client);
                puts("released");
        } else if (strcmp(command, "abandon") == 0) {
                abandon(resolve(client, what));
        } else if (strcmp(command, "pace") == 0) {
                pace(resolve(client, what), number, other);
        } else if (strcmp(command, "map") == 0) {
                map(what);
                puts("mapped");
        } else if (strcmp(command, "hold") == 0) {
                hold(what);
        } else {
                abort();
        }
}

int main(void)
{
        struct client client = {};
        char line[1024];

        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                char command[16] = "", what[1000] = "";
                long number = 0, other = 0;

                sscanf(line, "%15s %999s %ld %ld", command, what, &number, &other);
                obey(&client, command, what, number, other);
                fflush(stdout);
        }
        return 0;
}
