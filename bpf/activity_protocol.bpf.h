/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Which protocol a connection speaks, and what payload means in it. */
#ifndef ACTIVITY_PROTOCOL_BPF_H
#define ACTIVITY_PROTOCOL_BPF_H

#include "activity_alpn.bpf.h"
#include "activity_stream.bpf.h"

enum {
        HEAD_BYTES = 12,
        WEBSOCKET_FIN = 0x80,
        WEBSOCKET_CONTROL = 8, /* opcodes from here on: close, ping, pong (RFC 6455) */
        WEBSOCKET_MASK_BYTES = 4,
        PLAIN_PAYLOADS_MAX = 16,
        UNKNOWN_SMALL_BYTES = 128,
        HEAD_PARTIAL_MAX = 128,
};

/* The first bytes of a payload, zeros past its end. */
static __always_inline void payload_head(struct __sk_buff *skb, const struct payload *payload, __u8 head[HEAD_BYTES])
{
        __u32 bytes = payload->length < HEAD_BYTES ? payload->length : HEAD_BYTES;

        asm volatile("" : "+r"(bytes)); /* keeps the compiler from knowing better than the verifier */
        __builtin_memset(head, 0, HEAD_BYTES);
        if (bytes > 0 && bytes <= HEAD_BYTES)
                bpf_skb_load_bytes(skb, payload->offset, head, bytes);
}

static __always_inline bool is_client_hello(const __u8 *head)
{
        return head[0] == TLS_HANDSHAKE && tls_is_record_header(head) && head[TLS_HEADER] == TLS_CLIENT_HELLO;
}

static __always_inline bool is_h2_preface(const __u8 *head)
{
        return head[0] == 'P' && head[1] == 'R' && head[2] == 'I' && head[3] == ' ' && head[4] == '*' && head[5] == ' ' &&
               head[6] == 'H' && head[7] == 'T' && head[8] == 'T' && head[9] == 'P' && head[10] == '/' && head[11] == '2';
}

static __always_inline bool is_http1_status(const __u8 *head)
{
        return head[0] == 'H' && head[1] == 'T' && head[2] == 'T' && head[3] == 'P' && head[4] == '/' && head[5] == '1' &&
               head[6] == '.' && head[8] == ' ';
}

/* Requests begin with a method's name; empty lines and a PROXY header may come first. */
static __always_inline bool may_be_http1_request(const __u8 *head)
{
        return (head[0] >= 'A' && head[0] <= 'Z') || (head[0] >= 'a' && head[0] <= 'z') || head[0] == '\r' || head[0] == '\n';
}

/* A packet that is just one unfragmented control frame. */
static __always_inline bool is_websocket_control(const __u8 *head, __u32 length, bool received)
{
        __u32 header = received ? 2 + WEBSOCKET_MASK_BYTES : 2;

        return (head[0] & 0xf0) == WEBSOCKET_FIN && (head[0] & 0x0f) > WEBSOCKET_CONTROL && length >= header &&
               length - header == (head[1] & 0x7fu);
}

/* TLS may begin late: after PostgreSQL's SSLRequest, or STARTTLS. */
static __always_inline void detect_received(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                            const __u8 *head)
{
        if (is_client_hello(head)) {
                socket->received_flags |= hello_offers_h2(skb, payload);
                WRITE_ONCE(socket->data_requests, socket->requests);
                socket->protocol = ACTIVITY_PROTOCOL_TLS;
        } else if (is_h2_preface(head)) {
                socket->received = (struct activity_stream){ .skip = H2_PREFACE, .protocol = ACTIVITY_PROTOCOL_HTTP2, .synced = 1 };
                socket->received_next = payload->seq;
                socket->protocol = ACTIVITY_PROTOCOL_HTTP2;
        } else if (socket->protocol == ACTIVITY_PROTOCOL_NEW) {
                socket->protocol = ACTIVITY_PROTOCOL_PLAIN;
                if (!may_be_http1_request(head))
                        WRITE_ONCE(socket->received_flags, socket->received_flags | ACTIVITY_NOT_HTTP1);
        }
}

/* The client's first payload can escape the hooks, when it came with the handshake; the server's tells as well. */
static __always_inline void detect_sent(struct activity_socket *socket, const __u8 *head)
{
        if (!(READ_ONCE(socket->received_flags) & ACTIVITY_ASKED)) /* the server speaks first */
                return;
        if (head[0] == TLS_HANDSHAKE && tls_is_record_header(head)) {
                socket->received_flags |= ACTIVITY_TLS_H2_DOUBT;
                socket->protocol = ACTIVITY_PROTOCOL_TLS;
        } else if (h2_is_frame_header(head) && head[3] == H2_SETTINGS) {
                socket->protocol = ACTIVITY_PROTOCOL_HTTP2;
        } else {
                socket->protocol = ACTIVITY_PROTOCOL_PLAIN;
        }
}

static __always_inline struct walk walk_of(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                           bool received, __u64 now)
{
        return (struct walk){
                .skb = skb, .socket = socket, .now = now, .offset = payload->offset, .rest = payload->length, .received = received
        };
}

/* TLS and HTTP/2 begin early in a connection or not at all. */
static __always_inline bool may_change(const struct activity_socket *socket)
{
        if (socket->protocol == ACTIVITY_PROTOCOL_TLS)
                return false;
        if (socket->protocol == ACTIVITY_PROTOCOL_HTTP2)
                return !socket->received.synced;
        return socket->payloads < PLAIN_PAYLOADS_MAX;
}

static __noinline bool payload_received_slowly(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                               __u64 now)
{
        bool upgraded = READ_ONCE(socket->sent_flags) & ACTIVITY_UPGRADED;
        __u8 head[HEAD_BYTES] = {};

        if (upgraded || may_change(socket)) {
                payload_head(skb, payload, head);
                detect_received(skb, socket, payload, head);
        }
        if (has_records(socket)) {
                struct walk walk = walk_of(skb, socket, payload, true, now);

                if (!walk_packet(&walk, payload)) {
                        open_data_request(socket, now);
                        return true;
                }
                return walk.activity;
        }
        socket->received_next = payload->seq + payload->length;
        if (upgraded && is_websocket_control(head, payload->length, true))
                return false;
        if (socket->payloads < PLAIN_PAYLOADS_MAX)
                socket->payloads++;
        ask(socket, socket->received_next, now);
        return true;
}

/* Both return whether the payload is activity. */
static __always_inline bool payload_received(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                             __u64 now)
{
        if (socket->protocol != ACTIVITY_PROTOCOL_PLAIN || may_change(socket) ||
            (READ_ONCE(socket->sent_flags) & ACTIVITY_UPGRADED))
                return payload_received_slowly(skb, socket, payload, now);
        socket->received_next = payload->seq + payload->length;
        ask(socket, socket->received_next, now);
        return true;
}

struct head_end {
        struct __sk_buff *skb;
        __u32 offset;
        bool found;
};

static long find_head_end(__u32 index, struct head_end *end)
{
        __u8 bytes[4];

        if (bpf_skb_load_bytes(end->skb, end->offset + index, bytes, sizeof(bytes)) < 0)
                return 1;
        end->found = bytes[0] == '\r' && bytes[1] == '\n' && bytes[2] == '\r' && bytes[3] == '\n';
        return end->found;
}

static __always_inline bool may_be_partial_head(struct __sk_buff *skb, const struct payload *payload)
{
        __u8 last[4];

        if (payload->length > HEAD_PARTIAL_MAX || payload->length < sizeof(last) ||
            bpf_skb_load_bytes(skb, payload->offset + payload->length - sizeof(last), last, sizeof(last)) < 0)
                return false;
        return last[2] == '\r' && last[3] == '\n' && (last[0] != '\r' || last[1] != '\n');
}

/* A short packet that ends with a line of its head, the empty one not reached: some servers send the status before they begin to work. */
static __always_inline bool is_partial_head(struct __sk_buff *skb, const struct payload *payload)
{
        struct head_end end = { .skb = skb, .offset = payload->offset };

        if (!may_be_partial_head(skb, payload))
                return false;
        bpf_loop(HEAD_PARTIAL_MAX, find_head_end, &end, 0); /* a body may end like that too */
        return !end.found;
}

static __always_inline bool plain_sent(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                       const __u8 *head, __u64 now)
{
        if (is_http1_status(head)) {
                bool informational = head[9] == '1', upgrade = informational && head[10] == '0' && head[11] == '1';

                if ((informational && !upgrade) || is_partial_head(skb, payload))
                        return true; /* the answer is yet to come */
                if (upgrade) {
                        WRITE_ONCE(socket->sent_flags, socket->sent_flags | ACTIVITY_UPGRADED);
                        WRITE_ONCE(socket->received_looked, 0);
                }
        } else if ((socket->sent_flags & ACTIVITY_UPGRADED) && is_websocket_control(head, payload->length, false)) {
                return false;
        }
        answer(socket, payload, now);
        return true;
}

static __always_inline void unknown_sent(struct activity_socket *socket, const struct payload *payload, __u64 now)
{
        if (socket->small_since != payload->acknowledged) {
                socket->small_since = payload->acknowledged;
                socket->small_bytes = 0;
        }
        socket->small_bytes += payload->length;
        if (socket->small_bytes > UNKNOWN_SMALL_BYTES)
                answer(socket, payload, now);
}

static __noinline bool payload_sent_slowly(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                           __u64 now)
{
        __u8 head[HEAD_BYTES] = {};

        if (!has_records(socket)) {
                payload_head(skb, payload, head);
                if (socket->protocol == ACTIVITY_PROTOCOL_NEW)
                        detect_sent(socket, head);
        }
        if (has_records(socket)) {
                struct walk walk = walk_of(skb, socket, payload, false, now);

                return !walk_packet(&walk, payload) || walk.activity;
        }
        return plain_sent(skb, socket, payload, head, now);
}

static __always_inline bool payload_sent(struct __sk_buff *skb, struct activity_socket *socket, const struct payload *payload,
                                         __u64 now)
{
        if (!has_records(socket)) {
                socket->sent_next = payload->seq + payload->length;
                if (socket->protocol == ACTIVITY_PROTOCOL_UNKNOWN) {
                        unknown_sent(socket, payload, now);
                        return true;
                }
                if (socket->protocol == ACTIVITY_PROTOCOL_PLAIN && (READ_ONCE(socket->received_flags) & ACTIVITY_NOT_HTTP1)) {
                        answer(socket, payload, now);
                        return true;
                }
                /* More of an answer needs no look. */
                if (is_more_of_an_answer(socket, payload) && !(socket->sent_flags & ACTIVITY_UPGRADED))
                        return true;
        }
        return payload_sent_slowly(skb, socket, payload, now);
}

#endif
