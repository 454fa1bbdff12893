/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/resolve.h"

#include <assert.h>
#include <string.h>

#include "controller/pod_probe.h"
#include "controller/resolve_private.h"

enum { MESSAGE_MAX = 480 }; /* bytes; what comes after that is left out */

static const struct {
        const char *name;
        bool forbids_sleep;
} problem_types[] = {
        [PROBLEM_TARGET] = { "TargetUnusable", true },
        [PROBLEM_SERVICE_MISSING] = { "ServiceMissing", true },
        [PROBLEM_SERVICE_UNSUPPORTED] = { "ServiceUnsupported", true },
        [PROBLEM_PORT_UNSUPPORTED] = { "PortUnsupported", true },
        [PROBLEM_SERVICE_SHARED] = { "ServiceShared", true },
        [PROBLEM_BOUND] = { "BoundExceeded", true },
        [PROBLEM_PODS_UNKNOWN] = { "PodsUnknown", true },
        [PROBLEM_NOT_READY_ADDRESSES] = { "NotReadyAddresses", false },
        [PROBLEM_AFFINITY] = { "SessionAffinity", false },
};
static_assert(ELEMENTSOF(problem_types) == PROBLEM_TYPES_MAX && (int)PROBLEM_TYPES_MAX <= (int)RESOLVE_PROBLEMS_MAX,
              "one of each type fits");

static struct resolve_problem *problem_find(struct resolution *resolution, const char *type)
{
        for (size_t i = 0; i < resolution->n_problems; i++)
                if (strcmp(resolution->problems[i].type, type) == 0)
                        return &resolution->problems[i];
        return NULL;
}

static int message_join(struct resolve_problem *problem, const char *text)
{
        char *joined;

        if (strlen(problem->message) + strlen(text) > MESSAGE_MAX)
                return 0;
        if (asprintf(&joined, "%s; %s", problem->message, text) < 0)
                return -ENOMEM;
        free(problem->message);
        problem->message = joined;
        return 0;
}

int resolve_problem_add(struct resolving *resolving, enum resolve_problem_type type, const char *reason, const char *format, ...)
{
        struct resolution *resolution = resolving->resolution;
        struct resolve_problem *problem = problem_find(resolution, problem_types[type].name);
        _cleanup_(freep) char *text = NULL;
        va_list arguments;
        int length;

        va_start(arguments, format);
        length = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (length < 0) {
                text = NULL;
                return -ENOMEM;
        }
        if (problem_types[type].forbids_sleep)
                resolution->can_sleep = false;
        if (problem)
                return message_join(problem, text);
        resolution->problems[resolution->n_problems++] =
                (struct resolve_problem){ .type = problem_types[type].name, .reason = reason, .message = TAKE_PTR(text) };
        return 0;
}

char *resolve_backend(const struct kube_service *service, const struct kube_service_port *port)
{
        char *backend;
        int length;

        if (*port->name)
                length = asprintf(&backend, "%s/%s", service->metadata.name, port->name);
        else
                length = asprintf(&backend, "%s/%u", service->metadata.name, port->port);
        return length < 0 ? NULL : backend;
}

static int check_target(struct resolving *resolving)
{
        const struct target_state *target = resolving->input->target;
        const struct policy *policy = resolving->input->object->policy;

        if (!target)
                return 0;
        if (target->problem)
                return resolve_problem_add(resolving, PROBLEM_TARGET, "NotScalable", "%s", target->problem);
        if (!target->known || target->exists)
                return 0;
        return resolve_problem_add(resolving, PROBLEM_TARGET, "NotFound",
                                   "there is no %s \"%s\"; create it, or correct spec.target", policy->cluster.reference.kind,
                                   policy->cluster.reference.name);
}

/* Results are kept for every policy. */
static void resolution_shrink(struct resolution *resolution)
{
        struct status_frontend *frontends =
                reallocarray(resolution->frontends, MAX(resolution->n_frontends, (size_t)1), sizeof(*frontends));
        struct status_port *ports = reallocarray(resolution->ports, MAX(resolution->n_ports, (size_t)1), sizeof(*ports));

        if (frontends)
                resolution->frontends = frontends;
        if (ports)
                resolution->ports = ports;
}

static int note_services(const struct resolving *resolving)
{
        struct resolution *resolution = resolving->resolution;

        resolution->services = calloc(resolving->n_services + 1, sizeof(*resolution->services));
        if (!resolution->services)
                return -ENOMEM;
        for (; resolution->n_services < resolving->n_services; resolution->n_services++) {
                char *name = strdup(resolving->services[resolution->n_services]->metadata.name);

                if (!name)
                        return -ENOMEM;
                resolution->services[resolution->n_services] = name;
        }
        return 0;
}

int resolve(const struct resolve_input *input, struct resolution **ret_resolution)
{
        _cleanup_(resolution_freep) struct resolution *resolution = calloc(1, sizeof(*resolution));
        struct resolving resolving = { .input = input, .resolution = resolution };
        int r;

        if (!resolution)
                return -ENOMEM;
        if (!input->object->policy) { /* what its spec asks for is not known */
                *ret_resolution = TAKE_PTR(resolution);
                return 0;
        }

        resolution->can_sleep = true;
        r = check_target(&resolving);
        if (r >= 0)
                r = resolve_services(&resolving);
        if (r >= 0)
                r = note_services(&resolving);
        if (r >= 0)
                r = resolve_frontends(&resolving);
        if (r >= 0)
                r = resolve_endpoints(&resolving);
        free(resolving.services);
        if (r < 0)
                return r;
        resolution_shrink(resolution);
        *ret_resolution = TAKE_PTR(resolution);
        return 0;
}

static void frontend_done(struct status_frontend *frontend)
{
        free(frontend->backend);
        free(frontend->node);
        free(frontend->source_ranges);
}

static void endpoint_done(struct status_endpoint *endpoint)
{
        free(endpoint->node);
        free(endpoint->pod);
        free(endpoint->pod_uid);
        for (size_t i = 0; i < endpoint->n_ports; i++)
                free(endpoint->ports[i].backend);
        free(endpoint->ports);
        status_probe_done(&endpoint->probe);
}

struct resolution *resolution_free(struct resolution *resolution)
{
        if (!resolution)
                return NULL;
        for (size_t i = 0; i < resolution->n_services; i++)
                free(resolution->services[i]);
        free(resolution->services);
        for (size_t i = 0; i < resolution->n_frontends; i++)
                frontend_done(&resolution->frontends[i]);
        free(resolution->frontends);
        for (size_t i = 0; i < resolution->n_endpoints; i++)
                endpoint_done(&resolution->endpoints[i]);
        free(resolution->endpoints);
        for (size_t i = 0; i < resolution->n_nodes; i++)
                free(resolution->nodes[i]);
        free(resolution->nodes);
        free(resolution->node_pods);
        for (size_t i = 0; i < resolution->n_ports; i++)
                free(resolution->ports[i].backend);
        free(resolution->ports);
        for (size_t i = 0; i < resolution->n_problems; i++)
                free(resolution->problems[i].message);
        free(resolution);
        return NULL;
}
