/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Cutting one direction of a connection into TLS records or HTTP/2 frames, across packets. */
#ifndef ACTIVITY_STREAM_BPF_H
#define ACTIVITY_STREAM_BPF_H

#include "activity_http2.bpf.h"
#include "activity_tls.bpf.h"

struct walk {
        struct __sk_buff *skb;
        struct activity_socket *socket;
        __u64 now;
        __u32 offset; /* in the packet */
        __u32 rest;   /* bytes of the packet from there on */
        bool received;
        bool activity; /* something in the packet counts */
};

static __always_inline struct activity_stream *walk_stream(struct walk *walk)
{
        return walk->received ? &walk->socket->received : &walk->socket->sent;
}

static __always_inline __u32 *walk_next(struct walk *walk)
{
        return walk->received ? &walk->socket->received_next : &walk->socket->sent_next;
}

static __always_inline void walk_advance(struct walk *walk, __u32 bytes)
{
        walk->offset += bytes;
        walk->rest -= bytes;
}

static __always_inline void walk_header(struct walk *walk, struct activity_stream *stream)
{
        struct activity_socket *socket = walk->socket;

        if (stream->protocol == ACTIVITY_PROTOCOL_TLS) {
                __u8 type = stream->header[0];

                stream->skip = (__u32)stream->header[3] << 8 | stream->header[4];
                stream->counts = walk->received ? tls_received(socket, type, stream->skip, walk->now)
                                                : tls_sent(socket, type, stream->skip, walk->now);
        } else {
                struct h2_frame frame = h2_frame(stream->header);

                stream->skip = frame.length;
                stream->counts = walk->received ? h2_received(socket, &frame, walk->now) : h2_sent(socket, &frame);
        }
}

/* One record, or as much of it as the packet has. */
static long walk_record(__u32 index, struct walk *walk)
{
        struct activity_stream *stream = walk_stream(walk);
        __u32 size = stream->protocol == ACTIVITY_PROTOCOL_TLS ? TLS_HEADER : H2_HEADER, have = stream->have, bytes;

        if (stream->skip) {
                bytes = stream->skip < walk->rest ? stream->skip : walk->rest;
                stream->skip -= bytes;
                walk_advance(walk, bytes);
                walk->activity |= stream->counts;
        }
        if (walk->rest == 0)
                return 1;

        if (have >= size)
                have = 0;
        bytes = size - have < walk->rest ? size - have : walk->rest;
        if (bytes == 0 || bytes > H2_HEADER || have > H2_HEADER ||
            bpf_skb_load_bytes(walk->skb, walk->offset, stream->header + have, bytes) < 0)
                return 1;
        walk_advance(walk, bytes);
        stream->have = (__u8)(have + bytes);
        if (stream->have < size)
                return 1;

        stream->have = 0;
        walk_header(walk, stream);
        walk->activity |= stream->counts;
        return 0;
}

/* A packet that does not continue the stream may begin a record all the same: writers like to. */
static __always_inline bool stream_begin(struct walk *walk, struct activity_stream *stream)
{
        __u8 header[H2_HEADER] = {};
        bool record;

        if (bpf_skb_load_bytes(walk->skb, walk->offset, header, TLS_HEADER) < 0)
                return false;
        if (walk->rest >= H2_HEADER && bpf_skb_load_bytes(walk->skb, walk->offset, header, H2_HEADER) < 0)
                return false;
        if (stream->protocol == ACTIVITY_PROTOCOL_TLS)
                record = tls_is_record_header(header);
        else
                record = walk->rest >= H2_HEADER && h2_is_frame_header(header);

        stream->skip = 0;
        stream->have = 0;
        stream->synced = record;
        return record;
}

/* Returns whether every record of the packet was seen; if not, something in it is in doubt. */
static __always_inline bool walk_packet(struct walk *walk, const struct payload *payload)
{
        struct activity_stream *stream = walk_stream(walk);
        __u32 *next = walk_next(walk), seq = payload->seq, repeated;
        bool whole = true;

        if (stream->protocol != walk->socket->protocol) {
                stream->protocol = walk->socket->protocol;
                stream->synced = 0;
        }

        repeated = *next - seq;
        if (stream->synced && (__s32)repeated > 0) {
                if (repeated >= walk->rest) /* fills a hole that was stepped over */
                        return false;
                walk_advance(walk, repeated);
                seq = *next;
        } else if (!stream->synced || *next != seq) {
                whole = !stream->synced; /* there is a hole before it, whatever it was */
                if (!stream_begin(walk, stream)) {
                        *next = seq;
                        return false;
                }
        }

        *next = seq + walk->rest;
        bpf_loop(ACTIVITY_RECORDS_MAX, walk_record, walk, 0);
        if (walk->rest == 0)
                return whole;
        stream->synced = 0;
        return false;
}

#endif
