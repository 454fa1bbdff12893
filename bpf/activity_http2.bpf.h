/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Requests and answers in plaintext HTTP/2, frame by frame (RFC 9113).
 *
 * A stream is open from its HEADERS, or from a later DATA of the client, until the server sends DATA or ends it. HEADERS alone are no
 * answer: they may be informational, and gRPC sends them ahead of the message.
 */
#ifndef ACTIVITY_HTTP2_BPF_H
#define ACTIVITY_HTTP2_BPF_H

#include "activity_request.bpf.h"

enum {
        H2_HEADER = 9,
        H2_PREFACE = 24, /* "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" */
        H2_DATA = 0,
        H2_HEADERS = 1,
        H2_RST_STREAM = 3,
        H2_SETTINGS = 4,
        H2_CONTINUATION = 9,
        H2_END_STREAM = 1,
};

struct h2_frame {
        __u32 length;
        __u8 type;
        __u8 flags;
        __u32 stream;
};

static __always_inline struct h2_frame h2_frame(const __u8 *header)
{
        return (struct h2_frame){
                .length = (__u32)header[0] << 16 | (__u32)header[1] << 8 | header[2],
                .type = header[3],
                .flags = header[4],
                .stream = (__u32)header[5] << 24 | (__u32)header[6] << 16 | (__u32)header[7] << 8 | header[8],
        };
}

static __always_inline bool h2_is_frame_header(const __u8 *header)
{
        return header[0] == 0 && header[3] <= H2_CONTINUATION && header[5] < 0x80;
}

static __always_inline void stream_open(struct activity_socket *socket, __u32 stream, bool new, __u64 now)
{
        __u64 bit = 1ull << ((stream >> 1) & 63);
        __u64 *word = stream & 128 ? &socket->streams[1] : &socket->streams[0];

        if (new && (READ_ONCE(*word) & bit))
                socket->received_flags |= ACTIVITY_H2_CROWDED;
        stamp_request(socket, now);
        __sync_fetch_and_or(word, bit);
}

static __always_inline void stream_close(struct activity_socket *socket, __u32 stream)
{
        __u64 bit = 1ull << ((stream >> 1) & 63);
        __u64 *word = stream & 128 ? &socket->streams[1] : &socket->streams[0];

        __sync_fetch_and_and(word, ~bit);
}

/* Both return whether the frame is activity. */
static __always_inline bool h2_received(struct activity_socket *socket, const struct h2_frame *frame, __u64 now)
{
        switch (frame->type) {
        case H2_DATA:
                if (frame->length == 0)
                        return false;
                stream_open(socket, frame->stream, false, now);
                return true;
        case H2_HEADERS:
                if (frame->stream > socket->last_stream) {
                        socket->last_stream = frame->stream;
                        stream_open(socket, frame->stream, true, now);
                }
                return true;
        case H2_CONTINUATION:
                return true;
        case H2_RST_STREAM:
                stream_close(socket, frame->stream);
                return false;
        default:
                return false;
        }
}

static __always_inline bool h2_sent(struct activity_socket *socket, const struct h2_frame *frame)
{
        switch (frame->type) {
        case H2_DATA:
        case H2_HEADERS:
                if ((frame->type == H2_DATA && frame->length > 0) || (frame->flags & H2_END_STREAM)) {
                        stream_close(socket, frame->stream);
                        answer_requests(socket);
                }
                return true;
        case H2_CONTINUATION:
                return true;
        case H2_RST_STREAM:
                stream_close(socket, frame->stream);
                return false;
        default:
                return false;
        }
}

#endif
