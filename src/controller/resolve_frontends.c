/* SPDX-License-Identifier: Apache-2.0 */
/* The frontends of Services, as kube-proxy makes them. */
#include <netinet/in.h>
#include <string.h>

#include "controller/resolve_private.h"

/* What the frontends of one port of one Service have in common. */
struct port_context {
        struct resolving *resolving;
        const struct kube_service *service;
        const struct kube_service_port *port;
        const char *backend;
        size_t *left_out;
};

static bool is_known(const struct resolution *resolution, const struct frontend *frontend)
{
        for (size_t i = 0; i < resolution->n_frontends; i++)
                if (frontend_equal(&resolution->frontends[i].frontend, frontend))
                        return true;
        return false;
}

/* Returns a new entry, or NULL where the frontend is known or there are too many. */
static struct status_frontend *frontend_add(struct resolution *resolution, const struct frontend *frontend, size_t *left_out)
{
        if (is_known(resolution, frontend))
                return NULL;
        if (resolution->n_frontends == STATUS_FRONTENDS_MAX) {
                ++*left_out;
                return NULL;
        }
        resolution->frontends[resolution->n_frontends] = (struct status_frontend){ .frontend = *frontend };
        return &resolution->frontends[resolution->n_frontends++];
}

static int port_frontend_add(const struct port_context *context, const struct address *address, uint16_t port,
                             enum frontend_origin origin, struct status_frontend **ret_added)
{
        const struct frontend frontend = { .address = *address, .port = port, .protocol = context->port->protocol };
        struct status_frontend *added = frontend_add(context->resolving->resolution, &frontend, context->left_out);

        if (ret_added)
                *ret_added = added;
        if (!added)
                return 0;
        added->origin = origin;
        added->affinity = context->service->client_affinity;
        added->local = origin == FRONTEND_CLUSTER_IP ? context->service->internal_local : context->service->external_local;
        added->backend = strdup(context->backend);
        return added->backend ? 0 : -ENOMEM;
}

static int addresses_add(const struct port_context *context, const struct address *addresses, size_t n, enum frontend_origin origin)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = port_frontend_add(context, &addresses[i], context->port->port, origin, NULL);
        return r;
}

static bool has_family(const struct kube_service *service, bool ipv4)
{
        for (size_t i = 0; i < service->n_cluster_ips; i++)
                if (address_is_ipv4(&service->cluster_ips[i]) == ipv4)
                        return true;
        return false;
}

static int node_ports_add(const struct port_context *context)
{
        const struct address ipv4 = address_from_ipv4(INADDR_ANY), ipv6 = { 0 };
        int r = 0;

        if (context->port->node_port == 0)
                return 0;
        if (has_family(context->service, true))
                r = port_frontend_add(context, &ipv4, context->port->node_port, FRONTEND_NODE_PORT, NULL);
        if (r >= 0 && has_family(context->service, false))
                r = port_frontend_add(context, &ipv6, context->port->node_port, FRONTEND_NODE_PORT, NULL);
        return r;
}

/* Each family has its own ranges; none, or one of everything, is no restriction. */
static int source_ranges_copy(const struct kube_service *service, struct status_frontend *frontend)
{
        bool ipv4 = address_is_ipv4(&frontend->frontend.address);

        frontend->source_ranges = calloc(service->n_source_ranges, sizeof(*frontend->source_ranges));
        if (!frontend->source_ranges)
                return -ENOMEM;
        for (size_t i = 0; i < service->n_source_ranges; i++) {
                const struct prefix *range = &service->source_ranges[i];

                if (address_is_ipv4(&range->address) != ipv4)
                        continue;
                if (range->length == (ipv4 ? 96 : 0)) {
                        frontend->n_source_ranges = 0;
                        return 0;
                }
                frontend->source_ranges[frontend->n_source_ranges++] = *range;
        }
        return 0;
}

static int load_balancers_add(const struct port_context *context)
{
        const struct kube_service *service = context->service;

        for (size_t i = 0; i < service->n_load_balancer_ips; i++) {
                struct status_frontend *added;
                int r = port_frontend_add(context, &service->load_balancer_ips[i], context->port->port, FRONTEND_LOAD_BALANCER,
                                          &added);

                if (r >= 0 && added && service->n_source_ranges > 0)
                        r = source_ranges_copy(service, added);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int port_add(struct resolving *resolving, const struct kube_service *service, const struct kube_service_port *port,
                    size_t *left_out)
{
        _cleanup_(freep) char *backend = resolve_backend(service, port);
        const struct port_context context = {
                .resolving = resolving, .service = service, .port = port, .backend = backend, .left_out = left_out
        };
        int r;

        if (!backend)
                return -ENOMEM;
        if (port->protocol == 0)
                return resolve_problem_add(
                        resolving, PROBLEM_PORT_UNSUPPORTED, "SCTP",
                        "port %u of Service %s is neither TCP nor UDP, and its packets cannot be held; move it to a "
                        "Service of its own, and name only the others in spec.services",
                        port->port, service->metadata.name);
        r = addresses_add(&context, service->cluster_ips, service->n_cluster_ips, FRONTEND_CLUSTER_IP);
        if (r >= 0)
                r = node_ports_add(&context);
        if (r >= 0)
                r = addresses_add(&context, service->external_ips, service->n_external_ips, FRONTEND_EXTERNAL);
        return r < 0 ? r : load_balancers_add(&context);
}

static bool has_backend(const struct resolving *resolving, const char *backend)
{
        for (size_t i = 0; i < resolving->n_services; i++)
                for (size_t j = 0; j < resolving->services[i]->n_ports; j++) {
                        _cleanup_(freep) char *other = resolve_backend(resolving->services[i], &resolving->services[i]->ports[j]);

                        if (other && strcmp(other, backend) == 0)
                                return true;
                }
        return false;
}

/* Clients of the parking slice have found it by the Service: it is of use as long as that counts. */
static int parking_add(struct resolving *resolving, const struct resolve_parking *parking, size_t *left_out)
{
        const struct frontend frontend = { .address = parking->address, .port = parking->port, .protocol = parking->protocol };
        struct status_frontend *added;

        if (!has_backend(resolving, parking->backend))
                return 0;
        added = frontend_add(resolving->resolution, &frontend, left_out);
        if (!added)
                return 0;
        added->origin = FRONTEND_PARKING;
        added->backend = strdup(parking->backend);
        added->node = strdup(parking->node);
        return added->backend && added->node ? 0 : -ENOMEM;
}

int resolve_frontends(struct resolving *resolving)
{
        const struct resolve_input *input = resolving->input;
        size_t left_out = 0;
        int r = 0;

        resolving->resolution->frontends = calloc(STATUS_FRONTENDS_MAX, sizeof(*resolving->resolution->frontends));
        if (!resolving->resolution->frontends)
                return -ENOMEM;
        for (size_t i = 0; i < resolving->n_services; i++)
                for (size_t j = 0; r >= 0 && j < resolving->services[i]->n_ports; j++)
                        r = port_add(resolving, resolving->services[i], &resolving->services[i]->ports[j], &left_out);
        for (size_t i = 0; r >= 0 && i < input->n_parking; i++)
                r = parking_add(resolving, &input->parking[i], &left_out);
        if (r >= 0 && left_out > 0)
                r = resolve_problem_add(
                        resolving, PROBLEM_BOUND, "Frontends",
                        "its Services have %zu addresses and ports more than the %d that can be held for one policy; make "
                        "several Services and policies of them",
                        left_out, STATUS_FRONTENDS_MAX);
        return r;
}
