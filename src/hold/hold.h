/* SPDX-License-Identifier: Apache-2.0 */
/* Holding: the first packets of new flows to sleeping frontends are kept here and released once their frontend answers.
 *
 * One struct hold a process owns the BPF objects, the maps, the ring buffer, the parked packets and the sockets that re-inject them;
 * one struct holding a policy says which frontends it holds. The hooks are attached only while some holding is started. What the
 * kernel side dropped but could not hand over is still known: demand is read from the map on every doorbell and once a second.
 *
 * Bounds, each counted when reached: per policy (wake.maxHeld packets, 4 MiB), per source prefix (/32, /64: a quarter of maxHeld, at
 * least 64), per UDP flow (16 datagrams, 64 KiB), in all (16 MiB). A packet over a user-space bound is dropped: its sender's
 * retransmission is the queue.
 *
 * Callbacks come from the event loop, never from within a call into this module. They may start, stop and free holdings, but not free
 * or suspend the hold itself.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/address.h"

struct hold;
struct holding;

struct hold_demand {
        uint64_t first_ns; /* when the hook saw the first packet */
        struct flow flow;  /* of that packet; where only the map knows of it, the destination is the frontend's address */
        bool from_this_host;
        size_t frontend; /* index */
};

struct hold_callbacks {
        /* Somebody asks for a holding's frontend: once a started holding, until it is started again or hold_rearm() is called. */
        void (*demand)(struct holding *holding, const struct hold_demand *demand, void *userdata);
        /* A flow was handed on for the first time, at @at_ns (CLOCK_MONOTONIC). */
        void (*released)(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata);
        /* A released flow was answered: for TCP its connection is established. */
        void (*answered)(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata);
        /* After hold_release(): nothing is parked any more, every frontend is ready, and holding has stopped. */
        void (*drained)(struct holding *holding, void *userdata);
};

/* Where frontends are Service addresses that a data plane translates to endpoints elsewhere. */
struct hold_translation {
        bool wait; /* never release directly: always leave the flows to the data plane */
        bool masquerade_all;
        const struct prefix
                *cluster; /* sources outside of these are masqueraded, as kube-proxy's clusterCIDR has it; none: none is */
        size_t n_cluster;
};

struct hold_config {
        sd_event *event;
        const char *bpffs;                          /* directory on a bpffs for this daemon's pins; made if missing */
        const struct hold_translation *translation; /* NULL: frontends are sockets of this host */
};

/* Loads the programs (adopting the maps of an earlier daemon pinned in the same directory) and begins the heartbeat. Frontends left by
 * an earlier daemon stay held until hold_settle(). Returns 0, or -errno after logging which step failed. */
int hold_new(const struct hold_config *config, const struct hold_callbacks *callbacks, void *userdata, struct hold **ret_hold);
/* Detaches and unpins everything: traffic is as if lull were not there. What is parked goes on first. Holdings that are still there hold
 * nothing from then on, and are yet to be freed. Accepts NULL, returns NULL. */
struct hold *hold_free(struct hold *hold);
DEFINE_CLEANUP(struct hold, hold_free)
/* A planned stop: for 20 s the hooks drop first packets so that their retransmissions find the next daemon, as do those of what is
 * parked; pins stay. Frees @hold; holdings as with hold_free(). */
struct hold *hold_suspend(struct hold *hold);
/* All holdings of this start are known: frontends left by an earlier daemon and not taken over are let go. */
void hold_settle(struct hold *hold);

/* Whose flows the endpoint must answer by way of this node. */
enum holding_masquerade {
        MASQUERADE_OUTSIDERS, /* as hold_config says: those of a Service's own address */
        MASQUERADE_ALL,       /* node ports and the like, parking */
        MASQUERADE_NONE,      /* ... whose traffic policy is Local: the endpoint sees who asks */
};

struct holding_service {                    /* what a translated frontend has beside its address */
        const struct prefix *source_ranges; /* only sources in these, beside what @from says; none: everybody */
        size_t n_source_ranges;
        bool local;    /* endpoints on this node only */
        bool affinity; /* only the data plane knows which endpoint a client belongs to */
        bool parking;  /* a parking port: data planes lead others' flows to it until they know better, and none leads its own on */
        uint32_t backend; /* a number: whose flows are led to the parking ports of the same one */
        enum holding_masquerade masquerade;
};

struct holding_config {
        const char *name; /* the policy's */
        const struct frontend *frontends;
        size_t n_frontends;
        const struct holding_service *services; /* as many; NULL where nothing is translated */
        const struct prefix *from;              /* who may wake; empty: everybody */
        size_t n_from;
        const struct holding_ignore { /* sources that may not */
                struct prefix prefix;
                uint16_t port; /* of the frontend; 0: every */
        } *ignore;
        size_t n_ignore;
        uint32_t max_held;
        uint64_t hold_timeout_ns; /* a packet parked for longer goes on to its normal refusal */
};

/* Registers a policy; nothing is held yet. Copies the configuration. Returns 0, -ENOMEM, or -ENOSPC past LULL_FRONTENDS_MAX. */
int holding_new(struct hold *hold, const struct holding_config *config, void *userdata, struct holding **ret_holding);
/* Releases what is parked at once, stops holding, forgets the policy. */
struct holding *holding_free(struct holding *holding);
DEFINE_CLEANUP(struct holding, holding_free)
/* What @from has parked, and demand that it did not yet tell, goes over to @to as far as that has frontends and room for it; both are
 * started. For a policy whose frontends or limits changed, before its old holding is freed. */
void holding_move(struct holding *from, struct holding *to);
/* The userdata given to holding_new(). */
void *holding_userdata(const struct holding *holding);

/* Begins to hold new flows to every frontend; idempotent; attaches the hooks for the first holding. After a hold_release() that has
 * not drained, it holds again. Returns 0 or -errno. */
int holding_start(struct holding *holding);
/* Frontend @index answers: its parked flows are released, paced by the accept queue and by observed answers; new flows join the end of
 * the queue. Once all frontends are released and nothing is parked, holding stops and drained() is called. A translated frontend is
 * thereby proven: its flows go on unchanged. */
void holding_release(struct holding *holding, size_t index);
/* Translated frontends have three states: held; *releasing*, while each flow, parked or new, is given an endpoint of its own and goes on
 * at once; and proven, when the data plane has answered a half-open probe to the frontend, so that nothing needs to be held any more. */
struct holding_endpoint {
        struct address address;
        uint16_t port;
        bool on_this_node;
};
/* Frontend @index is releasing, to @endpoints (of which at most 64 are used), which replace those from before; flows under way to one that
 * is gone go to another. With none it holds again. Without effect while @holding is not started. Returns 0, -ENOMEM, or -EINVAL where
 * nothing is translated. */
int holding_set_endpoints(struct holding *holding, size_t index, const struct holding_endpoint *endpoints, size_t n_endpoints);
/* The data plane may be expected to know an endpoint from now on: half-open probes are sent to every frontend until it answers; then,
 * with nothing parked any more, holding stops and drained() is called. */
void holding_expect_data_plane(struct holding *holding);

/* All that is parked goes on to its normal refusal, now, and its flows stay exempt long enough for their retransmissions to get the
 * same; stops holding. */
void holding_refuse(struct holding *holding);
/* Stops holding at once: parked packets go on immediately, unpaced. */
void holding_stop(struct holding *holding);
/* demand() will be called again for the next packet. */
void holding_rearm(struct holding *holding);
bool holding_is_started(const struct holding *holding);
/* An earlier daemon held frontends of it, and they still are held: until @holding is started, or hold_settle() lets them go. */
bool holding_is_left(const struct holding *holding);
/* The next demand in the map since holding_start() or holding_rearm(), read now. */
bool holding_has_demand(struct holding *holding);
size_t holding_parked(const struct holding *holding); /* packets */

/* For people and metrics. The caller owns the JSON. */
/* [{policy, flow, packets, bytes, age_seconds, state}]; state: "parked", "released" (and not yet answered), or what a translated flow
 * waits for a proven data plane for: "data-plane-configured", "data-plane-affinity", "data-plane-no-nat", "data-plane-refused". */
json_t *hold_list(const struct hold *hold);
json_t *hold_programs(const struct hold *hold); /* [{name, type, attach, attached, id, run_count, run_time_seconds}] */
json_t *hold_maps(const struct hold *hold);     /* [{name, type, entries, max_entries}] */

struct hold_counter {
        const char *verdict; /* "held", "passed", "dropped", "released", "delayed", "expired", "reinjected" */
        const char *reason;
        uint64_t value;
};
enum { HOLD_COUNTERS_MAX = 48 };
/* Fills at most HOLD_COUNTERS_MAX counters; returns how many. */
size_t hold_counters(const struct hold *hold, struct hold_counter counters[static HOLD_COUNTERS_MAX]);
bool hold_is_attached(const struct hold *hold);
