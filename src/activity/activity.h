/* SPDX-License-Identifier: Apache-2.0 */
/* Activity: what a workload's own sockets and CPUs do, seen by programs on its cgroup and nowhere else.
 *
 * A socket is *served* (accepted on one of the workload's ports, or a UDP socket bound to one), *self* (the peer is in the same cgroup)
 * or *outbound*. Payload is activity; SYNs, bare ACKs, keepalives and resets are not. A served connection with an unanswered request
 * is busy; see docs/activity.md for what counts as an answer in each protocol. Peers that the policy ignores count for nothing.
 *
 * Programs, links and maps are pinned, so a restart of the daemon loses nothing: totals are monotonic, and what is open is counted
 * from entries that live as long as their connections. Nothing depends on the network namespace that a workload or the daemon is in.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "policy/policy.h"

struct activity;
struct workload;

struct activity_callbacks {
        /* A socket of the workload began to listen, or bound a UDP port, on @port: a hint to look now. It comes shortly before the
         * kernel's tables show it. */
        void (*bound)(struct workload *workload, uint16_t port, uint8_t protocol, void *userdata);
};

/* @bpffs is the directory for pins, made if missing. Returns 0, or -errno after logging which step failed. */
int activity_new(sd_event *event, const char *bpffs, const struct activity_callbacks *callbacks, struct activity **ret_activity);
/* All workloads of this start are known: what an earlier daemon attached and nobody took over is detached. */
void activity_settle(struct activity *activity);
/* Pins stay when @keep_pins: the next daemon goes on from them. Workloads must have been freed. */
struct activity *activity_free(struct activity *activity, bool keep_pins);

struct workload_port { /* one that the workload serves: clients' payload there counts */
        uint16_t port;
        uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
};

/* One workload is one cgroup. A policy may have several: the pods of its target on this node. */
struct workload_settings {
        const char *name; /* tells workloads apart, also from one daemon to the next: "web", or "default/web/POD-UID"; any text */
        const struct policy *policy; /* its ignore rules and idle settings count; the listen entries do not: see ports */
        const struct workload_port *ports;
        size_t n_ports;
        const struct prefix
                *ignored; /* further peers that count for nothing, on every port: pods that the policy's selectors mean */
        size_t n_ignored;
};

/* Attaches to the cgroup2 directory @cgroup, or adopts what an earlier daemon attached there under the same name. Copies what it needs
 * of @settings. Returns 0, -EEXIST when another workload has that cgroup, or -errno. */
int workload_new(struct activity *activity, const struct workload_settings *settings, const char *cgroup, void *userdata,
                 struct workload **ret_workload);
/* Detaches and forgets; with @keep_pins everything stays for the next daemon. Accepts NULL, returns NULL. */
struct workload *workload_free(struct workload *workload, bool keep_pins);
/* Takes over changed ports, ignore rules and idle settings, all at once; the name stays. Nothing has changed on failure. */
int workload_update(struct workload *workload, const struct workload_settings *settings);

struct workload_connection { /* one live served connection */
        struct address remote;
        uint16_t remote_port, local_port;
        uint64_t request_since_ns; /* 0: no unanswered request */
        const char *protocol;      /* "plain", "tls", "http2", "unknown" */
};

struct workload_snapshot {
        uint64_t read_ns;                          /* when */
        uint64_t last_ns;                          /* last activity that counts, at most a clock tick late; 0: none yet */
        uint64_t received_bytes, sent_bytes;       /* served payload; monotonic */
        uint64_t connections_total;                /* served connections accepted; monotonic */
        uint32_t connections;                      /* served, open now */
        uint32_t outbound;                         /* outbound, open now */
        uint32_t open_requests;                    /* unanswered, younger than requestTimeout */
        uint64_t oldest_request_ns;                /* since when the oldest of those is open; 0: none */
        uint64_t newest_request_ns;                /* when the last of their payload came: requestTimeout counts from here */
        struct workload_connection oldest_request; /* that one */
        uint32_t cpu_millicores;                   /* over the last minute, or over the time it is known for when that is shorter */
        uint64_t cpu_window_ns;                    /* that time */
        uint64_t untracked_ns; /* since when there are connections of whose requests nothing is known; 0: none */
};

/* Both read afresh, and return 0, or -errno when any of it could not be read: then nothing is known, which is not idle. Connections and
 * open requests are counted for all workloads at once, in half a millisecond and a millisecond a thousand of them; what was found at
 * @not_before_ns or later, monotonic, is not looked for again. What has come since shows in last_ns. */
int workload_read(struct workload *workload, uint64_t not_before_ns, struct workload_snapshot *ret_snapshot);
/* All but connections and open requests, which are 0: enough to tell that a workload is busy, never that it is idle. Microseconds.
 * last_ns may be 50 ms behind. */
int workload_read_totals(struct workload *workload, struct workload_snapshot *ret_snapshot);

/* The remote ends of the served connections open now, at most @max of them; returns how many, or -errno. */
int workload_connections(struct workload *workload, struct workload_connection *connections, size_t max);

/* Connections that processes in the cgroup2 directory @cgroup make, the kubelet's, are probes to the workloads that accept them: they
 * count for nothing. Takes the place of a cgroup given before; NULL: of none. Pinned like the rest. Returns 0 or -errno. */
int activity_watch_prober(struct activity *activity, const char *cgroup);

json_t *activity_programs(const struct activity *activity); /* as hold_programs() */
