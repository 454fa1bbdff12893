/* SPDX-License-Identifier: Apache-2.0 */
/* The names of what is counted: verdicts of the BPF programs (enum lull_counter) and of the daemon. */
#pragma once

enum daemon_counter {
        DAEMON_DROPPED_REPEATED, /* a retransmitted SYN: the newer copy was kept */
        DAEMON_DROPPED_FLOW_FULL,
        DAEMON_DROPPED_SOURCE_FULL,
        DAEMON_DROPPED_POLICY_FULL,
        DAEMON_DROPPED_STORE_FULL,
        DAEMON_DROPPED_NO_MEMORY,
        DAEMON_DROPPED_UNSETTLED, /* of a frontend that no policy has taken over yet after a restart */
        DAEMON_DROPPED_UNSENDABLE,
        DAEMON_DROPPED_RESTART, /* parked when the daemon was stopped for the next one */
        DAEMON_RELEASED_READY,
        DAEMON_RELEASED_DIRECT,     /* to an endpoint */
        DAEMON_RELEASED_DATA_PLANE, /* unchanged, to a data plane that knows one */
        DAEMON_RELEASED_STOPPED,    /* holding ended before it was ready */
        DAEMON_RELEASED_LATE,       /* arrived here after holding had ended */
        DAEMON_EXPIRED_TIMEOUT,
        DAEMON_EXPIRED_REFUSED,
        DAEMON_EXPIRED_NO_LISTENER, /* released frontend, but nobody listens for this flow's address */
        DAEMON_REINJECTED_SILENCE,
        DAEMON_REINJECTED_GIVEN_UP,
        DAEMON_REINJECTED_HANDED_OVER,    /* the server answers, the client does not */
        DAEMON_REINJECTED_OTHER_ENDPOINT, /* taken back from an endpoint that refused it or stayed silent */
        DAEMON_DELAYED_TAKEN,             /* attempts: an endpoint's answers to this flow would be another connection's */
        DAEMON_DELAYED_UNREACHABLE,       /* no way from here to the endpoint */
        DAEMON_DELAYED_KERNEL,            /* the kernel had no room for an entry, or no answer */
        DAEMON_DELAYED_NO_ENTRY,          /* or takes none at all */
        DAEMON_COUNTER_MAX,
};

struct counter_name {
        const char *verdict, *reason;
};

struct counter_name counter_name(unsigned counter); /* enum lull_counter */
struct counter_name daemon_counter_name(enum daemon_counter counter);
