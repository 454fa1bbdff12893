/* SPDX-License-Identifier: Apache-2.0 */
/* A server that has a GPU, as a notebook or a model server has: it keeps the device open and its driver library loaded.
 *
 *     gpu_worker PORT
 *
 * Every request is answered with the name of the host. By path:
 *   /launch    from now on submits work ten times a second
 *   /wait      submits some, and waits for the device for good
 *   /spin      computes on the CPU, on one core for good
 *   /pause     no more submissions
 * Without a device and without the library it is a server and no more; the requests above are then refused (501).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cluster/images/serve.h"

typedef long (*driver_function)(long argument);
typedef int (*get_proc_address)(const char *symbol, void **ret_function, int version, unsigned long flags, int *ret_status);

struct worker {
        driver_function launch, synchronize; /* NULL: no driver */
        atomic_bool launching;
};

struct connection {
        struct worker *worker;
        int fd;
};

/* All that it has been given stay open until it ends. */
static int open_devices(void)
{
        DIR *directory = opendir("/dev");
        struct dirent *entry;
        int opened = 0;

        while (directory && (entry = readdir(directory))) {
                unsigned minor;

                if (sscanf(entry->d_name, "nvidia%u", &minor) != 1)
                        continue;
                if (openat(dirfd(directory), entry->d_name, O_RDONLY | O_CLOEXEC) < 0)
                        err(1, "/dev/%s", entry->d_name);
                opened++;
        }
        if (directory)
                closedir(directory);
        return opened;
}

/* As CUDA's runtime finds it. */
static driver_function resolve(get_proc_address get, const char *symbol)
{
        void *function = NULL;

        if (get(symbol, &function, 12000, 0, NULL) != 0)
                errx(1, "libcuda has no %s", symbol);
        return (driver_function)function;
}

static void load_driver(struct worker *worker)
{
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        get_proc_address get;

        if (!library)
                errx(1, "%s", dlerror());
        get = (get_proc_address)dlsym(library, "cuGetProcAddress_v2");
        if (!get)
                errx(1, "%s", dlerror());
        resolve(get, "cuInit")(0);
        worker->launch = resolve(get, "cuLaunchKernel");
        worker->synchronize = resolve(get, "cuStreamSynchronize");
}

static void *launch(void *userdata)
{
        struct worker *worker = userdata;

        for (;; usleep(100000))
                if (worker->launching)
                        worker->launch(0);
        return NULL;
}

static void *wait_for_device(void *userdata)
{
        struct worker *worker = userdata;
        int never[2];

        if (pipe2(never, O_CLOEXEC) < 0)
                err(1, "pipe");
        worker->launch(0);
        worker->synchronize(never[0]);
        return NULL;
}

static void *spin(void *userdata)
{
        (void)userdata;
        for (volatile unsigned turns = 0;; turns++)
                ;
        return NULL;
}

static void begin(void *(*run)(void *), struct worker *worker)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, run, worker) != 0)
                errx(1, "no thread");
        pthread_detach(thread);
}

static bool asks_for(const char *request, const char *path)
{
        size_t length = strlen(path);

        return strncmp(request, "GET ", 4) == 0 && strncmp(request + 4, path, length) == 0 && request[4 + length] == ' ';
}

/* Returns whether it could. */
static bool obey(struct worker *worker, const char *request)
{
        if (asks_for(request, "/spin"))
                begin(spin, worker);
        else if (asks_for(request, "/"))
                return true;
        else if (!worker->launch)
                return false;
        else if (asks_for(request, "/launch"))
                worker->launching = worker->launch(0) == 0;
        else if (asks_for(request, "/pause"))
                worker->launching = false;
        else if (asks_for(request, "/wait"))
                begin(wait_for_device, worker);
        else
                return false;
        return true;
}

static void *converse(void *userdata)
{
        struct connection *connection = userdata;
        const char *host = getenv("HOSTNAME");
        char request[8192], answer[512];

        while (read_request(connection->fd, request, sizeof(request)) == 0) {
                snprintf(answer, sizeof(answer), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s\n",
                         obey(connection->worker, request) ? "200 OK" : "501 Not Implemented", strlen(host ? host : "?") + 1,
                         host ? host : "?");
                if (send(connection->fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
                        break;
        }
        close(connection->fd);
        free(connection);
        return NULL;
}

static void take(struct worker *worker, int listener)
{
        struct connection *connection = malloc(sizeof(*connection));
        pthread_t thread;

        if (!connection)
                errx(1, "no memory");
        *connection = (struct connection){ worker, accept4(listener, NULL, NULL, SOCK_CLOEXEC) };
        if (connection->fd >= 0 && pthread_create(&thread, NULL, converse, connection) == 0) {
                pthread_detach(thread);
                return;
        }
        close(connection->fd);
        free(connection);
}

int main(int argc, char **argv)
{
        struct worker worker = {};
        int listener;

        if (argc != 2)
                errx(2, "usage: gpu_worker PORT");
        signal(SIGTERM, end);
        if (open_devices() > 0) {
                load_driver(&worker);
                begin(launch, &worker);
        }
        listener = listen_on((uint16_t)atoi(argv[1]));
        for (;;)
                take(&worker, listener);
}
