/* SPDX-License-Identifier: Apache-2.0 */
/* Real commands in a cgroup of the test's own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cgroup.h"
#include "base/time.h"
#include "target/cgroup_control.h"
#include "target/process.h"
#include "target/spawn.h"

struct bench {
        char *root; /* cgroup2 mount point */
        char parent[256], cgroup[300], directory[64], log[80];
        sd_event *event;
        struct process *process;
        struct process_settings settings;

        unsigned n_started, n_exited;
        pid_t started_pid;
        uint64_t started_ns;
        struct process_exit exit;
};

static inline void on_started(struct process *process, pid_t pid, uint64_t at_ns, void *userdata)
{
        struct bench *bench = userdata;

        bench->n_started++;
        bench->started_pid = pid;
        bench->started_ns = at_ns;
}

static inline void on_exited(struct process *process, const struct process_exit *exit, void *userdata)
{
        struct bench *bench = userdata;

        bench->n_exited++;
        bench->exit = *exit;
}

static const struct process_callbacks callbacks = { .started = on_started, .exited = on_exited };

/* Runs the event loop until @condition holds, for at most 20 s. */
#define await(bench, condition)                                                                                                    \
        do {                                                                                                                       \
                uint64_t _end = now_monotonic_ns() + 20 * NSEC_PER_SEC;                                                            \
                while (!(condition)) {                                                                                             \
                        if (now_monotonic_ns() > _end)                                                                             \
                                fail_msg("not within 20 s: %s", #condition);                                                       \
                        assert_true(sd_event_run((bench)->event, 20 * 1000) >= 0);                                                 \
                }                                                                                                                  \
        } while (0)

static char *no_environment[] = { NULL };

#define COMMAND(...) ((char *[]){ __VA_ARGS__, NULL })

static inline void make_process(struct bench *bench, char **command)
{
        struct process_config config = {
                .event = bench->event, .name = "test", .cgroup = bench->cgroup, .log_file = bench->log, .settings = &bench->settings
        };

        bench->settings.command = command;
        assert_int_equal(process_new(&config, &callbacks, bench, &bench->process), 0);
}

static inline void run(struct bench *bench, char **command)
{
        make_process(bench, command);
        process_start(bench->process);
        await(bench, bench->n_started + bench->n_exited > 0);
}

static inline char *read_file(const char *path)
{
        _cleanup_(fclosep) FILE *file = fopen(path, "re");
        char *text = calloc(1, 65536);

        assert_non_null(file);
        assert_non_null(text);
        fread(text, 1, 65535, file);
        return text;
}

static inline bool file_has(const char *path, const char *text)
{
        _cleanup_(freep) char *content = access(path, F_OK) == 0 ? read_file(path) : NULL;

        return content && strstr(content, text);
}

/* The readiness of these scripts shows in the log, which no event tells of. */
static inline void await_log(struct bench *bench, const char *text)
{
        uint64_t end = now_monotonic_ns() + 20 * NSEC_PER_SEC;

        while (!file_has(bench->log, text)) {
                assert_true(now_monotonic_ns() < end);
                assert_true(sd_event_run(bench->event, 1000) >= 0);
        }
}

/* @command says "ready" once it is. */
static inline void run_until_ready(struct bench *bench, char **command)
{
        run(bench, command);
        await_log(bench, "ready\n");
}

static inline void run_to_its_end(struct bench *bench, char **command)
{
        run(bench, command);
        await(bench, bench->n_exited == 1);
}

static inline void stop(struct bench *bench)
{
        process_stop(bench->process);
        await(bench, bench->n_exited == 1);
}

static inline unsigned count_lines(const char *path)
{
        _cleanup_(freep) char *content = read_file(path);
        unsigned lines = 0;

        for (const char *c = content; *c; c++)
                lines += *c == '\n';
        return lines;
}

static inline unsigned count_processes(struct bench *bench)
{
        char path[400];

        snprintf(path, sizeof(path), "%s/cgroup.procs", bench->cgroup);
        return count_lines(path);
}

static inline int setup(void **state)
{
        struct bench *bench = calloc(1, sizeof(*bench));

        assert_non_null(bench);
        assert_int_equal(cgroup_find_root(&bench->root), 0);
        snprintf(bench->parent, sizeof(bench->parent), "%s/lull-test-process-%d", bench->root, getpid());
        snprintf(bench->cgroup, sizeof(bench->cgroup), "%s/target", bench->parent);
        strcpy(bench->directory, "/tmp/lull-test-process-XXXXXX");
        assert_non_null(mkdtemp(bench->directory));
        snprintf(bench->log, sizeof(bench->log), "%s/log", bench->directory);
        assert_int_equal(sd_event_new(&bench->event), 0);
        bench->settings = (struct process_settings){ .environment = no_environment,
                                                     .stop_signal = SIGTERM,
                                                     .stop_timeout_ns = 10 * NSEC_PER_SEC };
        *state = bench;
        return 0;
}

static inline void remove_cgroup(const char *path)
{
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t end = now_monotonic_ns() + 10 * NSEC_PER_SEC;

        if (fd < 0)
                return;
        cgroup_kill(fd);
        while (cgroup_populated(fd) == 1 && now_monotonic_ns() < end)
                waitpid(-1, NULL, WNOHANG);
        close(fd);
        assert_int_equal(rmdir(path), 0);
}

static inline int teardown(void **state)
{
        struct bench *bench = *state;
        char command[128];

        process_free(bench->process);
        remove_cgroup(bench->cgroup);
        remove_cgroup(bench->parent);
        sd_event_unref(bench->event);
        snprintf(command, sizeof(command), "rm -r %s", bench->directory);
        assert_int_equal(system(command), 0);
        free(bench->root);
        free(bench);
        return 0;
}

#define WITH_BENCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
