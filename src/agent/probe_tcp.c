/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe_tcp.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

struct probe_tcp {
        sd_event *event;
        struct sockaddr_storage peer;
        socklen_t peer_length;
        probe_tcp_ended ended;
        void *userdata;
        sd_event_source *source; /* of the attempt under way */
        int fd;
};

int probe_tcp_new(sd_event *event, const struct address *address, uint16_t port, probe_tcp_ended ended, void *userdata,
                  struct probe_tcp **ret_tcp)
{
        struct probe_tcp *tcp = calloc(1, sizeof(*tcp));

        if (!tcp)
                return -ENOMEM;
        tcp->event = event;
        tcp->peer_length = address_to_sockaddr(address, port, &tcp->peer);
        tcp->ended = ended;
        tcp->userdata = userdata;
        tcp->fd = -1;
        *ret_tcp = tcp;
        return 0;
}

struct probe_tcp *probe_tcp_free(struct probe_tcp *tcp)
{
        if (!tcp)
                return NULL;
        probe_tcp_stop(tcp);
        free(tcp);
        return NULL;
}

static int on_connected(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct probe_tcp *tcp = userdata;
        socklen_t length = sizeof(int);
        int error = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
                error = errno;
        probe_tcp_stop(tcp);
        tcp->ended(error ? strerror(error) : NULL, tcp->userdata);
        return 0;
}

int probe_tcp_start(struct probe_tcp *tcp)
{
        _cleanup_(close_fdp) int fd = socket(tcp->peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int r;

        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)&tcp->peer, tcp->peer_length) < 0 && errno != EINPROGRESS)
                return -errno;
        r = sd_event_add_io(tcp->event, &tcp->source, fd, EPOLLOUT, on_connected, tcp);
        if (r < 0)
                return r;
        tcp->fd = TAKE_FD(fd);
        return 0;
}

void probe_tcp_stop(struct probe_tcp *tcp)
{
        tcp->source = sd_event_source_disable_unref(tcp->source);
        tcp->fd = close_fd(tcp->fd);
}
