/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/parking.h"

#include <netinet/in.h>
#include <string.h>

#include "controller/resolve_private.h"
#include "controller/spread.h"

struct chosen {
        const struct parking_node *node;
        const struct address *address;
        uint64_t rank;
};

void parking_plan_done(struct parking_plan *plan)
{
        for (size_t i = 0; plan->backends && plan->backends[i]; i++)
                free(plan->backends[i]);
        free(plan->backends);
        free(plan->entries);
        *plan = (struct parking_plan){ 0 };
}

/* Whether clients reach @backend by a cluster IP of that family. */
static bool is_used(const struct resolution *resolution, const char *backend, bool ipv4)
{
        for (size_t i = 0; i < resolution->n_frontends; i++) {
                const struct status_frontend *frontend = &resolution->frontends[i];

                if (frontend->origin == FRONTEND_CLUSTER_IP && address_is_ipv4(&frontend->frontend.address) == ipv4 &&
                    strcmp(frontend->backend, backend) == 0)
                        return true;
        }
        return false;
}

static const struct address *node_address(const struct parking_node *node, bool ipv4)
{
        for (size_t i = 0; i < node->n_addresses; i++)
                if (address_is_ipv4(&node->addresses[i]) == ipv4)
                        return &node->addresses[i];
        return NULL;
}

static int by_name(const void *a, const void *b)
{
        const struct chosen *left = a, *right = b;

        return strcmp(left->node->node, right->node->node);
}

/* The PARKING_NODES_MAX that the hash favours, of those with an address of the family. Returns how many. */
static size_t nodes_choose(const char *policy, const struct parking_node *nodes, size_t n_nodes, bool ipv4,
                           struct chosen chosen[static PARKING_NODES_MAX])
{
        size_t n = 0;

        for (size_t i = 0; i < n_nodes; i++) {
                struct chosen next = { &nodes[i], node_address(&nodes[i], ipv4), spread_hash(policy, nodes[i].node) };

                if (!next.address)
                        continue;
                for (size_t j = 0; j < n; j++)
                        if (next.rank > chosen[j].rank) {
                                struct chosen beaten = chosen[j];

                                chosen[j] = next;
                                next = beaten;
                        }
                if (n < PARKING_NODES_MAX)
                        chosen[n++] = next;
        }
        qsort(chosen, n, sizeof(*chosen), by_name);
        return n;
}

struct planning {
        struct parking_ports *ports;
        const char *policy;
        const struct resolution *resolution;
        struct chosen chosen[2][PARKING_NODES_MAX]; /* IPv6, IPv4 */
        size_t n_chosen[2];
        struct parking_plan plan;
        size_t n_backends;
};

static void unparked(struct planning *planning, const char *reason, const char *message)
{
        planning->plan.reason = reason;
        planning->plan.message = message;
}

static void entries_add(struct planning *planning, const char *backend, uint16_t port, uint8_t protocol)
{
        for (int ipv4 = 1; ipv4 >= 0; ipv4--) {
                if (!is_used(planning->resolution, backend, ipv4))
                        continue;
                if (planning->n_chosen[ipv4] == 0)
                        unparked(
                                planning, "NoNodes",
                                "no agent is known to be alive on a node with an address of the Service's family; clients that dial "
                                "endpoints are refused until one is");
                for (size_t i = 0; i < planning->n_chosen[ipv4]; i++) {
                        const struct chosen *chosen = &planning->chosen[ipv4][i];

                        planning->plan.entries[planning->plan.n_entries++] = (struct resolve_parking){
                                .node = chosen->node->node,
                                .address = *chosen->address,
                                .backend = backend,
                                .port = port,
                                .protocol = protocol,
                        };
                }
        }
}

static int port_plan(struct planning *planning, const struct kube_service *service, const struct kube_service_port *port)
{
        char *backend;
        uint16_t number;
        int r;

        if (port->protocol == 0)
                return 0;
        backend = resolve_backend(service, port);
        if (!backend)
                return -ENOMEM;
        if (!is_used(planning->resolution, backend, true) && !is_used(planning->resolution, backend, false)) {
                free(backend);
                return 0;
        }
        planning->plan.backends[planning->n_backends++] = backend;
        r = parking_ports_assign(planning->ports, planning->policy, backend, &number);
        if (r == -ENOSPC) {
                unparked(
                        planning, "PortsExhausted",
                        "all parking ports are taken, so that clients that dial endpoints are refused; give the controllers more by "
                        "--parking-ports");
                return 0;
        }
        if (r >= 0)
                entries_add(planning, backend, number, port->protocol);
        return r;
}

static int plan_allocate(const struct parking_services *services, struct parking_plan *plan)
{
        size_t n_ports = 0;

        for (size_t i = 0; i < services->n_services; i++)
                n_ports += services->services[i]->n_ports;
        plan->backends = calloc(n_ports + 1, sizeof(*plan->backends));
        plan->entries = calloc(n_ports * 2 * PARKING_NODES_MAX + 1, sizeof(*plan->entries));
        return plan->backends && plan->entries ? 0 : -ENOMEM;
}

int parking_plan(struct parking_ports *ports, const char *policy, const struct parking_services *services,
                 const struct parking_node *nodes, size_t n_nodes, struct parking_plan *ret_plan)
{
        struct planning planning = { .ports = ports, .policy = policy, .resolution = services->resolution };
        int r = plan_allocate(services, &planning.plan);

        for (int ipv4 = 0; ipv4 <= 1; ipv4++)
                planning.n_chosen[ipv4] = nodes_choose(policy, nodes, n_nodes, ipv4, planning.chosen[ipv4]);
        for (size_t i = 0; i < services->n_services; i++)
                for (size_t j = 0; r >= 0 && j < services->services[i]->n_ports; j++)
                        r = port_plan(&planning, services->services[i], &services->services[i]->ports[j]);
        if (r < 0) {
                parking_plan_done(&planning.plan);
                return r;
        }
        *ret_plan = planning.plan;
        return 0;
}

static bool is_told(const struct resolve_parking *entry, const struct scale_to_zero_status *status)
{
        for (size_t i = 0; i < status->n_frontends; i++) {
                const struct status_frontend *frontend = &status->frontends[i];

                if (frontend->origin == FRONTEND_PARKING && frontend->frontend.port == entry->port &&
                    frontend->frontend.protocol == entry->protocol && frontend->node && strcmp(frontend->node, entry->node) == 0 &&
                    address_equal(&frontend->frontend.address, &entry->address))
                        return true;
        }
        return false;
}

static bool node_is_told(const struct parking_plan *plan, const char *node, const struct scale_to_zero_status *status)
{
        for (size_t i = 0; i < plan->n_entries; i++)
                if (strcmp(plan->entries[i].node, node) == 0 && !is_told(&plan->entries[i], status))
                        return false;
        return true;
}

static void node_leave_out(struct parking_plan *plan, const char *node)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_entries; i++)
                if (strcmp(plan->entries[i].node, node) != 0)
                        plan->entries[n++] = plan->entries[i];
        plan->n_entries = n;
}

void parking_plan_keep_told(struct parking_plan *plan, const struct scale_to_zero_status *status)
{
        size_t i = 0;

        while (i < plan->n_entries)
                if (node_is_told(plan, plan->entries[i].node, status))
                        i++;
                else
                        node_leave_out(plan, plan->entries[i].node); /* none of it was before */
}
