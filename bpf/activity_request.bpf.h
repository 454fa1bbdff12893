/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Opening and answering requests on one socket, and the walk over its records.
 *
 * Packets come in on one CPU while answers go out on another. Each side writes its own fields only, so a lost race makes a request look
 * open for longer, never answered too early.
 */
#ifndef ACTIVITY_REQUEST_BPF_H
#define ACTIVITY_REQUEST_BPF_H

#include "activity_packet.bpf.h"

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

static __always_inline bool has_open_request(struct activity_socket *socket)
{
        if (READ_ONCE(socket->requests) != READ_ONCE(socket->answered))
                return true;
        return socket->protocol == ACTIVITY_PROTOCOL_HTTP2 && (READ_ONCE(socket->streams[0]) || READ_ONCE(socket->streams[1]));
}

static __always_inline void stamp_request(struct activity_socket *socket, __u64 now)
{
        if (!has_open_request(socket))
                socket->request_since_ns = now;
        socket->request_last_ns = now;
}

static __always_inline void open_request(struct activity_socket *socket, __u64 now)
{
        stamp_request(socket, now);
        WRITE_ONCE(socket->requests, socket->requests + 1);
}

static __always_inline void answer_requests(struct activity_socket *socket)
{
        __u32 requests = READ_ONCE(socket->requests);

        if (socket->answered != requests)
                WRITE_ONCE(socket->answered, requests);
}

static __always_inline bool has_open_data_request(struct activity_socket *socket)
{
        return (__s32)(READ_ONCE(socket->data_requests) - READ_ONCE(socket->answered)) > 0;
}

/* TLS: one that is not the handshake's. */
static __always_inline void open_data_request(struct activity_socket *socket, __u64 now)
{
        if (has_open_data_request(socket) && socket->data_requests != socket->preface_request)
                WRITE_ONCE(socket->joined_requests, socket->requests + 1);
        WRITE_ONCE(socket->data_requests, socket->requests + 1);
        open_request(socket, now);
}

/* Where several may be under way at once and cannot be told apart, one answer leaves the others in doubt. */
static __always_inline void answer_one_request(struct activity_socket *socket)
{
        if ((__s32)(READ_ONCE(socket->joined_requests) - socket->answered) > 0)
                WRITE_ONCE(socket->doubt_ns, READ_ONCE(socket->request_last_ns));
        answer_requests(socket);
}

#endif
