/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include <pwd.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cli/cli.h"

enum {
        ANSWER_MAX_BYTES = 16 * 1024 * 1024,
        CONNECT_TIMEOUT_MS = 2000,
};

int buffer_append(struct buffer *buffer, const char *bytes, size_t length)
{
        char *text;

        if (length > ANSWER_MAX_BYTES - buffer->length)
                return -EFBIG;
        text = realloc(buffer->text, buffer->length + length + 1);
        if (!text)
                return -ENOMEM;

        memcpy(text + buffer->length, bytes, length);
        buffer->text = text;
        buffer->length += length;
        buffer->text[buffer->length] = '\0';
        return 0;
}

void buffer_clear(struct buffer *buffer)
{
        free(buffer->text);
        *buffer = (struct buffer){ 0 };
}

int transfer_new(struct cli *cli, const char *path, CURL **ret_curl)
{
        _cleanup_(freep) char *url = NULL;
        CURL *curl;

        if (strlen(cli->socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
                return cli_fail(cli, -ENAMETOOLONG, "%s is too long for the path of a socket", cli->socket);
        if (asprintf(&url, "http://lulld%s", path) < 0)
                return cli_fail(cli, -ENOMEM, "out of memory");
        curl = curl_easy_init();
        if (!curl)
                return cli_fail(cli, -ENOMEM, "out of memory");

        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L); /* a policy may be asked for by the name ".." */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, cli->socket);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
        *ret_curl = curl;
        return 0;
}

/* Why nobody can be reached on the socket, which curl does not say: 0 or -errno. */
static int try_socket(const char *path)
{
        _cleanup_(close_fdp) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (fd < 0)
                return -errno;
        memcpy(address.sun_path, path, strlen(path) + 1); /* transfer_new() has seen that it fits */
        return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int fail_not_allowed(struct cli *cli)
{
        const struct passwd *owner = NULL;
        struct stat status;

        if (stat(cli->socket, &status) == 0)
                owner = getpwuid(status.st_uid);
        return cli_fail(cli, -EACCES, "%s is only for %s; try \"sudo lull\"", cli->socket, owner ? owner->pw_name : "root");
}

static int fail_to_connect(struct cli *cli)
{
        int r = try_socket(cli->socket);

        switch (r) {
        case -ENOENT:
                return cli_fail(cli, r, "lulld is not running: no socket at %s (start it with \"systemctl start lulld\")",
                                cli->socket);
        case -ECONNREFUSED:
                return cli_fail(cli, r, "lulld is not running: nobody listens on %s (start it with \"systemctl start lulld\")",
                                cli->socket);
        case -EACCES:
        case -EPERM:
                return fail_not_allowed(cli);
        case 0:
        case -EAGAIN:
                return cli_fail(cli, -EAGAIN, "lulld on %s does not take the connection; try again", cli->socket);
        default:
                return cli_fail(cli, r, "cannot connect to %s: %s", cli->socket, strerror(-r));
        }
}

int transfer_fail(struct cli *cli, CURL *curl, CURLcode code)
{
        switch (code) {
        case CURLE_COULDNT_CONNECT:
                return fail_to_connect(cli);
        case CURLE_OPERATION_TIMEDOUT:
                return cli_fail(cli, -ETIMEDOUT, "lulld on %s does not answer in time; is it stopped or hung?", cli->socket);
        case CURLE_WRITE_ERROR:
                return cli_fail(cli, -EFBIG, "lulld's answer is too long");
        default:
                return cli_fail(cli, -EIO, "talking to lulld on %s failed: %s", cli->socket, curl_easy_strerror(code));
        }
}

int transfer_fail_status(struct cli *cli, long status, const struct buffer *answer)
{
        const char *text = answer->text ? answer->text : "";
        _cleanup_(json_decrefp) json_t *json = json_loads(text, 0, NULL);
        const char *message = json_string_value(json_object_get(json_object_get(json, "error"), "message"));

        if (message)
                return cli_fail(cli, -EREMOTEIO, "%s", message);
        return cli_fail(cli, -EREMOTEIO, "lulld answered with status %ld: %.*s", status, (int)strcspn(text, "\r\n"), text);
}
