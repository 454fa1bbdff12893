/* SPDX-License-Identifier: Apache-2.0 */
/* The lull command as a subprocess, against a server in this process that answers what a table says. */
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "serve/event_log.h"
#include "serve/http.h"

enum { OUTPUT_MAX_BYTES = 64 * 1024 };

struct harness {
        char directory[32];
        char socket[64];
        char program[4096];
        sd_event *event;
        struct event_log *log;
        struct http_server *server;
        const char *stdout_path; /* where the command writes instead of to the test, or NULL */
        uid_t user;              /* whom it runs as; 0: the test's own */
};

struct reading { /* one end of a pipe, and what came out of it */
        int fd;
        size_t length;
        char text[OUTPUT_MAX_BYTES];
};

struct run {
        pid_t pid;
        struct reading output, errors;
        int status; /* exit status, or 128 and the signal */
};

/* The program lies two directories above the test's own. */
static inline void harness_find_program(struct harness *harness)
{
        ssize_t length = readlink("/proc/self/exe", harness->program, sizeof(harness->program) - 1);

        assert_true(length > 0);
        for (int i = 0; i < 3; i++)
                *strrchr(harness->program, '/') = '\0';
        strcat(harness->program, "/lull");
        if (access(harness->program, X_OK) < 0)
                fail_msg("%s is not built", harness->program);
}

static inline struct harness *harness_new(const struct http_route *routes)
{
        struct harness *harness = calloc(1, sizeof(*harness));
        int fd;

        assert_non_null(harness);
        harness_find_program(harness);
        strcpy(harness->directory, "/tmp/lull-cli-XXXXXX");
        assert_non_null(mkdtemp(harness->directory));
        snprintf(harness->socket, sizeof(harness->socket), "%s/control.sock", harness->directory);
        assert_int_equal(sd_event_new(&harness->event), 0);
        assert_int_equal(event_log_new(&harness->log), 0);
        assert_int_equal(http_listen_unix(harness->socket, &fd), 0);
        assert_int_equal(http_server_new(harness->event, fd, routes, harness, &harness->server), 0);
        assert_int_equal(setenv("LULL_SOCKET", harness->socket, 1), 0);
        return harness;
}

static inline void harness_free(struct harness *harness)
{
        http_server_free(harness->server);
        event_log_free(harness->log);
        sd_event_unref(harness->event);
        unlink(harness->socket);
        rmdir(harness->directory);
        free(harness);
}

static inline int harness_set_up(void **state)
{
        *state = harness_new(*state);
        return 0;
}

static inline int harness_tear_down(void **state)
{
        harness_free(*state);
        return 0;
}

/* A test whose state is a harness with these routes. */
#define WITH_SERVER(test, routes)                                                                                                  \
        cmocka_unit_test_prestate_setup_teardown(test, harness_set_up, harness_tear_down, (void *)(routes))

/* Starts the program with the words of @line, which are separated by single spaces. */
static inline struct run *run_start(const struct harness *harness, const char *line)
{
        struct run *run = calloc(1, sizeof(*run));
        int output[2], errors[2], program;
        char words[256], *rest = words, *arguments[16] = { (char *)"lull" };

        assert_non_null(run);
        snprintf(words, sizeof(words), "%s", line);
        for (int i = 1; i < 15 && *words && (arguments[i] = strsep(&rest, " ")); i++)
                ;
        assert_int_equal(pipe2(output, O_CLOEXEC), 0);
        assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
        run->pid = fork();
        assert_true(run->pid >= 0);
        if (run->pid == 0) {
                dup2(output[1], STDOUT_FILENO);
                dup2(errors[1], STDERR_FILENO);
                if (harness->stdout_path)
                        dup2(open(harness->stdout_path, O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
                program = open(harness->program, O_PATH | O_CLOEXEC); /* its path may be closed to that user */
                if (harness->user && setuid(harness->user) < 0)
                        _exit(126);
                fexecve(program, arguments, environ);
                _exit(127);
        }
        close(output[1]);
        close(errors[1]);
        run->output.fd = output[0];
        run->errors.fd = errors[0];
        return run;
}

static inline int on_output(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct reading *reading = userdata;
        ssize_t n = read(fd, reading->text + reading->length, sizeof(reading->text) - 1 - reading->length);

        if (n <= 0) {
                reading->fd = close_fd(reading->fd);
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        reading->length += (size_t)n;
        return 0;
}

/* Serves until the program said @until on stdout, or ended when that is NULL. */
static inline void run_serve(const struct harness *harness, struct run *run, const char *until)
{
        sd_event_source *sources[2] = { NULL };

        if (run->output.fd >= 0)
                assert_true(sd_event_add_io(harness->event, &sources[0], run->output.fd, EPOLLIN, on_output, &run->output) >= 0);
        if (run->errors.fd >= 0)
                assert_true(sd_event_add_io(harness->event, &sources[1], run->errors.fd, EPOLLIN, on_output, &run->errors) >= 0);
        while ((run->output.fd >= 0 || run->errors.fd >= 0) && !(until && strstr(run->output.text, until)))
                if (sd_event_run(harness->event, 20000000) <= 0)
                        fail_msg("lull neither goes on nor ends; it said: %s%s", run->output.text, run->errors.text);
        for (int i = 0; i < 2; i++)
                sd_event_source_disable_unref(sources[i]);
}

static inline void run_end(const struct harness *harness, struct run *run)
{
        int status;

        run_serve(harness, run, NULL);
        assert_int_equal(waitpid(run->pid, &status, 0), run->pid);
        run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline struct run *run_lull(const struct harness *harness, const char *line)
{
        struct run *run = run_start(harness, line);

        run_end(harness, run);
        return run;
}

static inline void run_freep(struct run **run)
{
        if (!*run)
                return;
        close_fd((*run)->output.fd);
        close_fd((*run)->errors.fd);
        free(*run);
}
