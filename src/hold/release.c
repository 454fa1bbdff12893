/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/release.h"

#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/notices.h"
#include "hold/state.h"

enum {
        BATCH = 64,               /* flows handed on before the event loop gets its turn */
        DATAGRAM_OVERHEAD = 1280, /* about what the kernel charges a receive buffer beside the bytes */
};

/* Long enough for the packet to pass the hook on its way in; short, so that the flow's next packet after another sleep is held. */
#define PASS_RELEASED_NS NSEC_PER_SEC
/* A SYN's retransmissions come up to 32 s apart before one of 64 s; they get the same refusal as the first. A resolver's repeated
 * question is new demand. */
#define PASS_REFUSED_TCP_NS (64 * NSEC_PER_SEC)
#define PASS_REFUSED_UDP_NS NSEC_PER_SEC
/* How long a flow waits for a listener of its own after its frontend has become ready through another. */
#define LISTENER_WAIT_NS NSEC_PER_SEC

#define LOOK_AGAIN_US 1000
/* After a second without any progress (the server does not accept, its clients are gone). */
#define LOOK_AGAIN_SLOWLY_US 10000

static bool is_refusal(enum daemon_counter reason)
{
        return reason >= DAEMON_EXPIRED_TIMEOUT && reason <= DAEMON_EXPIRED_NO_LISTENER;
}

static uint64_t pass_duration(uint8_t protocol, enum daemon_counter reason)
{
        if (!is_refusal(reason))
                return PASS_RELEASED_NS;
        return protocol == IPPROTO_TCP ? PASS_REFUSED_TCP_NS : PASS_REFUSED_UDP_NS;
}

static int send_flow(struct hold *hold, const struct parked_flow *flow, uint64_t pass_ns)
{
        const struct parked_packet *packet;
        int r, error;

        error = injector_exempt(hold->injector, &flow->key, now_monotonic_ns() + pass_ns);
        if (error < 0)
                return error;

        TAILQ_FOREACH(packet, &flow->packets, link) {
                r = injector_send(hold->injector, &(struct injection){
                                                          .ifindex = packet->ifindex,
                                                          .gso_size = packet->gso_size,
                                                          .flags = packet->flags,
                                                          .data = packet->data,
                                                          .length = packet->length,
                                                  });
                if (r < 0)
                        error = r;
        }
        return error;
}

static struct held_frontend *frontend_of(const struct parked_flow *flow)
{
        return container_of(flow->queue, struct held_frontend, queue);
}

static void notify(struct hold *hold, enum notice_kind kind, const struct parked_flow *flow)
{
        struct flow readable = flow_from_wire(&flow->key);

        notices_add(hold, kind, frontend_of(flow)->holding, &readable, now_monotonic_ns());
}

static void forget_flow(struct hold *hold, struct parked_flow *flow)
{
        struct held_frontend *frontend = frontend_of(flow);

        pacing_remove(&frontend->pacing, &flow->pacing);
        hold_consumed(hold, frontend->slot, flow->n_packets);
        parked_remove(hold->parked, flow);
}

/* Counts and tells, once a flow, that it was handed on; a flow that could not be sent is dropped: its sender repeats it. */
static void account(struct hold *hold, struct parked_flow *flow, enum daemon_counter reason, int error)
{
        char text[FLOW_TEXT_MAX];
        struct flow readable = flow_from_wire(&flow->key);

        if (error < 0) {
                hold->counters[DAEMON_DROPPED_UNSENDABLE]++;
                log_debug("cannot hand %s on: %s", flow_format(&readable, text), strerror(-error));
        } else if (!flow->was_released) {
                hold->counters[reason]++;
                if (!is_refusal(reason))
                        notify(hold, NOTICE_RELEASED, flow);
        }
        flow->was_released = true;
}

static void hand_on(struct hold *hold, struct parked_flow *flow, enum daemon_counter reason)
{
        account(hold, flow, reason, send_flow(hold, flow, pass_duration(flow->key.protocol, reason)));
        forget_flow(hold, flow);
}

static void probe(struct hold *hold, const struct parked_flow *flow, enum connection_state *ret_state,
                  struct listener *ret_listener)
{
        const struct parked_packet *packet = TAILQ_FIRST(&flow->packets);
        struct flow readable = flow_from_wire(&flow->key);

        /* Unknown is as good as "nobody yet": the next look is a millisecond away. */
        if (sockets_probe_flow(hold->sockets, &readable, packet->ifindex, ret_state, ret_listener) < 0) {
                *ret_state = CONNECTION_NONE;
                *ret_listener = (struct listener){ 0 };
        }
}

/* What has become of a flow in flight. Returns whether it left the store. */
static bool observe_flow(struct hold *hold, struct parked_flow *flow)
{
        struct held_frontend *frontend = frontend_of(flow);
        enum connection_state state;
        struct listener listener;
        uint64_t now_ns = now_monotonic_ns();

        probe(hold, flow, &state, &listener);
        switch (pacing_judge(&flow->pacing, state, listener.count > 0 && listener.queued <= listener.queue_limit, now_ns)) {
        case PACING_WAIT:
                return false;
        case PACING_REPEAT:
                hold->counters[DAEMON_REINJECTED_SILENCE]++;
                account(hold, flow, DAEMON_RELEASED_READY, send_flow(hold, flow, PASS_RELEASED_NS));
                pacing_sent(&frontend->pacing, &flow->pacing, now_ns);
                return false;
        case PACING_ANSWERED:
                notify(hold, NOTICE_ANSWERED, flow);
                break;
        case PACING_HANDED_OVER:
                hold->counters[DAEMON_REINJECTED_HANDED_OVER]++;
                break;
        case PACING_GIVE_UP:
                hold->counters[DAEMON_REINJECTED_GIVEN_UP]++;
                break;
        }

        hold->progress_ns = now_ns;
        forget_flow(hold, flow);
        return true;
}

static void observe_all(struct hold *hold, struct held_frontend *frontend)
{
        struct pacing_flow *flow, *next;

        for (flow = TAILQ_FIRST(&frontend->pacing.in_flight); flow; flow = next) {
                next = TAILQ_NEXT(flow, link);
                observe_flow(hold, container_of(flow, struct parked_flow, pacing));
        }
}

enum attempt {
        ATTEMPT_DONE,
        ATTEMPT_SKIP, /* nobody listens for this one yet */
        ATTEMPT_FULL, /* the window is closed */
};

/* On this host the handshake is over by the time the SYN has been sent, so the flow is looked at once right away. */
static enum attempt release_tcp(struct hold *hold, struct parked_flow *flow, enum connection_state state,
                                const struct listener *listener, uint64_t now_ns)
{
        struct held_frontend *frontend = frontend_of(flow);
        int r = 0;

        /* With a connection there is nothing to send: a copy that passed by itself was first. */
        if (state == CONNECTION_NONE) {
                if (!pacing_may_send(&frontend->pacing, listener->queued, listener->queue_limit))
                        return ATTEMPT_FULL;
                r = send_flow(hold, flow, PASS_RELEASED_NS);
        }

        account(hold, flow, DAEMON_RELEASED_READY, r);
        parked_take(flow);
        pacing_sent(&frontend->pacing, &flow->pacing, now_ns);
        hold->progress_ns = now_ns;
        observe_flow(hold, flow);
        return ATTEMPT_DONE;
}

static uint64_t receive_cost(const struct parked_flow *flow)
{
        const struct parked_packet *packet;
        uint64_t cost = 0;

        TAILQ_FOREACH(packet, &flow->packets, link)
                cost += packet->length +
                        (uint64_t)DATAGRAM_OVERHEAD * (packet->gso_size ? packet->length / packet->gso_size + 1 : 1);
        return cost;
}

static enum attempt release_udp(struct hold *hold, struct parked_flow *flow, const struct listener *listener, uint64_t now_ns)
{
        if (listener->count > 0 && !pacing_may_send_bytes(listener->queued, listener->queue_limit, receive_cost(flow)))
                return ATTEMPT_FULL;

        hold->progress_ns = now_ns;
        hand_on(hold, flow, DAEMON_RELEASED_READY);
        return ATTEMPT_DONE;
}

static enum attempt release_flow(struct hold *hold, struct parked_flow *flow)
{
        const struct held_frontend *frontend = frontend_of(flow);
        uint64_t now_ns = now_monotonic_ns();
        enum connection_state state;
        struct listener listener;

        probe(hold, flow, &state, &listener);
        if (state == CONNECTION_NONE && listener.count == 0) {
                if (now_ns < MAX(frontend->released_ns, flow->first_ns) + LISTENER_WAIT_NS)
                        return ATTEMPT_SKIP;
                hand_on(hold, flow, DAEMON_EXPIRED_NO_LISTENER);
                return ATTEMPT_DONE;
        }
        if (flow->key.protocol == IPPROTO_TCP)
                return release_tcp(hold, flow, state, &listener, now_ns);
        return release_udp(hold, flow, &listener, now_ns);
}

/* Returns whether it stopped for the batch's sake only. */
static bool release_frontend(struct hold *hold, struct held_frontend *frontend)
{
        struct parked_flow *flow = TAILQ_FIRST(&frontend->queue.waiting), *next;

        for (unsigned i = 0; flow; i++, flow = next) {
                if (i == BATCH)
                        return true;
                next = TAILQ_NEXT(flow, in_queue);
                if (release_flow(hold, flow) == ATTEMPT_FULL)
                        break;
        }
        return false;
}

static bool is_drained(const struct holding *holding)
{
        if (holding->parked.n_packets > 0)
                return false;
        for (size_t i = 0; i < holding->n_frontends; i++)
                if (holding->frontends[i].state != FRONTEND_RELEASING)
                        return false;
        return true;
}

static struct holding *find_drained(const struct hold *hold)
{
        struct held_frontend *frontend;

        TAILQ_FOREACH(frontend, &hold->releasing, link)
                if (is_drained(frontend->holding))
                        return frontend->holding;
        return NULL;
}

/* What has arrived meanwhile still joins the queue, so that it is paced too. */
static void stop_drained(struct hold *hold)
{
        struct holding *holding;

        if (!find_drained(hold))
                return;

        hold_consume_ring(hold);
        while ((holding = find_drained(hold))) {
                holding_halt(holding);
                holding->drained_pending = true;
                notices_mark(holding);
        }
}

static void look_again(struct hold *hold, uint64_t now_ns)
{
        bool slowly = now_ns > hold->progress_ns + NSEC_PER_SEC;
        struct held_frontend *frontend;

        TAILQ_FOREACH(frontend, &hold->releasing, link) {
                if (frontend->queue.n_waiting == 0 && frontend->pacing.n_in_flight == 0)
                        continue;
                (void)sd_event_source_set_time_relative(hold->release_source, slowly ? LOOK_AGAIN_SLOWLY_US : LOOK_AGAIN_US);
                (void)sd_event_source_set_enabled(hold->release_source, SD_EVENT_ONESHOT);
                return;
        }
        (void)sd_event_source_set_enabled(hold->release_source, SD_EVENT_OFF);
}

void release_run(struct hold *hold)
{
        struct held_frontend *frontend;
        bool more = false;

        TAILQ_FOREACH(frontend, &hold->releasing, link) {
                observe_all(hold, frontend);
                more |= release_frontend(hold, frontend);
        }
        stop_drained(hold);

        if (more)
                hold_run_soon(hold);
        look_again(hold, now_monotonic_ns());
}

void release_abandon(struct held_frontend *frontend)
{
        struct pacing_flow *flow;

        while ((flow = TAILQ_FIRST(&frontend->pacing.in_flight))) {
                pacing_remove(&frontend->pacing, flow);
                parked_put_back(container_of(flow, struct parked_flow, pacing));
        }
}

void release_all(struct holding *holding, enum daemon_counter reason)
{
        struct parked_flow *flow;

        while ((flow = TAILQ_FIRST(&holding->parked.by_age)))
                hand_on(holding->hold, flow, reason);
}

uint64_t release_expired(struct hold *hold, uint64_t now_ns)
{
        struct parked_flow *flow;

        for (unsigned i = 0; i < BATCH && (flow = parked_expired(hold->parked, now_ns)); i++)
                hand_on(hold, flow, DAEMON_EXPIRED_TIMEOUT);
        return parked_deadline(hold->parked);
}

void release_packet(struct hold *hold, const struct lull_packet *packet, enum daemon_counter reason)
{
        int r;

        r = injector_exempt(hold->injector, &packet->flow, now_monotonic_ns() + pass_duration(packet->flow.protocol, reason));
        if (r >= 0)
                r = injector_send(hold->injector, &(struct injection){
                                                          .ifindex = packet->ifindex,
                                                          .gso_size = packet->gso_size,
                                                          .flags = packet->flags,
                                                          .data = packet->data,
                                                          .length = packet->length,
                                                  });
        hold->counters[r < 0 ? DAEMON_DROPPED_UNSENDABLE : reason]++;
}

void release_none(struct holding *holding, enum daemon_counter reason)
{
        struct parked_flow *flow;

        while ((flow = TAILQ_FIRST(&holding->parked.by_age))) {
                holding->hold->counters[reason] += flow->n_packets;
                forget_flow(holding->hold, flow);
        }
}
