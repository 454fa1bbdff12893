/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/plan.h"

#include <string.h>

struct hold_plan *hold_plan_free(struct hold_plan *plan)
{
        if (!plan)
                return NULL;
        for (size_t i = 0; i < plan->n_frontends; i++) {
                free((struct prefix *)plan->services[i].source_ranges);
                free(plan->backends[i]);
        }
        free(plan->frontends);
        free(plan->services);
        free(plan->backends);
        free(plan->from);
        free(plan->ignore);
        free(plan);
        return NULL;
}

static int prefixes_copy(const struct prefix *prefixes, size_t n_prefixes, struct prefix **ret_copy)
{
        *ret_copy = NULL;
        if (n_prefixes == 0)
                return 0;
        *ret_copy = calloc(n_prefixes, sizeof(**ret_copy));
        if (!*ret_copy)
                return -ENOMEM;
        memcpy(*ret_copy, prefixes, n_prefixes * sizeof(*prefixes));
        return 0;
}

/* kube-proxy has what it takes in from outside answered by way of the node, unless only the node's own endpoints are chosen from. */
static enum holding_masquerade masquerade_of(const struct status_frontend *frontend)
{
        switch (frontend->origin) {
        case FRONTEND_CLUSTER_IP:
                return MASQUERADE_OUTSIDERS;
        case FRONTEND_PARKING:
                return MASQUERADE_ALL;
        case FRONTEND_NODE_PORT:
        case FRONTEND_EXTERNAL:
        case FRONTEND_LOAD_BALANCER:
                return frontend->local ? MASQUERADE_NONE : MASQUERADE_ALL;
        }
        return MASQUERADE_OUTSIDERS;
}

/* The index of the first frontend that has the same. */
static uint32_t backend_number(const struct hold_plan *plan, const char *backend)
{
        uint32_t number = 0;

        while (number < plan->n_frontends && strcmp(plan->backends[number], backend) != 0)
                number++;
        return number;
}

static int frontend_add(struct hold_plan *plan, const struct status_frontend *frontend)
{
        struct prefix *ranges;
        char *backend = strdup(frontend->backend);
        int r = backend ? prefixes_copy(frontend->source_ranges, frontend->n_source_ranges, &ranges) : -ENOMEM;

        if (r < 0) {
                free(backend);
                return r;
        }
        plan->frontends[plan->n_frontends] = frontend->frontend;
        plan->backends[plan->n_frontends] = backend;
        plan->services[plan->n_frontends++] = (struct holding_service){
                .source_ranges = ranges,
                .n_source_ranges = frontend->n_source_ranges,
                .local = frontend->local,
                .affinity = frontend->affinity,
                .parking = frontend->origin == FRONTEND_PARKING,
                .backend = backend_number(plan, backend),
                .masquerade = masquerade_of(frontend),
        };
        return 0;
}

static int frontends_add(struct hold_plan *plan, const struct scale_to_zero_status *status, const char *node)
{
        int r = 0;

        plan->frontends = calloc(status->n_frontends + 1, sizeof(*plan->frontends));
        plan->services = calloc(status->n_frontends + 1, sizeof(*plan->services));
        plan->backends = calloc(status->n_frontends + 1, sizeof(*plan->backends));
        if (!plan->frontends || !plan->services || !plan->backends)
                return -ENOMEM;

        for (size_t i = 0; r >= 0 && i < status->n_frontends; i++) {
                const struct status_frontend *frontend = &status->frontends[i];

                if (!frontend->node || strcmp(frontend->node, node) == 0)
                        r = frontend_add(plan, frontend);
        }
        return r;
}

static bool serves(const struct status_port *ports, size_t n_ports, const char *backend, uint8_t protocol, uint16_t *ret_port)
{
        for (size_t i = 0; i < n_ports; i++)
                if (ports[i].protocol == protocol && strcmp(ports[i].backend, backend) == 0) {
                        *ret_port = ports[i].port;
                        return true;
                }
        return false;
}

static bool ignore_equal(const struct holding_ignore *a, const struct holding_ignore *b)
{
        return a->port == b->port && a->prefix.length == b->prefix.length && address_equal(&a->prefix.address, &b->prefix.address);
}

static void ignore_add(struct hold_plan *plan, const struct prefix *prefix, uint16_t port)
{
        struct holding_ignore ignore = { *prefix, port };

        for (size_t i = 0; i < plan->n_ignore; i++)
                if (ignore_equal(&plan->ignore[i], &ignore))
                        return;
        plan->ignore[plan->n_ignore++] = ignore;
}

/* A rule names a port of the pods; what is held are ports of Services. Where it is not known yet which belongs to which, the number itself
 * is taken. */
static void ignore_port_add(struct hold_plan *plan, const struct scale_to_zero_status *status, const struct ignore_rule *rule)
{
        for (size_t i = 0; i < plan->n_frontends; i++) {
                const struct frontend *frontend = &plan->frontends[i];
                uint16_t port = frontend->port;

                serves(status->ports, status->n_ports, plan->backends[i], frontend->protocol, &port);
                if (port == rule->port)
                        ignore_add(plan, &rule->prefix, frontend->port);
        }
}

static int ignores_add(struct hold_plan *plan, const struct scale_to_zero *object)
{
        const struct policy *policy = object->policy;
        const struct scale_to_zero_status *status = &object->status;
        size_t max = policy->n_ignore * (plan->n_frontends + 1) + status->n_ignored + 1;

        plan->ignore = calloc(max, sizeof(*plan->ignore));
        if (!plan->ignore)
                return -ENOMEM;
        for (size_t i = 0; i < policy->n_ignore; i++)
                if (policy->ignore[i].port)
                        ignore_port_add(plan, status, &policy->ignore[i]);
                else
                        ignore_add(plan, &policy->ignore[i].prefix, 0);
        for (size_t i = 0; i < status->n_ignored; i++)
                ignore_add(plan, &status->ignored[i], 0);
        return 0;
}

int hold_plan_make(const struct scale_to_zero *object, const char *node, struct hold_plan **ret_plan)
{
        _cleanup_(hold_plan_freep) struct hold_plan *plan = calloc(1, sizeof(*plan));
        const struct wake_settings *wake = &object->policy->wake;
        int r;

        if (!plan)
                return -ENOMEM;
        plan->max_held = wake->max_held;
        plan->hold_timeout_ns = wake->hold_timeout_ns;
        plan->n_from = wake->n_from;
        r = prefixes_copy(wake->from, wake->n_from, &plan->from);
        if (r >= 0)
                r = frontends_add(plan, &object->status, node);
        if (r >= 0)
                r = ignores_add(plan, object);
        if (r < 0)
                return r;

        *ret_plan = TAKE_PTR(plan);
        return 0;
}

static bool prefixes_equal(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b)
{
        if (n_a != n_b)
                return false;
        for (size_t i = 0; i < n_a; i++)
                if (a[i].length != b[i].length || !address_equal(&a[i].address, &b[i].address))
                        return false;
        return true;
}

static bool services_equal(const struct holding_service *a, const struct holding_service *b)
{
        return a->local == b->local && a->affinity == b->affinity && a->parking == b->parking && a->masquerade == b->masquerade &&
               prefixes_equal(a->source_ranges, a->n_source_ranges, b->source_ranges, b->n_source_ranges);
}

bool hold_plan_equal(const struct hold_plan *a, const struct hold_plan *b)
{
        if (a->n_frontends != b->n_frontends || a->n_ignore != b->n_ignore || a->max_held != b->max_held ||
            a->hold_timeout_ns != b->hold_timeout_ns || !prefixes_equal(a->from, a->n_from, b->from, b->n_from))
                return false;
        for (size_t i = 0; i < a->n_frontends; i++)
                if (!frontend_equal(&a->frontends[i], &b->frontends[i]) || strcmp(a->backends[i], b->backends[i]) != 0 ||
                    !services_equal(&a->services[i], &b->services[i]))
                        return false;
        for (size_t i = 0; i < a->n_ignore; i++)
                if (!ignore_equal(&a->ignore[i], &b->ignore[i]))
                        return false;
        return true;
}

bool hold_plan_endpoint(const struct hold_plan *plan, size_t index, const struct status_endpoint *endpoint, const char *node,
                        struct holding_endpoint *ret_endpoint)
{
        const struct frontend *frontend = &plan->frontends[index];
        uint16_t port;

        /* No data plane translates from one family to the other. */
        if (address_is_ipv4(&frontend->address) != address_is_ipv4(&endpoint->address))
                return false;
        if (!serves(endpoint->ports, endpoint->n_ports, plan->backends[index], frontend->protocol, &port))
                return false;
        *ret_endpoint = (struct holding_endpoint){
                .address = endpoint->address,
                .port = port,
                .on_this_node = endpoint->node && strcmp(endpoint->node, node) == 0,
        };
        return true;
}
