/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Requests and answers as far as TLS record headers tell them (RFC 8446, RFC 5246). docs/activity.md has the reasoning. */
#ifndef ACTIVITY_TLS_BPF_H
#define ACTIVITY_TLS_BPF_H

#include "activity_request.bpf.h"

enum {
        TLS_HEADER = 5,
        TLS_CHANGE_CIPHER_SPEC = 20,
        TLS_HANDSHAKE = 22,
        TLS_APPLICATION_DATA = 23,
        TLS_CLIENT_HELLO = 1,
        TLS_RECORD_MAX = 16384 + 2048,

        TLS_13_OVERHEAD = 17,        /* content type and AEAD tag */
        TLS_12_GCM_OVERHEAD = 24,    /* nonce and tag */
        TLS_12_CHACHA_OVERHEAD = 16, /* tag */

        /* A Finished message in TLS 1.3: 4 bytes of header and a SHA-256 or SHA-384. */
        TLS_13_FINISHED_SHORT = 4 + 32 + TLS_13_OVERHEAD,
        TLS_13_FINISHED_LONG = 4 + 48 + TLS_13_OVERHEAD,

        TLS_TICKET_MIN = 60,
        TLS_TICKET_MAX = 1500,
        TLS_TICKETS_MAX = 4,
        TLS_EARLY_TICKET_MIN = 110, /* an HTTP/2 server's SETTINGS are shorter */
        TLS_H2_SETTINGS_MAX = 128,
        TLS_H2_PREFACE_MAX = 96, /* preface, SETTINGS and a WINDOW_UPDATE; longer ones have a request with them */
};

#define TLS_TICKETS_WITHIN_NS 10000000000ull

static __always_inline bool tls_is_record_header(const __u8 *header)
{
        return header[0] >= 20 && header[0] <= 24 && header[1] == 3 && header[2] <= 4 &&
               ((__u32)header[3] << 8 | header[4]) <= TLS_RECORD_MAX;
}

/* HTTP/2 frames that ask for nothing and answer nothing have fixed sizes. A server likes to send several in one record. */
enum { H2_SETTINGS_ACK_SIZE = 9, H2_WINDOW_UPDATE_SIZE = 13, H2_PING_SIZE = 17 };

static __always_inline bool h2_is_control_size(__u32 size, bool several)
{
        if (size == H2_SETTINGS_ACK_SIZE || size == H2_WINDOW_UPDATE_SIZE || size == H2_PING_SIZE)
                return true;
        return several && (size == 18 || size == 22 || size == 26 || size == 30 || size == 34 || size == 39);
}

/* How many PINGs are in frames that a server sends in one record. 39 could be three WINDOW_UPDATEs, which nobody sends at once; 26 may
 * be two, and is taken for that. */
static __always_inline __u32 h2_pings_in(__u32 size)
{
        if (size == 34)
                return 2;
        return size == H2_PING_SIZE || size == 30 || size == 39;
}

static __always_inline __u32 tls_plain_size(struct activity_socket *socket, __u32 length)
{
        return length - (READ_ONCE(socket->sent_flags) & ACTIVITY_TLS_13 ? TLS_13_OVERHEAD : TLS_12_GCM_OVERHEAD);
}

/* Each PING is acknowledged by one of the same size, so both directions count alike once all is quiet. A PING of the client's is taken
 * for a request until its acknowledgement goes out, which is at once; a request that happens to have its size then stays open. */
static __always_inline void h2_ping_received(struct activity_socket *socket, __u64 now)
{
        WRITE_ONCE(socket->pings_received, socket->pings_received + 1);
        if ((__s32)(socket->pings_received - READ_ONCE(socket->pings_sent)) <= 0 || has_open_data_request(socket))
                return;
        WRITE_ONCE(socket->ping_request, socket->requests + 1);
        open_data_request(socket, now);
}

static __always_inline void h2_pings_sent(struct activity_socket *socket, __u32 pings)
{
        if (!pings)
                return;
        WRITE_ONCE(socket->pings_sent, socket->pings_sent + pings);
        if ((__s32)(socket->pings_sent - READ_ONCE(socket->pings_received)) >= 0 &&
            READ_ONCE(socket->ping_request) == READ_ONCE(socket->requests))
                answer_requests(socket);
}

/* Frames that share a record have sizes that requests have too, so only single ones are known, and those that come with the
 * acknowledgement of the server's SETTINGS: no request is that small before the client's header table has filled. */
static __always_inline bool tls_is_h2_control_received(struct activity_socket *socket, __u32 size, __u64 now)
{
        bool settling =
                !(socket->received_flags & ACTIVITY_TLS_H2_SETTLED) && (READ_ONCE(socket->sent_flags) & ACTIVITY_TLS_H2_SETTINGS);

        if (!h2_is_control_size(size, false) && !(settling && (size == 18 || size == 22)))
                return false;
        if (settling)
                socket->received_flags |= ACTIVITY_TLS_H2_SETTLED;
        if (size == H2_PING_SIZE)
                h2_ping_received(socket, now);
        return true;
}

/* A request may come with the preface, so it opens one; but that one does not make two of the next. */
static __always_inline void tls_note_h2_preface(struct activity_socket *socket, __u32 length)
{
        if (socket->received_flags & ACTIVITY_TLS_H2_PREFACE)
                return;
        socket->received_flags |= ACTIVITY_TLS_H2_PREFACE;
        if (tls_plain_size(socket, length) <= TLS_H2_PREFACE_MAX)
                socket->preface_request = socket->requests + 1;
}

/* Both return whether the record is activity. */
static __always_inline bool tls_received(struct activity_socket *socket, __u8 type, __u32 length, __u64 now)
{
        if (type == TLS_HANDSHAKE) {
                if (!has_open_data_request(socket))
                        open_request(socket, now);
                return true;
        }
        if (type != TLS_APPLICATION_DATA)
                return false;

        if (!(socket->received_flags & ACTIVITY_TLS_CLIENT_DATA)) {
                socket->client_data_ns = now;
                WRITE_ONCE(socket->received_flags, socket->received_flags | ACTIVITY_TLS_CLIENT_DATA);
        }
        if ((READ_ONCE(socket->sent_flags) & ACTIVITY_TLS_13) && !(socket->received_flags & ACTIVITY_TLS_CLIENT_FINISHED) &&
            (length == TLS_13_FINISHED_SHORT || length == TLS_13_FINISHED_LONG)) {
                socket->received_flags |= ACTIVITY_TLS_CLIENT_FINISHED;
                return true;
        }
        if ((socket->received_flags & ACTIVITY_TLS_H2_OFFERED) &&
            tls_is_h2_control_received(socket, tls_plain_size(socket, length), now))
                return false;

        tls_note_h2_preface(socket, length);
        open_data_request(socket, now);
        return true;
}

/* In TLS 1.3 a server's session tickets come before the application has seen the request: after the client's Finished, one or several
 * of the same size (OpenSSL, BoringSSL), or already after its own Finished (Go). */
static __always_inline bool tls_is_ticket(struct activity_socket *socket, __u32 length, __u64 now)
{
        if (!(socket->sent_flags & ACTIVITY_TLS_13) || (socket->sent_flags & ACTIVITY_TLS_TICKETS_OVER))
                return false;

        if (now - socket->client_data_ns < TLS_TICKETS_WITHIN_NS && socket->tickets < TLS_TICKETS_MAX &&
            (socket->tickets ? length == socket->ticket_bytes : length >= TLS_TICKET_MIN && length <= TLS_TICKET_MAX)) {
                socket->ticket_bytes = (__u16)length;
                socket->tickets++;
                return true;
        }
        socket->sent_flags |= ACTIVITY_TLS_TICKETS_OVER;
        return false;
}

/* The server's own handshake records. Only in TLS 1.2 one, its Finished, follows ChangeCipherSpec. */
static __always_inline void tls_note_version(struct activity_socket *socket, __u8 type)
{
        if (type == TLS_CHANGE_CIPHER_SPEC)
                WRITE_ONCE(socket->sent_flags, socket->sent_flags | ACTIVITY_TLS_CIPHER_CHANGED);
        else if (type == TLS_HANDSHAKE && (socket->sent_flags & ACTIVITY_TLS_CIPHER_CHANGED))
                WRITE_ONCE(socket->sent_flags, socket->sent_flags | ACTIVITY_TLS_12);
}

/* Application data before the client's, and not TLS 1.2: the encrypted handshake of TLS 1.3. */
static __always_inline void tls_sent_early(struct activity_socket *socket, __u32 length)
{
        __u32 flags = socket->sent_flags | ACTIVITY_TLS_13;

        if ((flags & ACTIVITY_TLS_FINISHED) && length >= TLS_EARLY_TICKET_MIN)
                flags |= ACTIVITY_TLS_TICKETS_OVER;
        if (length == TLS_13_FINISHED_SHORT || length == TLS_13_FINISHED_LONG)
                flags |= ACTIVITY_TLS_FINISHED;
        WRITE_ONCE(socket->sent_flags, flags);
}

/* Whether an HTTP/2 server's record is none of an answer. The first thing it sends is its SETTINGS (RFC 9113 section 3.4). */
static __always_inline bool tls_is_h2_control_sent(struct activity_socket *socket, __u32 length)
{
        __u32 size = tls_plain_size(socket, length);
        bool chacha = !(socket->sent_flags & ACTIVITY_TLS_13) && h2_is_control_size(length - TLS_12_CHACHA_OVERHEAD, true);

        if (!(socket->sent_flags & ACTIVITY_TLS_H2_SETTINGS)) {
                socket->sent_flags |= ACTIVITY_TLS_H2_SETTINGS;
                return size <= TLS_H2_SETTINGS_MAX;
        }
        h2_pings_sent(socket, h2_pings_in(size));
        return chacha || h2_is_control_size(size, true);
}

static __always_inline bool tls_sent(struct activity_socket *socket, __u8 type, __u32 length, __u64 now)
{
        __u32 received_flags = READ_ONCE(socket->received_flags);

        tls_note_version(socket, type);
        if (type != TLS_HANDSHAKE && type != TLS_APPLICATION_DATA)
                return false;

        if (type == TLS_HANDSHAKE || (!(received_flags & ACTIVITY_TLS_CLIENT_DATA) && !(socket->sent_flags & ACTIVITY_TLS_12))) {
                if (type == TLS_APPLICATION_DATA)
                        tls_sent_early(socket, length);
                if (!has_open_data_request(socket))
                        answer_requests(socket);
                return true;
        }

        if (tls_is_ticket(socket, length, now))
                return false;
        if (!(received_flags & (ACTIVITY_TLS_H2_OFFERED | ACTIVITY_TLS_H2_DOUBT))) {
                answer_requests(socket);
                return true;
        }
        if (tls_is_h2_control_sent(socket, length))
                return false;
        answer_one_request(socket);
        return true;
}

#endif
