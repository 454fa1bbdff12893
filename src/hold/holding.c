/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "hold/demand.h"
#include "hold/notices.h"
#include "hold/release.h"
#include "hold/state.h"

static bool ignores_port(const struct holding_ignore *ignore, const struct held_frontend *frontend)
{
        return ignore->port == 0 || ignore->port == frontend->frontend.port;
}

static bool has_explicit_ipv4(const struct holding *holding, const struct frontend *frontend)
{
        struct frontend ipv4 = *frontend;

        ipv4.address = address_from_ipv4(0);
        for (size_t i = 0; i < holding->n_frontends; i++)
                if (frontend_equal(&holding->frontends[i].frontend, &ipv4))
                        return true;
        return false;
}

/* Where both lists say something, only who is in both may wake. */
static int copy_allowed(struct held_frontend *frontend, const struct holding_config *config, const struct holding_service *service)
{
        static const struct prefix everybody = { .length = 0 };
        size_t n_ranges = service ? service->n_source_ranges : 0;

        if (config->n_from == 0 && n_ranges == 0)
                return 0;

        frontend->flags |= LULL_FRONTEND_ALLOW_LIST;
        return prefixes_intersect(config->n_from ? config->from : &everybody, MAX(config->n_from, (size_t)1),
                                  n_ranges ? service->source_ranges : &everybody, MAX(n_ranges, (size_t)1), &frontend->allowed,
                                  &frontend->n_allowed);
}

static int init_frontend(struct holding *holding, struct held_frontend *frontend, const struct holding_config *config,
                         const struct holding_service *service)
{
        int r;

        frontend->holding = holding;
        frontend->slot = UINT32_MAX;
        frontend->without_ipv4 = !address_is_ipv4(&frontend->frontend.address) && has_explicit_ipv4(holding, &frontend->frontend);
        parked_queue_init(&frontend->queue, &holding->parked);
        pacing_init(&frontend->pacing);

        for (size_t i = 0; i < holding->n_ignore; i++)
                if (ignores_port(&holding->ignore[i], frontend))
                        frontend->flags |= LULL_FRONTEND_IGNORE_LIST;

        r = copy_allowed(frontend, config, service);
        if (r >= 0 && service)
                r = translated_new(service, &frontend->translated);
        return r;
}

static int claim_frontend(struct holding *holding, struct held_frontend *frontend)
{
        struct frontends *frontends = holding->hold->frontends;
        int r;

        r = frontends_claim(frontends, &frontend->frontend, frontend, &frontend->slot, &frontend->adopted);
        if (r < 0)
                return r;

        __atomic_store_n(&hold_hooks_demand(holding->hold->hooks, frontend->slot)->limit, holding->parked.max_packets,
                         __ATOMIC_RELAXED);
        for (size_t i = 0; r >= 0 && i < frontend->n_allowed; i++)
                r = frontends_add_rule(frontends, FRONTENDS_ALLOWED, frontend->slot, &frontend->allowed[i]);
        for (size_t i = 0; r >= 0 && i < holding->n_ignore; i++)
                if (ignores_port(&holding->ignore[i], frontend))
                        r = frontends_add_rule(frontends, FRONTENDS_IGNORED, frontend->slot, &holding->ignore[i].prefix);
        return r;
}

static void disclaim_frontend(struct holding *holding, struct held_frontend *frontend)
{
        struct frontends *frontends = holding->hold->frontends;

        if (frontend->slot == UINT32_MAX)
                return;

        /* One that an earlier daemon held and nobody started is still in the maps. */
        frontends_withdraw(frontends, &frontend->frontend, frontend->without_ipv4, frontend->slot);
        for (size_t i = 0; i < frontend->n_allowed; i++)
                frontends_remove_rule(frontends, FRONTENDS_ALLOWED, frontend->slot, &frontend->allowed[i]);
        for (size_t i = 0; i < holding->n_ignore; i++)
                if (ignores_port(&holding->ignore[i], frontend))
                        frontends_remove_rule(frontends, FRONTENDS_IGNORED, frontend->slot, &holding->ignore[i].prefix);
        frontends_disclaim(frontends, frontend->slot);
        frontend->slot = UINT32_MAX;
}

static void *copy_array(const void *array, size_t n, size_t size)
{
        void *copy = calloc(n ? n : 1, size);

        if (copy && n > 0)
                memcpy(copy, array, n * size);
        return copy;
}

static int holding_copy(const struct holding_config *config, const struct hold *hold, struct holding *holding)
{
        static const struct holding_service plain = { 0 };
        const struct holding_service *service = hold->translation ? &plain : NULL;
        int r = 0;

        holding->name = strdup(config->name);
        holding->frontends = calloc(config->n_frontends ? config->n_frontends : 1, sizeof(*holding->frontends));
        holding->ignore = copy_array(config->ignore, config->n_ignore, sizeof(*config->ignore));
        if (!holding->name || !holding->frontends || !holding->ignore)
                return -ENOMEM;

        holding->n_frontends = config->n_frontends;
        holding->n_ignore = config->n_ignore;
        parked_policy_init(&holding->parked, config->max_held, config->hold_timeout_ns);
        for (size_t i = 0; i < config->n_frontends; i++)
                holding->frontends[i].frontend = config->frontends[i];
        for (size_t i = 0; r >= 0 && i < config->n_frontends; i++)
                r = init_frontend(holding, &holding->frontends[i], config,
                                  service && config->services ? &config->services[i] : service);
        return r;
}

int holding_new(struct hold *hold, const struct holding_config *config, void *userdata, struct holding **ret_holding)
{
        _cleanup_(holding_freep) struct holding *holding = calloc(1, sizeof(*holding));
        int r;

        if (!holding)
                return -ENOMEM;

        r = holding_copy(config, hold, holding);
        if (r < 0)
                return r;

        holding->hold = hold;
        holding->userdata = userdata;
        TAILQ_INSERT_TAIL(&hold->holdings, holding, link);
        for (size_t i = 0; i < holding->n_frontends; i++) {
                r = claim_frontend(holding, &holding->frontends[i]);
                if (r < 0)
                        return r;
        }

        *ret_holding = TAKE_PTR(holding);
        return 0;
}

struct holding *holding_free(struct holding *holding)
{
        if (!holding)
                return NULL;

        if (holding->hold) {
                holding_stop(holding);
                notices_drop(holding);
                for (size_t i = 0; i < holding->n_frontends; i++)
                        disclaim_frontend(holding, &holding->frontends[i]);
                TAILQ_REMOVE(&holding->hold->holdings, holding, link);
        }
        for (size_t i = 0; i < holding->n_frontends; i++) {
                translated_free(holding->frontends[i].translated);
                free(holding->frontends[i].allowed);
        }
        free(holding->name);
        free(holding->frontends);
        free(holding->ignore);
        free(holding);
        return NULL;
}

void *holding_userdata(const struct holding *holding)
{
        return holding->userdata;
}

static void set_state(struct held_frontend *frontend, enum frontend_state state)
{
        struct hold *hold = frontend->holding->hold;

        if (frontend->state == state)
                return;

        if (frontend->state == FRONTEND_RELEASING) {
                release_abandon(frontend);
                TAILQ_REMOVE(&hold->releasing, frontend, link);
        }
        frontend->state = state;
        if (state == FRONTEND_RELEASING) {
                frontend->released_ns = now_monotonic_ns();
                TAILQ_INSERT_TAIL(&hold->releasing, frontend, link);
        }
        translation_follow(hold); /* before the first entry is made */
}

static int program_all(struct holding *holding)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < holding->n_frontends; i++) {
                const struct held_frontend *frontend = &holding->frontends[i];

                r = frontends_program(holding->hold->frontends, &frontend->frontend, frontend->without_ipv4, frontend->slot,
                                      frontend->flags);
        }
        return r;
}

static void withdraw_all(struct holding *holding)
{
        for (size_t i = 0; i < holding->n_frontends; i++) {
                const struct held_frontend *frontend = &holding->frontends[i];

                frontends_withdraw(holding->hold->frontends, &frontend->frontend, frontend->without_ipv4, frontend->slot);
        }
}

void holding_let_go(struct holding *holding)
{
        if (!holding->letting_go)
                withdraw_all(holding);
        holding->letting_go = true;
}

static int hold_again(struct holding *holding)
{
        int r;

        if (!holding->letting_go)
                return 0;

        r = program_all(holding);
        if (r >= 0)
                holding->letting_go = false;
        return r;
}

static bool has_adopted(const struct holding *holding)
{
        for (size_t i = 0; i < holding->n_frontends; i++)
                if (holding->frontends[i].adopted)
                        return true;
        return false;
}

/* What an earlier daemon saw counts only for the first start; afterwards the map is this daemon's alone. */
static void arm(struct holding *holding)
{
        if (has_adopted(holding))
                demand_adopt(holding);
        else
                demand_arm(holding);
}

int holding_start(struct holding *holding)
{
        struct hold *hold = holding->hold;
        int r;

        if (!hold)
                return -ESHUTDOWN;

        holding->drained_pending = false;
        holding->expected_ns = 0;
        arm(holding);
        if (!holding->started) {
                r = program_all(holding);
                if (r >= 0)
                        r = hold_begin(hold);
                if (r < 0) {
                        withdraw_all(holding);
                        demand_disarm(holding);
                        return r;
                }
                holding->started = true;
        }
        r = hold_again(holding);
        if (r < 0)
                return r;

        for (size_t i = 0; i < holding->n_frontends; i++) {
                set_state(&holding->frontends[i], FRONTEND_HOLDING);
                demand_read(&holding->frontends[i]);
        }
        hold_run_soon(hold);
        return 0;
}

void holding_halt(struct holding *holding)
{
        if (!holding->started)
                return;

        withdraw_all(holding);
        holding->letting_go = false;
        for (size_t i = 0; i < holding->n_frontends; i++)
                set_state(&holding->frontends[i], FRONTEND_IDLE);
        demand_disarm(holding);
        holding->started = false;
        hold_end(holding->hold);
}

void holding_release(struct holding *holding, size_t index)
{
        if (!holding->hold || !holding->started || index >= holding->n_frontends)
                return;

        set_state(&holding->frontends[index], FRONTEND_RELEASING);
        if (holding->frontends[index].translated) {
                holding->frontends[index].translated->proven = true;
                holding_expect_data_plane(holding);
        }
        release_run(holding->hold);   /* before the caller writes down what it has decided */
        hold_run_soon(holding->hold); /* for the callbacks */
}

int holding_set_endpoints(struct holding *holding, size_t index, const struct holding_endpoint *endpoints, size_t n_endpoints)
{
        struct held_frontend *frontend;
        int r;

        if (!holding->hold || !holding->started || index >= holding->n_frontends)
                return 0;
        frontend = &holding->frontends[index];
        if (!frontend->translated)
                return -EINVAL;

        if (n_endpoints == 0) {
                set_state(frontend, FRONTEND_HOLDING);
                r = hold_again(holding);
        } else {
                r = translated_set_endpoints(frontend, endpoints, n_endpoints);
                if (r >= 0)
                        set_state(frontend, FRONTEND_RELEASING);
        }
        if (r < 0)
                return r;
        release_run(holding->hold);
        hold_run_soon(holding->hold);
        return 0;
}

void holding_expect_data_plane(struct holding *holding)
{
        if (!holding->hold || !holding->started || holding->expected_ns > 0)
                return;

        holding->expected_ns = now_monotonic_ns();
        hold_run_soon(holding->hold);
}

static void hand_on_and_halt(struct holding *holding, enum daemon_counter reason)
{
        if (!holding->hold)
                return;

        holding->drained_pending = false;
        if (!holding->started)
                return;

        release_all(holding, reason);
        holding_halt(holding);
        hold_run_soon(holding->hold);
}

struct held_frontend *holding_find_frontend(struct holding *holding, const struct flow *flow)
{
        for (size_t i = 0; i < holding->n_frontends; i++) {
                struct held_frontend *frontend = &holding->frontends[i];

                if (frontend->without_ipv4 && address_is_ipv4(&flow->destination))
                        continue;
                if (frontend_matches(&frontend->frontend, &flow->destination, flow->destination_port, flow->protocol))
                        return frontend;
        }
        return NULL;
}

static void move_flow(struct holding *to, struct parked_flow *parked_flow)
{
        uint32_t slot = container_of(parked_flow->queue, struct held_frontend, queue)->slot;
        struct flow flow = flow_from_wire(&parked_flow->key);
        struct held_frontend *frontend = holding_find_frontend(to, &flow);

        if (frontend && parked_move(to->hold->parked, parked_flow, &frontend->queue) >= 0)
                hold_consumed(to->hold, slot, parked_flow->n_packets);
}

void holding_move(struct holding *from, struct holding *to)
{
        struct parked_flow *flow, *next;

        if (!from->hold || !from->started || !to->started)
                return;

        hold_consume_ring(from->hold); /* what was published for @from's frontends */
        for (size_t i = 0; i < from->n_frontends; i++)
                set_state(&from->frontends[i], FRONTEND_HOLDING);
        for (flow = TAILQ_FIRST(&from->parked.by_age); flow; flow = next) {
                next = TAILQ_NEXT(flow, by_age);
                move_flow(to, flow);
        }
        demand_move(from, to);
        hold_arm_expiry(from->hold);
        hold_run_soon(from->hold);
}

void holding_refuse(struct holding *holding)
{
        hand_on_and_halt(holding, DAEMON_EXPIRED_REFUSED);
}

void holding_stop(struct holding *holding)
{
        hand_on_and_halt(holding, DAEMON_RELEASED_STOPPED);
}

void holding_rearm(struct holding *holding)
{
        if (holding->hold && holding->started)
                demand_arm(holding);
}

bool holding_is_started(const struct holding *holding)
{
        return holding->started;
}

bool holding_is_left(const struct holding *holding)
{
        return holding->hold && !holding->hold->settled && !holding->started && has_adopted(holding);
}

bool holding_has_demand(struct holding *holding)
{
        return holding->hold && demand_exists(holding);
}

size_t holding_parked(const struct holding *holding)
{
        return holding->parked.n_packets;
}

bool holding_wants_key(const void *owner, const struct lull_frontend_key *key)
{
        const struct held_frontend *frontend = owner;
        struct lull_frontend_key keys[2];
        unsigned n = frontends_keys(&frontend->frontend, frontend->without_ipv4, keys);

        for (unsigned i = 0; frontend->holding->started && i < n; i++)
                if (memcmp(&keys[i], key, sizeof(*key)) == 0)
                        return true;
        return false;
}

bool holding_wants_rule(const void *owner, enum frontends_list list, const struct prefix *prefix)
{
        const struct held_frontend *frontend = owner;
        const struct holding *holding = frontend->holding;

        for (size_t i = 0; list == FRONTENDS_ALLOWED && i < frontend->n_allowed; i++)
                if (memcmp(&frontend->allowed[i], prefix, sizeof(*prefix)) == 0)
                        return true;
        for (size_t i = 0; list == FRONTENDS_IGNORED && i < holding->n_ignore; i++)
                if (ignores_port(&holding->ignore[i], frontend) && memcmp(&holding->ignore[i].prefix, prefix, sizeof(*prefix)) == 0)
                        return true;
        return false;
}
