/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvml.h"

#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/time.h"

#define DEADLINE_NS (3 * NSEC_PER_SEC)
#define PAUSE_MIN_NS (5 * NSEC_PER_SEC)
#define PAUSE_MAX_NS (300 * NSEC_PER_SEC)

enum { READER_FD = 3 }; /* the reader's only descriptor but for the standard ones */

struct nvml {
        sd_event *event;
        char *library;
        void (*done)(void *userdata);
        void *userdata;

        pid_t reader; /* 0: none */
        int fd;       /* to the reader */
        bool asked;   /* it has not answered yet */
        sd_event_source *answers, *deadline;
        struct nvml_snapshot *shared; /* the reader writes it, between a question and its answer */
        struct nvml_snapshot latest;

        uint64_t pause_ns, next_ns; /* after a failure, when the next reader may begin */
};

static struct nvml_snapshot *map_snapshot(void)
{
        void *memory = mmap(NULL, sizeof(struct nvml_snapshot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

int nvml_new(sd_event *event, const char *library, struct nvml **ret_nvml)
{
        struct nvml *nvml = calloc(1, sizeof(*nvml));
        int r = -ENOMEM;

        if (!nvml)
                return -ENOMEM;
        nvml->event = sd_event_ref(event);
        nvml->fd = -1;
        nvml->pause_ns = PAUSE_MIN_NS;
        nvml->shared = map_snapshot();
        if (nvml->shared)
                r = text_replace(&nvml->library, library ? library : NVML_LIBRARY);
        if (r < 0) {
                nvml_free(nvml);
                return r;
        }
        *ret_nvml = nvml;
        return 0;
}

/* Killed, a reader that hangs in the driver may stay for long: it is waited for by looking again, never by blocking. */
static bool reader_is_gone(struct nvml *nvml)
{
        if (nvml->reader && waitpid(nvml->reader, NULL, WNOHANG) != 0)
                nvml->reader = 0;
        return nvml->reader == 0;
}

static void end_reader(struct nvml *nvml)
{
        nvml->answers = sd_event_source_disable_unref(nvml->answers);
        nvml->deadline = sd_event_source_disable_unref(nvml->deadline);
        nvml->fd = close_fd(nvml->fd);
        nvml->asked = false;
        if (nvml->reader)
                kill(nvml->reader, SIGKILL);
        reader_is_gone(nvml);
}

struct nvml *nvml_free(struct nvml *nvml)
{
        if (!nvml)
                return NULL;

        end_reader(nvml);
        if (nvml->shared)
                munmap(nvml->shared, sizeof(*nvml->shared));
        free(nvml->library);
        sd_event_unref(nvml->event);
        free(nvml);
        return NULL;
}

void nvml_on_read(struct nvml *nvml, void (*done)(void *userdata), void *userdata)
{
        nvml->done = done;
        nvml->userdata = userdata;
}

const struct nvml_snapshot *nvml_latest(const struct nvml *nvml)
{
        return &nvml->latest;
}

static void tell(struct nvml *nvml)
{
        if (nvml->done)
                nvml->done(nvml->userdata);
}

/* Keeps the last reading, says what is wrong now, and lets some time pass before the next attempt. */
static void give_up(struct nvml *nvml, const char *problem)
{
        if (strcmp(nvml->latest.problem, problem) != 0)
                log_warning("NVML: %s", problem);
        snprintf(nvml->latest.problem, sizeof(nvml->latest.problem), "%s", problem);
        end_reader(nvml);
        nvml->next_ns = now_monotonic_ns() + nvml->pause_ns;
        nvml->pause_ns = MIN(nvml->pause_ns * 2, PAUSE_MAX_NS);
        tell(nvml);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
        give_up(userdata, "it does not answer; its reader was ended");
        return 0;
}

static int on_answer(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct nvml *nvml = userdata;
        ssize_t n;
        char byte;

        n = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                give_up(nvml, "its reader ended by itself");
                return 0;
        }

        sd_event_source_set_enabled(nvml->deadline, SD_EVENT_OFF);
        nvml->asked = false;
        if (nvml->shared->problem[0]) {
                char problem[NVML_PROBLEM_MAX];

                snprintf(problem, sizeof(problem), "%.127s", nvml->shared->problem);
                give_up(nvml, problem);
                return 0;
        }
        if (nvml->latest.problem[0])
                log_info("NVML: it answers again");
        nvml->latest = *nvml->shared;
        nvml->pause_ns = PAUSE_MIN_NS;
        tell(nvml);
        return 0;
}

/* In the forked child: nothing of the daemon's is left but the socket. */
static void become_reader(int fd, const char *library, struct nvml_snapshot *shared, pid_t parent)
{
        sigset_t none;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "lulld-nvml");
        if (getppid() != parent || dup2(fd, READER_FD) < 0 || close_range(READER_FD + 1, ~0u, 0) < 0)
                _exit(EXIT_FAILURE);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        nvml_serve(READER_FD, library, shared);
        _exit(EXIT_SUCCESS);
}

static int watch_reader(struct nvml *nvml)
{
        int r;

        r = sd_event_add_io(nvml->event, &nvml->answers, nvml->fd, EPOLLIN, on_answer, nvml);
        if (r < 0)
                return r;
        return sd_event_add_time(nvml->event, &nvml->deadline, CLOCK_MONOTONIC, UINT64_MAX, 0, on_deadline, nvml);
}

static int begin_reader(struct nvml *nvml)
{
        _cleanup_(close_fdp) int own = -1, other = -1;
        pid_t parent = getpid(), pid;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        own = fds[0];
        other = fds[1];
        memset(nvml->shared, 0, sizeof(*nvml->shared));

        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                become_reader(other, nvml->library, nvml->shared, parent);
        nvml->reader = pid;
        nvml->fd = TAKE_FD(own);
        return watch_reader(nvml);
}

static int ask(struct nvml *nvml)
{
        int r;

        if (nvml->fd < 0) {
                r = begin_reader(nvml);
                if (r < 0)
                        return r;
        }
        if (send(nvml->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                return -errno;
        nvml->asked = true;
        r = sd_event_source_set_time(nvml->deadline, (now_monotonic_ns() + DEADLINE_NS) / NSEC_PER_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(nvml->deadline, SD_EVENT_ONESHOT);
}

bool nvml_request(struct nvml *nvml)
{
        char problem[NVML_PROBLEM_MAX];
        int r;

        if (nvml->asked)
                return true;
        if (nvml->fd < 0 && (now_monotonic_ns() < nvml->next_ns || !reader_is_gone(nvml)))
                return false;

        r = ask(nvml);
        if (r < 0) {
                snprintf(problem, sizeof(problem), "it cannot be asked: %s", strerror(-r));
                give_up(nvml, problem);
        }
        return r >= 0;
}
