/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Whether a ClientHello offers HTTP/2 (RFC 8446 section 4.1.2, RFC 7301). Looked at once a connection. */
#ifndef ACTIVITY_ALPN_BPF_H
#define ACTIVITY_ALPN_BPF_H

#include "activity_tls.bpf.h"

enum {
        HELLO_SESSION_ID = TLS_HEADER + 4 + 2 + 32, /* handshake header, version, random */
        HELLO_EXTENSIONS_MAX = 48,
        HELLO_NAMES_MAX = 16,
        EXTENSION_ALPN = 16,
};

struct hello {
        struct __sk_buff *skb;
        __u32 offset;
        __u32 end;   /* of the packet */
        __u32 flags; /* what was found: ACTIVITY_TLS_H2_OFFERED, ACTIVITY_TLS_H2_DOUBT or 0 */
};

static long hello_name(__u32 index, struct hello *hello)
{
        __u8 name[3];

        if (hello->offset + sizeof(name) > hello->end || bpf_skb_load_bytes(hello->skb, hello->offset, name, sizeof(name)) < 0)
                return 1;
        if (name[0] == 2 && name[1] == 'h' && name[2] == '2') {
                hello->flags = ACTIVITY_TLS_H2_OFFERED;
                return 1;
        }
        hello->offset += 1u + name[0];
        return 0;
}

static long hello_extension(__u32 index, struct hello *hello)
{
        __be16 header[2];

        if (hello->offset == hello->end) { /* the last one was read */
                hello->flags = 0;
                return 1;
        }
        if (bpf_skb_load_bytes(hello->skb, hello->offset, header, sizeof(header)) < 0)
                return 1;
        hello->offset += sizeof(header);
        if (header[0] == bpf_htons(EXTENSION_ALPN)) {
                __u32 end = hello->offset + bpf_ntohs(header[1]);

                if (end > hello->end)
                        return 1;
                hello->end = end;
                hello->offset += 2;
                hello->flags = 0;
                bpf_loop(HELLO_NAMES_MAX, hello_name, hello, 0);
                return 1;
        }
        hello->offset += bpf_ntohs(header[1]);
        return 0;
}

static __always_inline __u32 hello_offers_h2(struct __sk_buff *skb, const struct payload *payload)
{
        struct hello hello = { .skb = skb, .offset = payload->offset + HELLO_SESSION_ID, .flags = ACTIVITY_TLS_H2_DOUBT };
        __be16 length;
        __u8 byte;

        if (bpf_skb_load_bytes(skb, hello.offset, &byte, 1) < 0)
                return hello.flags;
        hello.offset += 1u + byte;
        if (bpf_skb_load_bytes(skb, hello.offset, &length, 2) < 0) /* cipher suites */
                return hello.flags;
        hello.offset += 2u + bpf_ntohs(length);
        if (bpf_skb_load_bytes(skb, hello.offset, &byte, 1) < 0) /* compression methods */
                return hello.flags;
        hello.offset += 1u + byte;
        if (bpf_skb_load_bytes(skb, hello.offset, &length, 2) < 0)
                return hello.flags;
        hello.offset += 2;
        hello.end = hello.offset + bpf_ntohs(length);

        bpf_loop(HELLO_EXTENSIONS_MAX, hello_extension, &hello, 0);
        return hello.flags;
}

#endif
