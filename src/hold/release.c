/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/release.h"

#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/direct.h"
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

#define LOOK_AGAIN_NS NSEC_PER_MSEC
/* After a second without any progress (the server does not accept, its clients are gone). */
#define LOOK_AGAIN_SLOWLY_NS (10 * NSEC_PER_MSEC)

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

int release_send(struct hold *hold, const struct parked_flow *flow, enum daemon_counter reason)
{
        const struct parked_packet *packet;
        int r, error;

        error = injector_exempt(hold->injector, &flow->key, now_monotonic_ns() + pass_duration(flow->key.protocol, reason));
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

void release_notify(struct hold *hold, enum notice_kind kind, const struct parked_flow *flow)
{
        struct flow readable = flow_from_wire(&flow->key);

        notices_add(hold, kind, frontend_of(flow)->holding, &readable, now_monotonic_ns());
}

void release_forget(struct hold *hold, struct parked_flow *flow)
{
        struct held_frontend *frontend = frontend_of(flow);

        if (frontend->translated)
                direct_leave(hold, flow);
        else
                pacing_remove(&frontend->pacing, &flow->pacing);
        hold_consumed(hold, frontend->slot, flow->n_packets);
        parked_remove(hold->parked, flow);
}

void release_account(struct hold *hold, struct parked_flow *flow, enum daemon_counter reason, int error)
{
        char text[FLOW_TEXT_MAX];
        struct flow readable = flow_from_wire(&flow->key);

        if (error < 0) {
                hold->counters[DAEMON_DROPPED_UNSENDABLE]++;
                log_debug("cannot hand %s on: %s", flow_format(&readable, text), strerror(-error));
        } else if (!flow->was_released) {
                hold->counters[reason]++;
                if (!is_refusal(reason))
                        release_notify(hold, NOTICE_RELEASED, flow);
        }
        flow->was_released = true;
}

static void hand_on(struct hold *hold, struct parked_flow *flow, enum daemon_counter reason)
{
        if (flow->endpoint && is_refusal(reason))
                direct_delete_entry(hold, flow);
        release_account(hold, flow, reason, release_send(hold, flow, reason));
        release_forget(hold, flow);
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
                release_account(hold, flow, DAEMON_RELEASED_READY, release_send(hold, flow, DAEMON_RELEASED_READY));
                pacing_sent(&frontend->pacing, &flow->pacing, now_ns);
                return false;
        case PACING_ANSWERED:
                release_notify(hold, NOTICE_ANSWERED, flow);
                break;
        case PACING_HANDED_OVER:
                hold->counters[DAEMON_REINJECTED_HANDED_OVER]++;
                break;
        case PACING_GIVE_UP:
                hold->counters[DAEMON_REINJECTED_GIVEN_UP]++;
                break;
        }

        hold->progress_ns = now_ns;
        release_forget(hold, flow);
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
                r = release_send(hold, flow, DAEMON_RELEASED_READY);
        }

        release_account(hold, flow, DAEMON_RELEASED_READY, r);
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

static bool is_ready(const struct held_frontend *frontend, uint64_t now_ns)
{
        if (frontend->translated)
                return frontend->holding->expected_ns > 0 && translated_is_settled(frontend, now_ns);
        return frontend->state == FRONTEND_RELEASING;
}

static bool is_drained(struct holding *holding)
{
        uint64_t now_ns = now_monotonic_ns();

        if (holding->parked.n_packets > 0 && !holding->hold->translation)
                return false;
        for (size_t i = 0; i < holding->n_frontends; i++)
                if (!is_ready(&holding->frontends[i], now_ns))
                        return false;
        if (holding->hold->translation)
                holding_let_go(holding); /* under a steady load something would always be parked */
        return holding->parked.n_packets == 0;
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

/* A server's accept() is seen by looking only; what a translated frontend waits for is told, or has its time. */
static uint64_t next_look_ns(const struct hold *hold, const struct held_frontend *frontend, uint64_t now_ns)
{
        bool slowly = now_ns > hold->progress_ns + NSEC_PER_SEC;

        if (frontend->translated)
                return translated_next_ns(frontend);
        if (frontend->queue.n_waiting == 0 && frontend->pacing.n_in_flight == 0)
                return UINT64_MAX;
        return now_ns + (slowly ? LOOK_AGAIN_SLOWLY_NS : LOOK_AGAIN_NS);
}

static void look_again(struct hold *hold, uint64_t now_ns)
{
        const struct held_frontend *frontend;
        uint64_t next_ns = UINT64_MAX;

        TAILQ_FOREACH(frontend, &hold->releasing, link)
                next_ns = MIN(next_ns, next_look_ns(hold, frontend, now_ns));
        if (next_ns != UINT64_MAX)
                (void)sd_event_source_set_time(hold->release_source, (next_ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC);
        (void)sd_event_source_set_enabled(hold->release_source, next_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

void release_run(struct hold *hold)
{
        struct held_frontend *frontend;
        bool more = false;

        TAILQ_FOREACH(frontend, &hold->releasing, link) {
                if (frontend->translated) {
                        more |= translated_run(frontend);
                        continue;
                }
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

        if (frontend->translated)
                translated_reset(frontend);
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
                release_forget(holding->hold, flow);
        }
}
