/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of resolve.h know of each other; nobody else includes this. */
#pragma once

#include "controller/resolve.h"

struct resolving {
        const struct resolve_input *input;
        struct resolution *resolution;
        const struct kube_service **services; /* that count, by name */
        size_t n_services;
};

enum resolve_problem_type {
        PROBLEM_TARGET,
        PROBLEM_SERVICE_MISSING,
        PROBLEM_SERVICE_UNSUPPORTED,
        PROBLEM_PORT_UNSUPPORTED,
        PROBLEM_SERVICE_SHARED,
        PROBLEM_BOUND,
        PROBLEM_PODS_UNKNOWN,
        PROBLEM_NOT_READY_ADDRESSES,
        PROBLEM_AFFINITY,
        PROBLEM_TYPES_MAX,
};

/* Returns 0 or -ENOMEM, as all below. @reason is static. */
int resolve_problem_add(struct resolving *resolving, enum resolve_problem_type type, const char *reason, const char *format, ...)
        _printf_(4, 5);

/* Fills resolving->services. */
int resolve_services(struct resolving *resolving);
int resolve_frontends(struct resolving *resolving);
/* Endpoints, nodes and ports. */
int resolve_endpoints(struct resolving *resolving);

/* "web/http", "web/80" where the port has no name. Returns a new string, or NULL: out of memory. */
char *resolve_backend(const struct kube_service *service, const struct kube_service_port *port);

/* Whether a pod of that name may be one that the target has made: kinds of apps/v1 and Jobs name theirs after themselves. What can
 * not be told is one. */
bool resolve_is_pod_of(const struct target_reference *target, const char *pod);
