/* SPDX-License-Identifier: Apache-2.0 */
#include "target/cgroup_control.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/macros.h"

enum {
        DEPTH_MAX = 16,
        KILL_PASSES_MAX = 16,
};

int cgroup_open(const char *path)
{
        int fd, r;

        r = cgroup_make(path);
        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int cgroup_populated(int cgroup_fd)
{
        _cleanup_(close_fdp) int fd = -1;
        char text[256];
        const char *value;
        ssize_t n;

        fd = openat(cgroup_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ENODEV : -errno;
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';

        value = strstr(text, "populated ");
        return value ? value[strlen("populated ")] == '1' : -EINVAL;
}

static int open_processes(int cgroup_fd, FILE **ret_file)
{
        _cleanup_(close_fdp) int fd = -1;
        FILE *file;

        fd = openat(cgroup_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        file = fdopen(fd, "r");
        if (!file)
                return -errno;
        TAKE_FD(fd);
        *ret_file = file;
        return 0;
}

/* One pid a line. A process of another pid namespace shows as 0, which kill() would take for our own process group. */
static bool next_process(FILE *file, pid_t *ret_pid)
{
        char line[32];

        while (fgets(line, sizeof(line), file)) {
                long pid = strtol(line, NULL, 10);

                if (pid > 0) {
                        *ret_pid = (pid_t)pid;
                        return true;
                }
        }
        return false;
}

int cgroup_find_main(int cgroup_fd, pid_t *ret_pid)
{
        _cleanup_(fclosep) FILE *file = NULL;
        pid_t pid;
        int r;

        r = open_processes(cgroup_fd, &file);
        if (r < 0)
                return r;
        while (next_process(file, &pid)) {
                if (getsid(pid) != pid)
                        continue;
                *ret_pid = pid;
                return 0;
        }
        return -ESRCH;
}

static int signal_own(int cgroup_fd, int signal)
{
        _cleanup_(fclosep) FILE *file = NULL;
        int r, sent = 0;
        pid_t pid;

        r = open_processes(cgroup_fd, &file);
        if (r < 0)
                return r;
        while (next_process(file, &pid)) {
                if (kill(pid, signal) == 0)
                        sent++;
        }
        return sent;
}

static int signal_tree(int cgroup_fd, int signal, unsigned depth)
{
        int sent, fd;
        DIR *directory;

        sent = signal_own(cgroup_fd, signal);
        if (sent < 0 || depth == 0)
                return sent;

        fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        directory = fdopendir(fd);
        if (!directory) {
                close_fd(fd);
                return -ENOMEM;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
                _cleanup_(close_fdp) int child = -1;
                int r;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (child < 0)
                        continue; /* removed meanwhile */
                r = signal_tree(child, signal, depth - 1);
                if (r > 0)
                        sent += r;
        }
        closedir(directory);
        return sent;
}

int cgroup_signal(int cgroup_fd, int signal)
{
        return signal_tree(cgroup_fd, signal, DEPTH_MAX);
}

int cgroup_kill_each(int cgroup_fd)
{
        for (unsigned pass = 0; pass < KILL_PASSES_MAX; pass++) {
                int sent = cgroup_signal(cgroup_fd, SIGKILL);

                if (sent <= 0)
                        return sent;
        }
        return 0;
}

int cgroup_kill(int cgroup_fd)
{
        _cleanup_(close_fdp) int fd = -1;

        fd = openat(cgroup_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? cgroup_kill_each(cgroup_fd) : -errno;
        return write(fd, "1", 1) < 0 ? -errno : 0;
}
