/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/demand.h"

#include <arpa/inet.h>

#include "hold/notices.h"
#include "hold/state.h"

static struct lull_demand *entry_of(const struct held_frontend *frontend)
{
        return hold_hooks_demand(frontend->holding->hold->hooks, frontend->slot);
}

static uint64_t packets_of(const struct held_frontend *frontend)
{
        return __atomic_load_n(&entry_of(frontend)->packets, __ATOMIC_RELAXED);
}

static void forget_seen(struct held_frontend *frontend)
{
        frontend->seen_packets = packets_of(frontend);
        __atomic_store_n(&entry_of(frontend)->first_ns, 0, __ATOMIC_RELAXED);
}

void demand_arm(struct holding *holding)
{
        for (size_t i = 0; i < holding->n_frontends; i++)
                forget_seen(&holding->frontends[i]);
        holding->armed = true;
        holding->demand_pending = false;
}

void demand_adopt(struct holding *holding)
{
        uint64_t left_ns = holding->hold->left_heartbeat_ns;

        demand_disarm(holding);
        for (size_t i = 0; i < holding->n_frontends; i++) {
                struct held_frontend *frontend = &holding->frontends[i];

                if (frontend->adopted && packets_of(frontend) > 0 && entry_of(frontend)->last_ns > left_ns)
                        frontend->seen_packets = packets_of(frontend) - 1;
                else
                        forget_seen(frontend);
                frontend->adopted = false;
        }
        holding->armed = true;
}

void demand_disarm(struct holding *holding)
{
        holding->armed = false;
        holding->demand_pending = false;
}

static void note(struct held_frontend *frontend, const struct hold_demand *demand)
{
        struct holding *holding = frontend->holding;

        holding->demand = *demand;
        holding->armed = false;
        holding->demand_pending = true;
        notices_mark(holding);
}

void demand_note_packet(struct held_frontend *frontend, const struct lull_packet *packet)
{
        struct holding *holding = frontend->holding;

        if (!holding->armed)
                return;

        note(frontend, &(struct hold_demand){
                               .first_ns = packet->time_ns,
                               .flow = flow_from_wire(&packet->flow),
                               .from_this_host = packet->flags & (LULL_PACKET_LOOPBACK | LULL_PACKET_LOCAL_OUT),
                               .frontend = (size_t)(frontend - holding->frontends),
                       });
}

void demand_read(struct held_frontend *frontend)
{
        struct holding *holding = frontend->holding;
        const struct lull_demand *entry = entry_of(frontend);
        struct hold_demand demand;

        if (!holding->armed || packets_of(frontend) <= frontend->seen_packets)
                return;

        demand = (struct hold_demand){
                .first_ns = entry->first_ns ? entry->first_ns : entry->last_ns,
                .flow = { .source = address_from_bytes(AF_INET6, entry->source),
                          .destination = frontend->frontend.address,
                          .source_port = ntohs(entry->source_port),
                          .destination_port = frontend->frontend.port,
                          .protocol = frontend->frontend.protocol },
                .frontend = (size_t)(frontend - holding->frontends),
        };
        demand.from_this_host = address_is_loopback(&demand.flow.source);
        note(frontend, &demand);
}

void demand_read_all(struct hold *hold)
{
        struct holding *holding;

        TAILQ_FOREACH(holding, &hold->holdings, link)
                for (size_t i = 0; holding->armed && i < holding->n_frontends; i++)
                        demand_read(&holding->frontends[i]);
}

void demand_move(struct holding *from, struct holding *to)
{
        struct held_frontend *frontend = holding_find_frontend(to, &from->demand.flow);
        struct hold_demand demand = from->demand;

        if (!from->demand_pending || !to->armed || !frontend)
                return;

        demand.frontend = (size_t)(frontend - to->frontends);
        note(frontend, &demand);
}

bool demand_exists(const struct holding *holding)
{
        if (holding->demand_pending)
                return true;
        for (size_t i = 0; holding->started && i < holding->n_frontends; i++)
                if (packets_of(&holding->frontends[i]) > holding->frontends[i].seen_packets)
                        return true;
        return false;
}
