/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Opening and answering requests on one socket.
 *
 * Packets come in on one CPU while answers go out on another. Each side writes its own fields only, so a lost race makes a request look
 * open for longer, never answered too early.
 */
#ifndef ACTIVITY_REQUEST_BPF_H
#define ACTIVITY_REQUEST_BPF_H

#include "activity_packet.bpf.h"

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

#define ASKED_FAR (1u << 30)

static __always_inline bool has_records(const struct activity_socket *socket)
{
        return socket->protocol == ACTIVITY_PROTOCOL_TLS || socket->protocol == ACTIVITY_PROTOCOL_HTTP2;
}

static __always_inline bool has_open_question(struct activity_socket *socket)
{
        __u32 flags = READ_ONCE(socket->received_flags), answered_seq = READ_ONCE(socket->answered_seq);

        if (!(flags & ACTIVITY_ASKED))
                return false;
        if (!(READ_ONCE(socket->sent_flags) & ACTIVITY_ANSWERED))
                return true;
        return (__s32)(READ_ONCE(socket->asked_seq) - answered_seq) > 0 ||
               (flags & ACTIVITY_ASKED_FAR && socket->far_answered == answered_seq);
}

static __always_inline bool has_open_request(struct activity_socket *socket)
{
        if (!has_records(socket))
                return has_open_question(socket);
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

/* Once a tick: what was answered within it is taken for unanswered since it began. */
static __always_inline void stamp_question(struct activity_socket *socket, __u64 now)
{
        bool open = has_open_question(socket);
        __u32 flags = socket->received_flags, answered_seq = READ_ONCE(socket->answered_seq);

        if (!open)
                socket->request_since_ns = now;
        WRITE_ONCE(socket->request_last_ns, now);
        if (open && socket->asked_seq - answered_seq > ASKED_FAR) {
                socket->far_answered = answered_seq;
                flags |= ACTIVITY_ASKED_FAR;
        } else if (!open) {
                flags &= ~ACTIVITY_ASKED_FAR;
        }
        WRITE_ONCE(socket->received_flags, flags);
}

/* Plain: payload that ends before @end asks for an answer. */
static __always_inline void ask(struct activity_socket *socket, __u32 end, __u64 now)
{
        if (socket->request_last_ns != now)
                stamp_question(socket, now);
        if (!(socket->received_flags & ACTIVITY_ASKED)) {
                WRITE_ONCE(socket->asked_seq, end);
                WRITE_ONCE(socket->received_flags, socket->received_flags | ACTIVITY_ASKED);
        } else if ((__s32)(end - socket->asked_seq) > 0) {
                WRITE_ONCE(socket->asked_seq, end);
        }
}

/* Whether payload is more of what has been answered already: nothing new had come when it was sent. */
static __always_inline bool is_more_of_an_answer(const struct activity_socket *socket, const struct payload *payload)
{
        return socket->sent_flags & ACTIVITY_ANSWERED && socket->answered_seq == payload->acknowledged;
}

/* Plain: what the server had received when it sent this is answered. */
static __always_inline void answer(struct activity_socket *socket, const struct payload *payload, __u64 now)
{
        socket->answered_ns = now;
        WRITE_ONCE(socket->answered_seq, payload->acknowledged);
        if (!(socket->sent_flags & ACTIVITY_ANSWERED))
                WRITE_ONCE(socket->sent_flags, socket->sent_flags | ACTIVITY_ANSWERED);
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
