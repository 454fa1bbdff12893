// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Holds first packets at PREROUTING, of IPv4 and IPv6: what enters this host, loopback included; and where frontends are translated,
 * at LOCAL_OUT what this host sends to them (TCP only: a datagram dropped there is an error to its sender).
 *
 * There the IP header is where the data begins, whatever tags or bridges the packet came through (VLAN tags are off, and a bridge's
 * netfilter calls name the bridge as the device), and fragments are reassembled where the link asks for it.
 */
#include "decide.bpf.h"
#include "refusal.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The longest packet that can enter through an interface once more (see src/bpf/hold_hooks.c, which measures it). */
const volatile __u32 reinject_max = 0;
const volatile bool translated = false;

static __always_inline __u16 gso_size(struct sk_buff *skb)
{
        struct skb_shared_info *shared = (struct skb_shared_info *)(skb->head + skb->end);

        return BPF_CORE_READ(shared, gso_size);
}

static __always_inline void describe(struct bpf_nf_ctx *ctx, bool leaving, struct lull_packet *record)
{
        record->flags = 0;
        record->ifindex = 0;
        record->gso_size = gso_size(ctx->skb);
        if (BPF_CORE_READ_BITFIELD(ctx->skb, ip_summed) == CHECKSUM_PARTIAL)
                record->flags |= LULL_PACKET_CHECKSUM_PARTIAL;
        if (leaving) {
                record->flags |= LULL_PACKET_LOCAL_OUT;
                return;
        }

        record->ifindex = ctx->state->in->ifindex;
        if (ctx->state->in->flags & IFF_LOOPBACK)
                record->flags |= LULL_PACKET_LOOPBACK;
}

/* Packets of this host go back by a raw socket, which takes them whole; of a GSO packet each datagram goes back by itself. */
static __always_inline bool can_return(struct bpf_nf_ctx *ctx, bool leaving, const struct packet *packet)
{
        __u32 longest = packet->length;
        __u16 payload = gso_size(ctx->skb);

        if (packet->length > LULL_PACKET_LARGE)
                return false;
        if (leaving || ctx->state->in->flags & IFF_LOOPBACK)
                return true;
        if (payload)
                longest = packet->header_length + payload;
        return longest <= reinject_max;
}

/* Counted as published before the daemon can see it, so that consumed never passes published. */
static __always_inline int publish(struct bpf_nf_ctx *ctx, bool leaving, const struct packet *packet, const struct bpf_dynptr *data,
                                   __u64 now_ns, __u32 slot, struct lull_demand *entry, const __u32 capacity)
{
        struct lull_packet *record = bpf_ringbuf_reserve(&events, sizeof(*record) + capacity, 0);
        __u32 length = packet->length;

        if (!record)
                return LULL_COUNTER_HELD_RING_FULL;

        describe(ctx, leaving, record);
        record->time_ns = now_ns;
        record->slot = slot;
        record->length = length;
        record->flow = packet->flow;
        if (length > capacity || bpf_dynptr_read(record->data, length, data, 0, 0) < 0) {
                bpf_ringbuf_discard(record, 0);
                return LULL_COUNTER_HELD_UNREADABLE;
        }

        __sync_fetch_and_add(&entry->published, 1);
        bpf_ringbuf_submit(record, 0);
        return LULL_COUNTER_HELD;
}

static __always_inline int hold(struct bpf_nf_ctx *ctx, bool leaving, const struct packet *packet, const struct bpf_dynptr *data)
{
        struct lull_demand *entry = NULL;
        __u64 now_ns = bpf_ktime_get_ns();
        __u32 slot = 0;
        int verdict;

        verdict = decide(packet, now_ns, &slot, &entry);
        if (verdict != LULL_COUNTER_HELD || !entry)
                return verdict;
        if (!can_return(ctx, leaving, packet))
                return LULL_COUNTER_PASS_TOO_LARGE;
        if (entry->published - entry->consumed >= entry->limit)
                return LULL_COUNTER_PASS_QUOTA;

        if (packet->length <= LULL_PACKET_SMALL)
                return publish(ctx, leaving, packet, data, now_ns, slot, entry, LULL_PACKET_SMALL);
        if (packet->length <= LULL_PACKET_MEDIUM)
                return publish(ctx, leaving, packet, data, now_ns, slot, entry, LULL_PACKET_MEDIUM);
        return publish(ctx, leaving, packet, data, now_ns, slot, entry, LULL_PACKET_LARGE);
}

static __always_inline int finish(int verdict)
{
        __u64 *counter;

        if (verdict < 0)
                return NF_ACCEPT;

        counter = bpf_map_lookup_elem(&counters, &verdict);
        if (counter)
                (*counter)++;
        return verdict <= LULL_COUNTER_HELD_REFUSAL ? NF_DROP : NF_ACCEPT;
}

static __always_inline int examine(struct bpf_nf_ctx *ctx, bool leaving)
{
        bool ipv4 = ctx->state->pf == NFPROTO_IPV4;
        struct lull_flow answer = {};
        struct packet packet = {};
        struct bpf_dynptr data;
        int verdict;

        if (bpf_dynptr_from_skb((struct __sk_buff *)ctx->skb, 0, &data) < 0)
                return NF_ACCEPT;

        if (ipv4)
                verdict = parse_ipv4(&packet, &data, ctx->skb->len);
        else
                verdict = parse_ipv6(&packet, &data, ctx->skb->len);
        if (leaving && packet.flow.protocol == IPPROTO_UDP)
                return NF_ACCEPT;
        if (verdict == VERDICT_FIRST)
                verdict = hold(ctx, leaving, &packet, &data);
        else if (verdict == VERDICT_OTHER && translated && parse_refusal(&data, ipv4, &answer))
                verdict = keep_refusal(&answer);
        return finish(verdict);
}

SEC("hold") /* a netfilter program: libbpf 1.1 knows no section name for it */
int hold_prerouting(struct bpf_nf_ctx *ctx)
{
        return examine(ctx, false);
}

SEC("hold")
int hold_local_out(struct bpf_nf_ctx *ctx)
{
        return examine(ctx, true);
}
