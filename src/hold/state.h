/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of hold share among themselves; users see hold.h only.
 *
 * A frontend is IDLE (not held), HOLDING (its packets are parked) or RELEASING (they go on as the pacing allows; new ones join the
 * end of the queue). A holding that is not started has only IDLE frontends. Parked flows exist only for started holdings.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "bpf/hold_hooks.h"
#include "hold/counters.h"
#include "hold/frontends.h"
#include "hold/hold.h"
#include "hold/inject.h"
#include "hold/local.h"
#include "hold/pacing.h"
#include "hold/parked.h"
#include "hold/prefixes.h"
#include "hold/sockets.h"
#include "hold/translated.h"

enum frontend_state {
        FRONTEND_IDLE,
        FRONTEND_HOLDING,
        FRONTEND_RELEASING,
};

struct held_frontend {
        struct holding *holding;
        struct frontend frontend;
        uint32_t slot;
        uint32_t flags;         /* enum lull_frontend_flags */
        struct prefix *allowed; /* who may wake it, where flags say that not everybody may */
        size_t n_allowed;
        bool without_ipv4; /* a [::] beside an explicit 0.0.0.0 */
        bool adopted;      /* held by an earlier daemon, and not yet started by this one */
        enum frontend_state state;
        uint64_t released_ns;  /* since when it is RELEASING */
        uint64_t seen_packets; /* of the demand map, when demand was armed */
        struct parked_queue queue;
        struct pacing pacing;
        struct translated *translated;   /* NULL: it is a socket of this host */
        TAILQ_ENTRY(held_frontend) link; /* hold->releasing */
};

struct holding {
        struct hold *hold; /* NULL once the hold is gone */
        void *userdata;
        char *name;
        struct held_frontend *frontends;
        size_t n_frontends;
        struct holding_ignore *ignore;
        size_t n_ignore;
        bool started;
        uint64_t expected_ns; /* since when its data plane is to be known; 0: not yet */
        bool letting_go;      /* all are proven: new flows pass already, what is parked is the last */
        bool armed;           /* the next packet is demand */
        bool demand_pending;  /* callbacks to be made */
        bool drained_pending;
        bool pending; /* in hold->pending */
        struct hold_demand demand;
        struct parked_policy parked;
        TAILQ_ENTRY(holding) link;
        TAILQ_ENTRY(holding) pending_link;
};

struct notice;
struct ring_buffer;

struct hold {
        sd_event *event;
        struct hold_callbacks callbacks;
        void *userdata;
        struct hold_hooks *hooks;
        struct frontends *frontends;
        struct parked *parked;
        struct injector *injector;
        struct local *local;
        struct translation *translation; /* NULL: nothing is translated */
        struct sockets *sockets;
        struct ring_buffer *ring;
        sd_event_source *ring_source, *beat_source, *expiry_source, *release_source, *urgent_source;
        TAILQ_HEAD(, holding) holdings;
        TAILQ_HEAD(, held_frontend) releasing;
        TAILQ_HEAD(, holding) pending;
        TAILQ_HEAD(, notice) notices;
        size_t n_started;
        bool settled;
        unsigned beats;
        uint64_t demand_counted; /* packets that were demand, when the map was last read */
        unsigned consumed_now;   /* records of the ring buffer, in this turn */
        uint64_t began_ns;
        uint64_t left_heartbeat_ns; /* the last one of an earlier daemon; 0: there was none */
        uint64_t expiry_armed_ns;   /* 0: the timer is off */
        uint64_t progress_ns;       /* when the release last got anywhere */
        uint64_t counters[DAEMON_COUNTER_MAX];
};

/* hold.c */
void hold_consume_ring(struct hold *hold);
void hold_arm_expiry(struct hold *hold); /* what is parked, or how long it may be, changed in another way than by a packet */
void hold_run_soon(struct hold *hold);   /* release and callbacks, before anything else that the event loop has to do */
int hold_begin(struct hold *hold);       /* a holding starts */
void hold_end(struct hold *hold);        /* a holding stops */
void hold_consumed(struct hold *hold, uint32_t slot, uint64_t packets);

/* holding.c */
void holding_halt(struct holding *holding);   /* withdraws its frontends; nothing may be parked */
void holding_let_go(struct holding *holding); /* new flows pass; what is parked stays */
struct held_frontend *holding_find_frontend(struct holding *holding, const struct flow *flow); /* that takes its packets, or NULL */
bool holding_wants_key(const void *owner, const struct lull_frontend_key *key);
bool holding_wants_rule(const void *owner, enum frontends_list list, const struct prefix *prefix);
