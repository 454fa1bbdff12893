/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/detacher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macros.h"

struct detacher {
        sd_event *event;
        sd_event_source *start; /* of the next child, once in this round of the loop */
        sd_event_source *child; /* its end of a pipe, open while it is at work */
        int *waiting;
        size_t n_waiting, allocated;
        bool ending;
};

static int by_number(const void *a, const void *b)
{
        int left = *(const int *)a, right = *(const int *)b;

        return (left > right) - (left < right);
}

/* What else the daemon has open must not stay open for as long as the child lives. @fds ascend. */
static void close_others(const int *fds, size_t n)
{
        unsigned next = 0;

        for (size_t i = 0; i < n; i++) {
                if ((unsigned)fds[i] > next)
                        close_range(next, (unsigned)fds[i] - 1, 0);
                next = (unsigned)fds[i] + 1;
        }
        close_range(next, ~0U, 0);
}

/* In the child, whose parent closes its own descriptors first, then @go: the last close is ours. Its end of @done it keeps open till
 * it ends. */
static _Noreturn void child_run(int *fds, size_t n, int go, int done)
{
        int *kept = calloc(n + 2, sizeof(*kept));
        char byte;

        if (!kept)
                _exit(1);
        memcpy(kept, fds, n * sizeof(*fds));
        kept[n] = go;
        kept[n + 1] = done;
        qsort(kept, n + 2, sizeof(*kept), by_number);
        close_others(kept, n + 2);
        while (read(go, &byte, 1) < 0 && errno == EINTR)
                ;
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
        _exit(0);
}

/* A child of a child is nobody's to wait for. */
static int fork_orphan(void)
{
        pid_t child = fork();

        if (child < 0)
                return -errno;
        if (child == 0) {
                child = fork();
                if (child == 0)
                        return 0;
                _exit(child < 0);
        }
        for (int status;;) {
                if (waitpid(child, &status, 0) >= 0)
                        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : -EAGAIN;
                if (errno != EINTR)
                        return -errno;
        }
}

static void close_all(const int *fds, size_t n)
{
        for (size_t i = 0; i < n; i++)
                close_fd(fds[i]);
}

static void request_start(struct detacher *detacher)
{
        if (!detacher->child && detacher->n_waiting)
                sd_event_source_set_enabled(detacher->start, SD_EVENT_ONESHOT);
}

static int on_child_done(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct detacher *detacher = userdata;

        detacher->child = sd_event_source_disable_unref(detacher->child);
        request_start(detacher);
        return 0;
}

static void close_pipe(int (*pipe_fds)[2])
{
        close_fd((*pipe_fds)[0]);
        close_fd((*pipe_fds)[1]);
}

/* Gives it all that waits; it closes that when *ret_go is closed. */
static int start_child(struct detacher *detacher, int *ret_go)
{
        _cleanup_(close_pipe) int go[2] = { -1, -1 };
        _cleanup_(close_pipe) int done[2] = { -1, -1 };
        _cleanup_(sd_event_source_disable_unrefp) sd_event_source *child = NULL;
        int r;

        if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
                return -errno;
        if (!detacher->ending) { /* the loop may have ended already */
                r = sd_event_add_io(detacher->event, &child, done[0], EPOLLIN, on_child_done, detacher);
                if (r < 0)
                        return r;
        }
        r = fork_orphan();
        if (r == 0)
                child_run(detacher->waiting, detacher->n_waiting, go[0], done[1]);
        if (r < 0)
                return r;
        if (child) {
                sd_event_source_set_io_fd_own(child, true);
                done[0] = -1;
                detacher->child = TAKE_PTR(child);
        }
        *ret_go = TAKE_FD(go[1]);
        return 0;
}

/* Our close comes before the child's: it waits for the pipe to end. Without a child all are closed here. */
static int on_start(sd_event_source *source, void *userdata)
{
        struct detacher *detacher = userdata;
        _cleanup_(close_fdp) int go = -1;
        int r = start_child(detacher, &go);

        if (r < 0)
                log_warning("gpu: no process to take probes off, so the daemon waits for it: %s", strerror(-r));
        close_all(detacher->waiting, detacher->n_waiting);
        detacher->n_waiting = 0;
        return 0;
}

static int keep_waiting(struct detacher *detacher, const int *fds, size_t n)
{
        size_t needed = detacher->n_waiting + n;

        if (needed > detacher->allocated) {
                int *waiting = reallocarray(detacher->waiting, needed, sizeof(*waiting));

                if (!waiting)
                        return -ENOMEM;
                detacher->waiting = waiting;
                detacher->allocated = needed;
        }
        memcpy(detacher->waiting + detacher->n_waiting, fds, n * sizeof(*fds));
        detacher->n_waiting = needed;
        return 0;
}

void detacher_close(struct detacher *detacher, const int *fds, size_t n)
{
        if (n == 0)
                return;
        if (keep_waiting(detacher, fds, n) < 0)
                close_all(fds, n);
        request_start(detacher);
}

bool detacher_busy(const struct detacher *detacher)
{
        return detacher->child || detacher->n_waiting;
}

int detacher_new(sd_event *event, struct detacher **ret_detacher)
{
        struct detacher *detacher = calloc(1, sizeof(*detacher));
        int r;

        if (!detacher)
                return -ENOMEM;
        detacher->event = sd_event_ref(event);
        r = sd_event_add_defer(event, &detacher->start, on_start, detacher);
        if (r >= 0)
                r = sd_event_source_set_enabled(detacher->start, SD_EVENT_OFF);
        if (r < 0) {
                detacher_free(detacher);
                return r;
        }
        *ret_detacher = detacher;
        return 0;
}

struct detacher *detacher_free(struct detacher *detacher)
{
        if (!detacher)
                return NULL;

        detacher->ending = true;
        if (detacher->n_waiting)
                on_start(NULL, detacher);
        sd_event_source_disable_unref(detacher->child);
        sd_event_source_disable_unref(detacher->start);
        sd_event_unref(detacher->event);
        free(detacher->waiting);
        free(detacher);
        return NULL;
}
