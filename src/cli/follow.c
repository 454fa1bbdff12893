/* SPDX-License-Identifier: Apache-2.0 */
/* Following an answer without an end. curl's own waiting also watches one more descriptor: an epoll instance in which signals and the
 * reader's closing of stdout arrive. */
#include <curl/curl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/transfer.h"

enum { WAIT_MS = 60 * 1000, ERROR_MAX_BYTES = 4096 };

struct follower {
        struct cli *cli;
        CURL *curl;
        CURLM *multi;
        int signals;
        int stop; /* readable once the user wants to end */
        struct buffer buffer;
        client_line line;
        void *userdata;
        int error; /* of the callback */
};

static void follower_clear(struct follower *follower)
{
        if (follower->multi && follower->curl)
                curl_multi_remove_handle(follower->multi, follower->curl);
        curl_multi_cleanup(follower->multi);
        curl_easy_cleanup(follower->curl);
        close_fd(follower->signals);
        close_fd(follower->stop);
        buffer_clear(&follower->buffer);
}

/* Hands on the whole lines and keeps the rest. */
static int take_lines(struct follower *follower)
{
        struct buffer *buffer = &follower->buffer;
        char *line = buffer->text, *end;
        int r;

        while ((end = strchr(line, '\n'))) {
                *end = '\0';
                r = follower->line(follower->cli, line, follower->userdata);
                if (r < 0)
                        return r;
                line = end + 1;
        }
        buffer->length = strlen(line);
        memmove(buffer->text, line, buffer->length + 1);
        return 0;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *userdata)
{
        struct follower *follower = userdata;
        long status = 0;

        follower->error = buffer_append(&follower->buffer, bytes, size * n);
        curl_easy_getinfo(follower->curl, CURLINFO_RESPONSE_CODE, &status);
        if (follower->error == 0 && status == 200)
                follower->error = take_lines(follower);
        return follower->error < 0 ? 0 : size * n;
}

static int watch(int epoll, int fd, uint32_t events)
{
        struct epoll_event event = { .events = events };

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EPERM) /* a file: always ready, never hung up */
                return 0;
        return -errno;
}

static int watch_for_stop(struct follower *follower)
{
        sigset_t signals;
        int r;

        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
                return -errno;
        follower->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (follower->signals < 0)
                return -errno;
        follower->stop = epoll_create1(EPOLL_CLOEXEC);
        if (follower->stop < 0)
                return -errno;

        r = watch(follower->stop, follower->signals, EPOLLIN);
        return r < 0 ? r : watch(follower->stop, STDOUT_FILENO, 0); /* errors are always reported */
}

static int set_up(struct follower *follower, const char *path)
{
        int r;

        r = transfer_new(follower->cli, path, &follower->curl);
        if (r < 0)
                return r;
        follower->multi = curl_multi_init();
        if (!follower->multi)
                return cli_fail(follower->cli, -ENOMEM, "out of memory");
        curl_easy_setopt(follower->curl, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(follower->curl, CURLOPT_WRITEDATA, follower);
        curl_multi_add_handle(follower->multi, follower->curl);

        r = watch_for_stop(follower);
        return r < 0 ? cli_fail(follower->cli, r, "cannot wait for signals: %s", strerror(-r)) : 0;
}

static bool stop_is_wanted(const struct follower *follower)
{
        struct epoll_event event;

        return epoll_wait(follower->stop, &event, 1, 0) > 0;
}

static int ended(struct follower *follower)
{
        int left;
        const CURLMsg *message = curl_multi_info_read(follower->multi, &left);
        CURLcode code = message ? message->data.result : CURLE_OK;
        long status = 0;

        if (follower->error == -EPIPE)
                return 0;
        if (follower->error < 0)
                return cli_fail(follower->cli, follower->error, "cannot go on: %s", strerror(-follower->error));
        curl_easy_getinfo(follower->curl, CURLINFO_RESPONSE_CODE, &status);
        if (status != 0 && status != 200)
                return transfer_fail_status(follower->cli, status, &follower->buffer);
        if (status == 200)
                return cli_fail(follower->cli, -ECONNRESET, "lulld ended the stream of events; it was stopped or restarted");
        return transfer_fail(follower->cli, follower->curl, code);
}

int client_follow(struct cli *cli, const char *path, client_line line, void *userdata)
{
        _cleanup_(follower_clear) struct follower follower = {
                .cli = cli, .line = line, .userdata = userdata, .signals = -1, .stop = -1
        };
        int running = 1, r;

        r = set_up(&follower, path);
        if (r < 0)
                return r;

        for (;;) {
                struct curl_waitfd stop = { .fd = follower.stop, .events = CURL_WAIT_POLLIN };

                curl_multi_perform(follower.multi, &running);
                if (running == 0)
                        return ended(&follower);
                if (stop_is_wanted(&follower))
                        return 0;
                curl_multi_poll(follower.multi, &stop, 1, WAIT_MS, NULL);
        }
}
