/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/transport.h"

#include <sys/epoll.h>
#include <sys/queue.h>

enum { TIMER_ACCURACY_US = 1000, IDLE_CONNECTIONS_MAX = 16, LOOKED_AT_MAX = 64 };

struct transport_socket {
        LIST_ENTRY(transport_socket) entry;
        struct transport *transport;
        sd_event_source *source;
        curl_socket_t fd;
};

struct transport {
        CURLM *multi;
        sd_event *event;
        sd_event_source *timer;
        sd_event_source *again;
        LIST_HEAD(, transport_socket) sockets;
        struct transport_callbacks callbacks;
        void *userdata;
};

static void take_finished(struct transport *transport)
{
        CURLMsg *message;
        int left;

        while ((message = curl_multi_info_read(transport->multi, &left))) {
                CURL *easy = message->easy_handle;
                CURLcode result = message->data.result;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_multi_remove_handle(transport->multi, easy);
                transport->callbacks.finished(easy, result, transport->userdata);
        }
}

static int transport_run(struct transport *transport, curl_socket_t fd, int events)
{
        int running;

        curl_multi_socket_action(transport->multi, fd, events, &running);
        take_finished(transport);
        transport->callbacks.ran(transport->userdata);
        return 0;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct transport_socket *socket = userdata;
        int action = 0;

        if (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP))
                action |= CURL_CSELECT_IN;
        if (events & EPOLLOUT)
                action |= CURL_CSELECT_OUT;
        if (events & EPOLLERR)
                action |= CURL_CSELECT_ERR;
        return transport_run(socket->transport, fd, action);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        return transport_run(userdata, CURL_SOCKET_TIMEOUT, 0);
}

/* Sockets come and go while libcurl runs; of those that are gone it does not mind to hear. */
static int on_again(sd_event_source *source, void *userdata)
{
        struct transport *transport = userdata;
        const struct transport_socket *socket = LIST_FIRST(&transport->sockets);
        curl_socket_t fds[LOOKED_AT_MAX];
        size_t n_fds = 0;

        for (; socket && n_fds < LOOKED_AT_MAX; socket = LIST_NEXT(socket, entry))
                fds[n_fds++] = socket->fd;
        for (size_t i = 0; i < n_fds; i++)
                transport_run(transport, fds[i], CURL_CSELECT_IN);
        return 0;
}

static void socket_free(struct transport_socket *socket)
{
        LIST_REMOVE(socket, entry);
        sd_event_source_disable_unref(socket->source);
        free(socket);
}

static int socket_new(struct transport *transport, curl_socket_t fd, uint32_t events)
{
        struct transport_socket *socket = calloc(1, sizeof(*socket));

        if (!socket)
                return -1;
        if (sd_event_add_io(transport->event, &socket->source, fd, events, on_io, socket) < 0) {
                free(socket);
                return -1;
        }
        socket->transport = transport;
        socket->fd = fd;
        LIST_INSERT_HEAD(&transport->sockets, socket, entry);
        curl_multi_assign(transport->multi, fd, socket);
        return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *socket_userdata)
{
        struct transport *transport = userdata;
        struct transport_socket *socket = socket_userdata;
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

        if (what == CURL_POLL_REMOVE) {
                if (socket)
                        socket_free(socket);
                curl_multi_assign(transport->multi, fd, NULL);
                return 0;
        }
        if (!socket)
                return socket_new(transport, fd, events);
        return sd_event_source_set_io_events(socket->source, events) < 0 ? -1 : 0;
}

static int on_timeout(CURLM *multi, long milliseconds, void *userdata)
{
        struct transport *transport = userdata;

        if (milliseconds < 0)
                return sd_event_source_set_enabled(transport->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(transport->timer, (uint64_t)milliseconds * 1000) < 0)
                return -1;
        return sd_event_source_set_enabled(transport->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

int transport_new(sd_event *event, const struct transport_callbacks *callbacks, void *userdata, struct transport **ret_transport)
{
        _cleanup_(transport_freep) struct transport *transport = calloc(1, sizeof(*transport));
        int r;

        if (!transport)
                return -ENOMEM;
        transport->event = sd_event_ref(event);
        transport->callbacks = *callbacks;
        transport->userdata = userdata;
        LIST_INIT(&transport->sockets);

        r = sd_event_add_time_relative(event, &transport->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY_US, on_timer, transport);
        if (r >= 0)
                r = sd_event_source_set_enabled(transport->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &transport->again, on_again, transport);
        if (r >= 0)
                r = sd_event_source_set_enabled(transport->again, SD_EVENT_OFF);
        if (r < 0)
                return r;

        transport->multi = curl_multi_init();
        if (!transport->multi)
                return -ENOMEM;
        curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
        curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
        curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
        curl_multi_setopt(transport->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
        curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX);

        *ret_transport = TAKE_PTR(transport);
        return 0;
}

struct transport *transport_free(struct transport *transport)
{
        struct transport_socket *socket;

        if (!transport)
                return NULL;
        curl_multi_cleanup(transport->multi);
        while ((socket = LIST_FIRST(&transport->sockets)))
                socket_free(socket);
        sd_event_source_disable_unref(transport->timer);
        sd_event_source_disable_unref(transport->again);
        sd_event_unref(transport->event);
        free(transport);
        return NULL;
}

int transport_add(struct transport *transport, CURL *easy)
{
        return curl_multi_add_handle(transport->multi, easy) == CURLM_OK ? 0 : -ENOMEM;
}

void transport_remove(struct transport *transport, CURL *easy)
{
        curl_multi_remove_handle(transport->multi, easy);
}

void transport_look_again(struct transport *transport)
{
        sd_event_source_set_enabled(transport->again, SD_EVENT_ONESHOT);
}
