/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/direct.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/egress.h"
#include "hold/notices.h"
#include "hold/prefixes.h"
#include "hold/release.h"
#include "hold/state.h"

enum { ENTRY_SECONDS = 30 };

/* An endpoint that answers nothing for so long is taken for dead. */
#define SILENCE_MAX_NS (200 * NSEC_PER_MSEC)
/* As long as the hook keeps a refusal from a flow's sender, should nobody say that the flow was answered: as long as there is an entry
 * by which its sender could hear of one, however late this process gets to look. */
#define ANSWERS_NS (ENTRY_SECONDS * NSEC_PER_SEC)
/* A neighbour that is gone is asked for three times, a second each, before a router says so (net.ipv4.neigh: mcast_solicit and
 * retrans_time_ms); that then goes the way of the entry that the packet once had, even if that is deleted. */
#define LATE_ANSWERS_NS (5 * NSEC_PER_SEC)

static struct held_frontend *frontend_of(const struct parked_flow *flow)
{
        return container_of(flow->queue, struct held_frontend, queue);
}

static bool is_plane(const struct parked_flow *flow)
{
        return flow->endpoint == &frontend_of(flow)->translated->plane;
}

static bool is_outsider(const struct translation *translation, const struct address *source)
{
        return translation->n_cluster > 0 && !prefixes_contain(translation->cluster, translation->n_cluster, source);
}

/* As kube-proxy does; and an endpoint that is its own client would otherwise answer itself directly. */
static bool is_masqueraded(const struct held_frontend *frontend, const struct flow *flow, const struct endpoint *endpoint)
{
        const struct translation *translation = frontend->holding->hold->translation;
        bool is_own = address_equal(&flow->source, &endpoint->at.address);

        switch (frontend->translated->masquerade) {
        case MASQUERADE_OUTSIDERS:
                return is_own || translation->masquerade_all || is_outsider(translation, &flow->source);
        case MASQUERADE_ALL:
                return true;
        case MASQUERADE_NONE:
                return is_own;
        }
        return true;
}

/* Whether an entry that is there already serves a flow that begins now. */
static bool is_usable(const struct held_frontend *frontend, const struct conntrack_entry *entry)
{
        return endpoints_find(&frontend->translated->endpoints, &entry->reply.source, entry->reply.source_port) &&
               entry->tcp_state <= TCP_CONNTRACK_ESTABLISHED;
}

/* A reused source port finds the entry of another time. */
static int make_entry(struct held_frontend *frontend, const struct flow *flow, const struct conntrack_translation *translation,
                      struct conntrack_entry *ret_entry)
{
        struct conntrack *conntrack = frontend->holding->hold->translation->conntrack;
        int r;

        r = conntrack_create(conntrack, flow, translation);
        if (r == -EEXIST) {
                r = conntrack_find(conntrack, flow, ret_entry);
                if (r >= 0 && is_usable(frontend, ret_entry))
                        return 0;
                (void)conntrack_delete(conntrack, flow);
                r = conntrack_create(conntrack, flow, translation);
        }
        if (r < 0)
                return r;
        return conntrack_find(conntrack, flow, ret_entry);
}

/* The same answer, where this host refuses the flow before it has masqueraded it. */
static struct lull_flow unmasqueraded(const struct parked_flow *flow)
{
        struct lull_flow answer = flow->answer;

        memcpy(answer.destination, flow->key.source, sizeof(answer.destination));
        answer.destination_port = flow->key.source_port;
        return answer;
}

static void set_answers(struct hold *hold, const struct parked_flow *flow, const struct lull_answer *value)
{
        int map = hold_hooks_map(hold->hooks, HOLD_MAP_ANSWERS);
        struct lull_flow other = unmasqueraded(flow);

        (void)bpf_map_update_elem(map, &flow->answer, value, BPF_ANY);
        if (memcmp(&other, &flow->answer, sizeof(other)) != 0)
                (void)bpf_map_update_elem(map, &other, value, BPF_ANY);
}

static void watch_answers(struct hold *hold, struct parked_flow *flow, const struct flow *answer, uint64_t now_ns)
{
        struct lull_answer value = { .flow = flow->key, .slot = frontend_of(flow)->slot, .expiry_ns = now_ns + ANSWERS_NS };

        flow->answer = flow_to_wire(answer);
        set_answers(hold, flow, &value);
}

/* A data plane that knows an endpoint may lead to a parking port of this host all the same, where nobody listens and no hook sees what
 * has been translated: only its refusal tells. */
static void watch_parking(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        struct flow answer = flow_from_wire(&flow->key);
        const struct held_frontend *parking = translated_parking(frontend_of(flow), address_is_ipv4(&answer.destination));

        if (!parking)
                return;

        answer.destination = answer.source;
        answer.destination_port = answer.source_port;
        answer.source = parking->frontend.address;
        answer.source_port = parking->frontend.port;
        watch_answers(hold, flow, &answer, now_ns);
}

static void expect_late_answers(struct hold *hold, const struct parked_flow *flow)
{
        struct lull_answer value = {
                .flow = flow->key, .slot = frontend_of(flow)->slot, .late = 1, .expiry_ns = now_monotonic_ns() + LATE_ANSWERS_NS
        };

        set_answers(hold, flow, &value);
}

static void leave_endpoint(struct parked_flow *flow)
{
        pacing_remove(&flow->endpoint->pacing, &flow->pacing);
        flow->endpoint = NULL;
}

void direct_leave(struct hold *hold, struct parked_flow *flow)
{
        int map = hold_hooks_map(hold->hooks, HOLD_MAP_ANSWERS);
        struct lull_flow other = unmasqueraded(flow);

        if (flow->answer.protocol) {
                (void)bpf_map_delete_elem(map, &flow->answer);
                (void)bpf_map_delete_elem(map, &other);
        }
        if (flow->endpoint)
                leave_endpoint(flow);
}

void direct_delete_entry(struct hold *hold, const struct parked_flow *flow)
{
        struct flow readable = flow_from_wire(&flow->key);
        struct conntrack_entry entry;

        given_forget(hold->translation->given, &readable);
        if (conntrack_find(hold->translation->conntrack, &readable, &entry) == 0 && !conntrack_is_answered(&entry))
                (void)conntrack_delete(hold->translation->conntrack, &readable);
}

/* Its endpoint did not take it. Without an entry, what its sender repeats would meet a data plane that refuses. */
static void take_back(struct hold *hold, struct parked_flow *flow)
{
        injector_hold_again(hold->injector, &flow->key);
        direct_delete_entry(hold, flow);
        if (flow->answer.protocol)
                expect_late_answers(hold, flow);
        leave_endpoint(flow);
        parked_put_back(flow);
        hold_run_soon(hold);
}

static void send_flow(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        struct endpoint *endpoint = flow->endpoint;
        enum daemon_counter reason = is_plane(flow) ? DAEMON_RELEASED_DATA_PLANE : DAEMON_RELEASED_DIRECT;

        release_account(hold, flow, reason, release_send(hold, flow, reason));
        pacing_sent(&endpoint->pacing, &flow->pacing, now_ns);
        flow->pacing.due_ns = MIN(flow->pacing.due_ns, flow->pacing.sent_ns + SILENCE_MAX_NS);
        if (flow->key.protocol != IPPROTO_TCP)
                flow->pacing.due_ns = flow->pacing.sent_ns + SILENCE_MAX_NS;
        hold->progress_ns = now_ns;
}

static void send_first(struct hold *hold, struct parked_flow *flow, struct endpoint *endpoint, uint64_t now_ns)
{
        parked_take(flow);
        flow->endpoint = endpoint;
        endpoint_given(endpoint, now_ns);
        send_flow(hold, flow, now_ns);
}

int direct_give(struct hold *hold, struct parked_flow *flow, struct endpoint *endpoint, uint64_t now_ns)
{
        struct held_frontend *frontend = frontend_of(flow);
        struct flow readable = flow_from_wire(&flow->key);
        struct conntrack_translation translation = { .endpoint = endpoint->at.address,
                                                     .port = endpoint->at.port,
                                                     .timeout_seconds = ENTRY_SECONDS };
        struct conntrack_entry entry;
        struct address masquerade;
        int r;

        if (is_masqueraded(frontend, &readable, endpoint)) {
                r = egress_address(&endpoint->at.address, &masquerade);
                if (r < 0)
                        return r;
                translation.masquerade = &masquerade;
        }
        r = make_entry(frontend, &readable, &translation, &entry);
        if (r < 0)
                return r;
        if (readable.protocol == IPPROTO_UDP)
                (void)given_add(hold->translation->given, frontend, &readable, &translation);

        endpoint = endpoints_find(&frontend->translated->endpoints, &entry.reply.source, entry.reply.source_port) ?: endpoint;
        watch_answers(hold, flow, &entry.reply, now_ns);
        send_first(hold, flow, endpoint, now_ns);
        return 0;
}

void direct_pass(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        direct_delete_entry(hold, flow); /* of a release that came to nothing */
        watch_parking(hold, flow, now_ns);
        send_first(hold, flow, &frontend_of(flow)->translated->plane, now_ns);
}

static void on_answer(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        endpoint_answered(flow->endpoint, now_ns);
        hold->progress_ns = now_ns;
        release_notify(hold, NOTICE_ANSWERED, flow);
        release_forget(hold, flow);
        hold_run_soon(hold);
}

static void on_refusal(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        hold->counters[DAEMON_REINJECTED_OTHER_ENDPOINT]++;
        if (is_plane(flow)) /* which may lead the next one elsewhere */
                endpoint_rest(flow->endpoint, now_ns);
        else
                endpoint_failed(flow->endpoint, now_ns);
        take_back(hold, flow);
}

static void on_silence(struct hold *hold, struct parked_flow *flow, uint64_t now_ns)
{
        if (flow->key.protocol != IPPROTO_TCP) { /* not every datagram has an answer */
                release_forget(hold, flow);
                hold_run_soon(hold);
        } else if (now_ns < flow->pacing.sent_ns + SILENCE_MAX_NS) {
                hold->counters[DAEMON_REINJECTED_SILENCE]++;
                endpoint_silent(flow->endpoint);
                send_flow(hold, flow, now_ns);
        } else if (is_plane(flow) && !frontend_of(flow)->translated->proven) { /* what the cluster has for it is no answer */
                hold->counters[DAEMON_REINJECTED_GIVEN_UP]++;
                release_forget(hold, flow);
                hold_run_soon(hold);
        } else {
                hold->counters[DAEMON_REINJECTED_OTHER_ENDPOINT]++;
                if (flow->endpoint->answered_ns < flow->pacing.sent_ns)
                        endpoint_failed(flow->endpoint, now_ns);
                take_back(hold, flow);
        }
}

void direct_observe(struct hold *hold, struct parked_flow *flow, const struct conntrack_entry *entry, uint64_t now_ns)
{
        struct flow readable = flow_from_wire(&flow->key);
        struct conntrack_entry found;
        int r = 0;

        if (!entry) {
                r = conntrack_find(hold->translation->conntrack, &readable, &found);
                entry = &found;
        }

        if (r >= 0 && conntrack_is_answered(entry))
                on_answer(hold, flow, now_ns);
        else if (r == -ENOENT && readable.protocol == IPPROTO_TCP && !is_plane(flow))
                on_refusal(hold, flow, now_ns); /* by somebody who removed the entry */
        else if (now_ns >= flow->pacing.due_ns)
                on_silence(hold, flow, now_ns);
}

void direct_refused(struct hold *hold, const struct lull_packet *packet)
{
        struct parked_flow *flow = parked_find(hold->parked, &packet->flow);

        if (flow && flow->endpoint && packet->time_ns >= flow->pacing.sent_ns)
                on_refusal(hold, flow, now_monotonic_ns());
}

void direct_abandon(struct hold *hold, struct endpoint *endpoint)
{
        struct pacing_flow *next;

        while ((next = TAILQ_FIRST(&endpoint->pacing.in_flight))) {
                struct parked_flow *flow = container_of(next, struct parked_flow, pacing);
                struct flow readable = flow_from_wire(&flow->key);
                struct conntrack_entry entry;

                if (conntrack_find(hold->translation->conntrack, &readable, &entry) == 0 && conntrack_is_answered(&entry))
                        on_answer(hold, flow, now_monotonic_ns());
                else
                        take_back(hold, flow);
        }
}
