/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Served connections in plain protocols while they are under way: nearly all payload ends here. Each side touches one cache line of the
 * connection's slot, and neither the totals nor the configuration: ACTIVITY_BEHIND_NS later a packet takes the long way again, and brings
 * them up to date. */
#ifndef ACTIVITY_PLAIN_BPF_H
#define ACTIVITY_PLAIN_BPF_H

#include "activity_connection.bpf.h"
#include "activity_protocol.bpf.h"

const volatile __u64 tick_ns = 10000000; /* of the kernel's clock */

/* What is neither in the middle of a conversation nor the usual kind of an answer is for plain_sent() to judge. */
static __always_inline bool is_usual_answer(struct __sk_buff *skb, const struct payload *payload)
{
        __u8 head[HEAD_BYTES];

        payload_head(skb, payload, head);
        if (!is_http1_status(head))
                return true;
        return head[9] != '1' && !may_be_partial_head(skb, payload);
}

/* The time in jiffies, which costs no call, as far as it can be told from the last close look; 0: it was too long ago, or there was none. */
static __always_inline __u64 plain_now(__u64 looked, __u64 looked_ns)
{
        __u64 since_ns = (bpf_jiffies64() - looked) * tick_ns;

        return since_ns < ACTIVITY_BEHIND_NS ? looked_ns + since_ns : 0;
}

static __always_inline bool is_plain_received(struct activity_socket *slot, __u64 cookie, const struct payload *payload)
{
        __u64 now = plain_now(READ_ONCE(slot->received_looked), slot->received_looked_ns);

        if (READ_ONCE(slot->cookie) != cookie || slot->received_next != payload->seq || !now ||
            slot->received_pending > ACTIVITY_PENDING_MAX)
                return false;
        slot->received_next = payload->seq + payload->length;
        slot->received_pending += payload->length;
        ask(slot, slot->received_next, now);
        return true;
}

static __always_inline bool is_plain_sent(struct __sk_buff *skb, struct activity_socket *slot, __u64 cookie,
                                          const struct payload *payload)
{
        __u64 now = plain_now(READ_ONCE(slot->sent_looked), slot->sent_looked_ns);

        if (READ_ONCE(slot->sent_cookie) != cookie || slot->sent_next != payload->seq || !now ||
            slot->sent_pending > ACTIVITY_PENDING_MAX)
                return false;
        if (!is_more_of_an_answer(slot, payload)) {
                if (!(slot->sent_flags & ACTIVITY_ANSWERS_UNREAD) && !is_usual_answer(skb, payload))
                        return false;
                answer(slot, payload, now);
        }
        slot->sent_next = payload->seq + payload->length;
        slot->sent_pending += payload->length;
        slot->sent_last_ns = now;
        return true;
}

/* Whether nothing is left to do for a packet. */
static __always_inline bool is_plain(struct __sk_buff *skb, const struct payload *payload, bool received)
{
        __u64 cookie = bpf_get_socket_cookie(skb);
        struct activity_socket *slot = connection_slot(cookie);

        if (!slot)
                return false;
        return received ? is_plain_received(slot, cookie, payload) : is_plain_sent(skb, slot, cookie, payload);
}

static __always_inline __u32 take_pending(struct activity_socket *socket, bool received)
{
        __u32 *pending = received ? &socket->received_pending : &socket->sent_pending, bytes = *pending;

        *pending = 0;
        return bytes;
}

/* After a packet that took the long way: whether the next ones need not. */
static __always_inline void plain_from_now(struct activity_socket *socket, bool received, __u64 now)
{
        bool plain = socket->protocol == ACTIVITY_PROTOCOL_PLAIN && !may_change(socket) && !socket->closing &&
                     !(READ_ONCE(socket->sent_flags) & ACTIVITY_UPGRADED);
        __u64 looked = plain ? bpf_jiffies64() : 0;

        if (received) {
                socket->received_looked_ns = now;
                WRITE_ONCE(socket->received_looked, looked);
                return;
        }
        if (READ_ONCE(socket->received_flags) & ACTIVITY_NOT_HTTP1)
                socket->sent_flags |= ACTIVITY_ANSWERS_UNREAD;
        socket->sent_looked_ns = now;
        WRITE_ONCE(socket->sent_looked, looked);
}

#endif
