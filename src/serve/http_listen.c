/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/address.h"
#include "serve/http.h"

enum { BACKLOG = 16 };

static int unix_address(const char *path, struct sockaddr_un *ret_address)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);
        *ret_address = address;
        return 0;
}

/* Removes the socket that a dead daemon left. A full backlog (EAGAIN) is a sign of life too. */
static int remove_stale(const struct sockaddr_un *address)
{
        _cleanup_(close_fdp) int fd = -1;
        struct stat status;

        if (lstat(address->sun_path, &status) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(status.st_mode))
                return -EEXIST;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
                return -EADDRINUSE;
        if (errno != ECONNREFUSED)
                return -errno;
        return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

int http_listen_unix(const char *path, int *ret_fd)
{
        _cleanup_(close_fdp) int fd = -1;
        struct sockaddr_un address;
        int r;

        r = unix_address(path, &address);
        if (r < 0)
                return r;
        r = remove_stale(&address);
        if (r < 0)
                return r;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* bind() gives the file the mode of the socket's inode, so that it never exists with another one (unix(7), Linux). */
        if (fchmod(fd, 0600) < 0)
                return -errno;
        if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        if (listen(fd, BACKLOG) < 0)
                return -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}

int http_listen_tcp(const char *address_and_port, int *ret_fd)
{
        _cleanup_(close_fdp) int fd = -1;
        char text[FRONTEND_TEXT_MAX];
        struct sockaddr_storage address;
        struct frontend frontend;
        socklen_t length;

        if ((size_t)snprintf(text, sizeof(text), "tcp/%s", address_and_port) >= sizeof(text) || frontend_parse(text, &frontend) < 0)
                return -EINVAL;

        length = address_to_sockaddr(&frontend.address, frontend.port, &address);
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0)
                return -errno;
        if (bind(fd, (const struct sockaddr *)&address, length) < 0)
                return -errno;
        if (listen(fd, BACKLOG) < 0)
                return -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}
