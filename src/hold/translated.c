/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/translated.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "hold/direct.h"
#include "hold/nat.h"
#include "hold/state.h"

enum { BATCH = 64 }; /* flows handed on before the event loop gets its turn */

/* How long what nat_probe() has found is believed. */
#define NAT_WORKS_NS NSEC_PER_SEC
#define NAT_LACKS_NS (100 * NSEC_PER_MSEC)
/* What no probe can tell (UDP, or no way from here to the frontend) is taken to be there after this time ... */
#define UNTOLD_NS (2 * NSEC_PER_SEC)
/* ... and what no probe has told, after this. */
#define UNPROVEN_MAX_NS (60 * NSEC_PER_SEC)
/* With all endpoints resting for longer than this, a flow goes by the data plane where that is proven. */
#define REST_NS (5 * NSEC_PER_MSEC)
/* After a failure of this host's own, which passes. */
#define ENTRY_AGAIN_NS (25 * NSEC_PER_MSEC)

static void prove(struct held_frontend *frontend)
{
        frontend->translated->proven = true;
        data_plane_end(frontend);
        hold_run_soon(frontend->holding->hold);
}

static void on_probe_event(struct hold *hold, const struct conntrack_entry *entry)
{
        struct held_frontend *frontend;

        TAILQ_FOREACH(frontend, &hold->releasing, link)
                if (data_plane_proves(frontend, entry)) {
                        prove(frontend);
                        return;
                }
}

static void look_at_all(struct hold *hold)
{
        struct held_frontend *frontend;
        struct endpoint *endpoint;
        struct pacing_flow *flow;

        TAILQ_FOREACH(frontend, &hold->releasing, link) {
                TAILQ_FOREACH(endpoint, &frontend->translated->endpoints, link)
                        TAILQ_FOREACH(flow, &endpoint->pacing.in_flight, link)
                                flow->look = true;
                TAILQ_FOREACH(flow, &frontend->translated->plane.pacing.in_flight, link)
                        flow->look = true;
        }
        hold_run_soon(hold);
}

static void restore(struct hold *hold, const struct flow *flow)
{
        char text[FLOW_TEXT_MAX];
        int r = given_restore(hold->translation->given, hold->translation->conntrack, flow);

        if (r != 0)
                log_debug("%s: its entry was removed by somebody; made again: %s", flow_format(flow, text),
                          r < 0 ? strerror(-r) : "yes");
}

static void on_conntrack(enum conntrack_event event, const struct conntrack_entry *entry, void *userdata)
{
        struct hold *hold = userdata;
        struct parked_flow *flow;
        struct lull_flow key;

        if (event == CONNTRACK_LOST) {
                look_at_all(hold);
                return;
        }

        key = flow_to_wire(&entry->original);
        flow = parked_find(hold->parked, &key);
        if (event == CONNTRACK_DESTROYED)
                restore(hold, &entry->original);
        else
                on_probe_event(hold, entry);
        if (flow && flow->endpoint)
                direct_observe(hold, flow, event == CONNTRACK_DESTROYED ? NULL : entry, now_monotonic_ns());
}

int translation_new(struct hold *hold, const struct hold_translation *config, struct translation **ret_translation)
{
        _cleanup_(translation_freep) struct translation *translation = calloc(1, sizeof(*translation));
        int r;

        if (!translation)
                return -ENOMEM;

        translation->hold = hold;
        translation->wait = config->wait;
        translation->masquerade_all = config->masquerade_all;
        translation->cluster = calloc(MAX(config->n_cluster, (size_t)1), sizeof(*translation->cluster));
        if (!translation->cluster)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_cluster; i++)
                translation->cluster[i] = config->cluster[i];
        translation->n_cluster = config->n_cluster;

        r = given_new(&translation->given);
        if (r >= 0)
                r = conntrack_new(hold->event, on_conntrack, hold, &translation->conntrack);
        if (r < 0)
                return r;

        *ret_translation = TAKE_PTR(translation);
        return 0;
}

struct translation *translation_free(struct translation *translation)
{
        if (!translation)
                return NULL;

        conntrack_free(translation->conntrack);
        given_free(translation->given);
        free(translation->cluster);
        free(translation);
        return NULL;
}

void translation_follow(struct hold *hold)
{
        int r;

        if (!hold->translation)
                return;

        r = conntrack_follow(hold->translation->conntrack, !TAILQ_EMPTY(&hold->releasing));
        if (r < 0)
                log_debug("cannot follow connection tracking, answers are seen later: %s", strerror(-r));
}

static bool nat_works(struct translation *translation, bool ipv4)
{
        struct translation_nat *nat = &translation->nat[ipv4];
        uint64_t now_ns = now_monotonic_ns();

        if (nat->looked_ns > 0 && now_ns < nat->looked_ns + (nat->works ? NAT_WORKS_NS : NAT_LACKS_NS))
                return nat->works;

        nat->works = nat_probe(translation->conntrack, ipv4) > 0;
        nat->looked_ns = now_ns;
        return nat->works;
}

int translated_new(const struct holding_service *service, struct translated **ret_translated)
{
        _cleanup_(translated_freep) struct translated *translated = calloc(1, sizeof(*translated));

        if (!translated)
                return -ENOMEM;

        TAILQ_INIT(&translated->endpoints);
        endpoint_init(&translated->plane, &(struct holding_endpoint){ 0 });
        data_plane_init(&translated->probe);
        translated->source_ranges = calloc(MAX(service->n_source_ranges, (size_t)1), sizeof(*translated->source_ranges));
        if (!translated->source_ranges)
                return -ENOMEM;
        for (size_t i = 0; i < service->n_source_ranges; i++)
                translated->source_ranges[i] = service->source_ranges[i];
        translated->n_source_ranges = service->n_source_ranges;

        translated->local = service->local;
        translated->affinity = service->affinity;
        translated->parking = service->parking;
        translated->backend = service->backend;
        translated->masquerade = service->masquerade;
        *ret_translated = TAKE_PTR(translated);
        return 0;
}

struct translated *translated_free(struct translated *translated)
{
        if (!translated)
                return NULL;

        close_fd(translated->probe.port_fd);
        endpoints_free(&translated->endpoints);
        free(translated->source_ranges);
        free(translated);
        return NULL;
}

void translated_reset(struct held_frontend *frontend)
{
        struct translated *translated = frontend->translated;
        struct hold *hold = frontend->holding->hold;
        struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, &translated->endpoints, link)
                direct_abandon(hold, endpoint);
        direct_abandon(hold, &translated->plane);
        given_forget_frontend(hold->translation->given, frontend);
        endpoints_free(&translated->endpoints);
        endpoint_init(&translated->plane, &(struct holding_endpoint){ 0 });
        data_plane_end(frontend);
        translated->proven = false;
        translated->way = WAY_DIRECT;
}

static void let_go(struct held_frontend *frontend, struct endpoints *gone)
{
        struct hold *hold = frontend->holding->hold;
        struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, gone, link) {
                direct_abandon(hold, endpoint);
                given_forget_endpoint(hold->translation->given, hold->translation->conntrack, frontend, &endpoint->at.address,
                                      endpoint->at.port);
        }
        endpoints_free(gone);
}

static bool is_ipv4(const struct held_frontend *frontend)
{
        return address_is_ipv4(&frontend->frontend.address);
}

static void choose_way(struct held_frontend *frontend)
{
        struct translation *translation = frontend->holding->hold->translation;
        struct translated *translated = frontend->translated;

        if (translation->wait && !translated->parking)
                translated->way = WAY_CONFIGURED;
        else if (translated->affinity && !translated->parking)
                translated->way = WAY_AFFINITY;
        else if (translated->way != WAY_REFUSED)
                translated->way = nat_works(translation, is_ipv4(frontend)) ? WAY_DIRECT : WAY_NO_NAT;
}

int translated_set_endpoints(struct held_frontend *frontend, const struct holding_endpoint *endpoints, size_t n_endpoints)
{
        struct endpoints gone = TAILQ_HEAD_INITIALIZER(gone);
        int r;

        r = endpoints_replace(&frontend->translated->endpoints, endpoints, n_endpoints, &gone);
        if (r < 0)
                return r;

        let_go(frontend, &gone);
        choose_way(frontend);
        return 0;
}

/* Any family: a wildcard may stand for both. */
static bool has_usable(const struct held_frontend *frontend)
{
        const struct translated *translated = frontend->translated;

        return endpoints_usable(&translated->endpoints, true, translated->local) ||
               endpoints_usable(&translated->endpoints, false, translated->local);
}

static bool can_be_probed(const struct held_frontend *frontend)
{
        return frontend->frontend.protocol == IPPROTO_TCP && !frontend->translated->parking &&
               !frontend->translated->probe.unable && has_usable(frontend);
}

/* What is true of the others, which one transaction programs with it; *ret_any: whether there are any to go by. */
static bool others_are_proven(const struct held_frontend *frontend, bool *ret_any)
{
        const struct holding *holding = frontend->holding;
        bool proven = true;

        *ret_any = false;
        for (size_t i = 0; i < holding->n_frontends; i++) {
                const struct held_frontend *other = &holding->frontends[i];

                if (!can_be_probed(other))
                        continue;
                *ret_any = true;
                proven = proven && other->translated->proven;
        }
        return *ret_any && proven;
}

/* A parking port is needed for as long as it is there: others' data planes may lead to it when this one's does not any more. */
bool translated_is_settled(const struct held_frontend *frontend, uint64_t now_ns)
{
        uint64_t expected_ns = frontend->holding->expected_ns;
        bool any;

        if (frontend->translated->proven)
                return true;
        if (!frontend->translated->parking && !can_be_probed(frontend)) {
                if (others_are_proven(frontend, &any))
                        return true;
                if (!any && expected_ns > 0)
                        return now_ns >= expected_ns + UNTOLD_NS;
        }
        return expected_ns > 0 && now_ns >= expected_ns + UNPROVEN_MAX_NS;
}

const struct held_frontend *translated_parking(const struct held_frontend *frontend, bool ipv4)
{
        const struct holding *holding = frontend->holding;

        for (size_t i = 0; i < holding->n_frontends; i++) {
                const struct held_frontend *other = &holding->frontends[i];

                if (other->translated->parking && other->translated->backend == frontend->translated->backend &&
                    other->frontend.protocol == frontend->frontend.protocol && address_is_ipv4(&other->frontend.address) == ipv4)
                        return other;
        }
        return NULL;
}

enum attempt {
        ATTEMPT_DONE,
        ATTEMPT_NOT_THIS, /* the next one may go all the same */
        ATTEMPT_LATER,    /* look_ns says when */
};

static enum attempt try_plane(struct held_frontend *frontend, struct parked_flow *flow, uint64_t now_ns)
{
        struct translated *translated = frontend->translated;
        uint64_t free_ns = endpoint_free_ns(&translated->plane);

        if (!translated_is_settled(frontend, now_ns))
                return ATTEMPT_LATER;
        if (free_ns > now_ns) {
                translated->look_ns = MIN(translated->look_ns, free_ns);
                return ATTEMPT_LATER;
        }
        direct_pass(frontend->holding->hold, flow, now_ns);
        return ATTEMPT_DONE;
}

/* What stands in the way of one flow, or of one endpoint, is not held against the others. */
static enum attempt not_given(struct held_frontend *frontend, struct parked_flow *flow, struct endpoint *endpoint, int error,
                              uint64_t now_ns)
{
        uint64_t *counters = frontend->holding->hold->counters, again_ns = now_ns + ENTRY_AGAIN_NS;
        struct translated *translated = frontend->translated;
        struct flow readable = flow_from_wire(&flow->key);
        char text[FLOW_TEXT_MAX];

        log_debug("%s: the kernel takes no entry: %s", flow_format(&readable, text), strerror(-error));
        switch (error) {
        case -EEXIST: /* the endpoint's answers would be another connection's */
                counters[DAEMON_DELAYED_TAKEN]++;
                return try_plane(frontend, flow, now_ns) == ATTEMPT_DONE ? ATTEMPT_DONE : ATTEMPT_NOT_THIS;
        case -ENETUNREACH:
        case -EHOSTUNREACH:
                counters[DAEMON_DELAYED_UNREACHABLE]++;
                endpoint_failed(endpoint, now_ns);
                translated->look_ns = MIN(translated->look_ns, again_ns);
                return ATTEMPT_NOT_THIS;
        case -ENOMEM:
        case -ENOBUFS:
        case -ETIMEDOUT:
                counters[DAEMON_DELAYED_KERNEL]++;
                translated->look_ns = MIN(translated->look_ns, again_ns);
                return ATTEMPT_LATER;
        default:
                counters[DAEMON_DELAYED_NO_ENTRY]++;
                translated->way = WAY_REFUSED;
                return try_plane(frontend, flow, now_ns);
        }
}

static enum attempt try_direct(struct held_frontend *frontend, struct parked_flow *flow, uint64_t now_ns)
{
        struct translated *translated = frontend->translated;
        struct flow readable = flow_from_wire(&flow->key);
        bool ipv4 = address_is_ipv4(&readable.destination);
        struct endpoint *endpoint;
        uint64_t free_ns;
        int r;

        endpoint = endpoints_choose(&translated->endpoints, ipv4, translated->local, now_ns, &free_ns);
        if (!endpoint) {
                translated->look_ns = MIN(translated->look_ns, free_ns);
                if (!endpoints_usable(&translated->endpoints, ipv4, translated->local) ||
                    (free_ns != UINT64_MAX && free_ns > now_ns + REST_NS))
                        return try_plane(frontend, flow, now_ns);
                return ATTEMPT_LATER;
        }

        r = direct_give(frontend->holding->hold, flow, endpoint, now_ns);
        return r < 0 ? not_given(frontend, flow, endpoint, r, now_ns) : ATTEMPT_DONE;
}

static bool release_waiting(struct held_frontend *frontend, uint64_t now_ns)
{
        struct parked_flow *flow, *next;
        unsigned done = 0;

        frontend->translated->look_ns = UINT64_MAX;
        for (flow = TAILQ_FIRST(&frontend->queue.waiting); flow; flow = next) {
                bool direct = frontend->translated->way == WAY_DIRECT;
                enum attempt attempt;

                if (done == BATCH)
                        return true;
                next = TAILQ_NEXT(flow, in_queue);
                attempt = direct ? try_direct(frontend, flow, now_ns) : try_plane(frontend, flow, now_ns);
                done += attempt == ATTEMPT_DONE;
                if (attempt == ATTEMPT_LATER &&
                    !address_is_wildcard(&frontend->frontend.address)) /* which may stand for two families */
                        return false;
        }
        return false;
}

static void observe(struct hold *hold, struct endpoint *endpoint, uint64_t now_ns)
{
        struct pacing_flow *flow, *next;

        for (flow = TAILQ_FIRST(&endpoint->pacing.in_flight); flow; flow = next) {
                next = TAILQ_NEXT(flow, link);
                if (!flow->look && now_ns < flow->due_ns)
                        continue;
                flow->look = false;
                direct_observe(hold, container_of(flow, struct parked_flow, pacing), NULL, now_ns);
        }
}

static bool wants_proof(const struct held_frontend *frontend)
{
        const struct translated *translated = frontend->translated;

        return !translated->proven && !translated->parking &&
               (translated->way != WAY_DIRECT || frontend->holding->expected_ns > 0) && has_usable(frontend);
}

bool translated_run(struct held_frontend *frontend)
{
        struct translated *translated = frontend->translated;
        struct hold *hold = frontend->holding->hold;
        uint64_t now_ns = now_monotonic_ns();
        struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, &translated->endpoints, link)
                observe(hold, endpoint, now_ns);
        observe(hold, &translated->plane, now_ns);

        if (translated->way == WAY_NO_NAT && frontend->queue.n_waiting > 0)
                choose_way(frontend);
        if (wants_proof(frontend)) {
                data_plane_begin(frontend, now_ns);
                if (data_plane_run(frontend, now_ns))
                        prove(frontend);
        }
        return release_waiting(frontend, now_ns);
}

static uint64_t first_due_ns(const struct endpoint *endpoint)
{
        const struct pacing_flow *flow;
        uint64_t due_ns = UINT64_MAX;

        TAILQ_FOREACH(flow, &endpoint->pacing.in_flight, link)
                due_ns = MIN(due_ns, flow->due_ns);
        return due_ns;
}

uint64_t translated_next_ns(const struct held_frontend *frontend)
{
        const struct translated *translated = frontend->translated;
        uint64_t next_ns = MIN(translated->look_ns, first_due_ns(&translated->plane)), expected_ns = frontend->holding->expected_ns;
        uint64_t now_ns = now_monotonic_ns();
        const struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, &translated->endpoints, link)
                next_ns = MIN(next_ns, first_due_ns(endpoint));
        if (translated->probe.port_fd >= 0 && wants_proof(frontend))
                next_ns = MIN(next_ns, translated->probe.next_ns);
        if (translated->way == WAY_NO_NAT && frontend->queue.n_waiting > 0)
                next_ns = MIN(next_ns, frontend->holding->hold->translation->nat[is_ipv4(frontend)].looked_ns + NAT_LACKS_NS);
        if (expected_ns > 0 && !translated_is_settled(frontend, now_ns))
                next_ns = MIN(next_ns, expected_ns + (now_ns < expected_ns + UNTOLD_NS ? UNTOLD_NS : UNPROVEN_MAX_NS));
        return next_ns;
}

const char *translated_way_to_string(enum translated_way way)
{
        static const char *const names[] = {
                [WAY_DIRECT] = "direct",
                [WAY_CONFIGURED] = "data-plane-configured",
                [WAY_AFFINITY] = "data-plane-affinity",
                [WAY_NO_NAT] = "data-plane-no-nat",
                [WAY_REFUSED] = "data-plane-refused",
        };
        static_assert(ELEMENTSOF(names) == WAY_MAX, "every way has a name");

        return names[way];
}
