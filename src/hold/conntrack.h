/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's connection tracking in the daemon's network namespace, over ctnetlink: entries with the translation that a data plane
 * would make, what has become of them, and what happens to them.
 *
 * A request is a synchronous round trip of some microseconds. Events come from the event loop; they tell that something happened to an
 * entry, and may be lost, so that who relies on them must be able to look (conntrack_find()). Needs CAP_NET_ADMIN.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/address.h"

struct conntrack;

struct conntrack_entry {
        struct flow original; /* as the first packet has it */
        struct flow reply;    /* as answers have it: its source is who answers */
        uint32_t status;      /* enum ip_conntrack_status, linux/netfilter/nf_conntrack_common.h */
        uint8_t tcp_state;    /* enum tcp_conntrack, linux/netfilter/nf_conntrack_tcp.h; 0 for UDP */
};

struct conntrack_translation {
        struct address endpoint; /* of the flow's family */
        uint16_t port;
        const struct address *masquerade; /* the source that the endpoint sees; NULL: the flow's own */
        uint32_t timeout_seconds;         /* until the first packet */
};

enum conntrack_event {
        CONNTRACK_UPDATED,
        CONNTRACK_DESTROYED,
        CONNTRACK_LOST, /* events were; there is no entry */
};
typedef void (*conntrack_callback)(enum conntrack_event event, const struct conntrack_entry *entry, void *userdata);

int conntrack_new(sd_event *event, conntrack_callback callback, void *userdata, struct conntrack **ret_conntrack);
struct conntrack *conntrack_free(struct conntrack *conntrack);
DEFINE_CLEANUP(struct conntrack, conntrack_free)

/* Begins or ends the events. Every connection of this host causes some, so they are wanted only while something depends on them.
 * (Where nf_conntrack_events is 2, the default, entries made before that have none.) Idempotent. Returns 0 or -errno. */
int conntrack_follow(struct conntrack *conntrack, bool follow);

/* Makes an entry for @flow that has not seen a packet yet (TCP: state NONE). The kernel keeps the source port that a masqueraded flow
 * has, or chooses another where that is taken. Returns 0, -EEXIST, or -errno. */
int conntrack_create(struct conntrack *conntrack, const struct flow *flow, const struct conntrack_translation *translation);
/* By its original direction. Returns 0, -ENOENT, or -errno. */
int conntrack_find(struct conntrack *conntrack, const struct flow *flow, struct conntrack_entry *ret_entry);
int conntrack_delete(struct conntrack *conntrack, const struct flow *flow);

bool conntrack_is_answered(
        const struct conntrack_entry *entry); /* a packet came back; a reset as the first answer leaves no entry */
