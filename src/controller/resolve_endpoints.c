/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods answer for the Services, where they run, and on which ports they serve. */
#include <string.h>

#include "controller/parking.h"
#include "controller/pod_probe.h"
#include "controller/resolve_private.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct backend {
        const struct kube_service *service;
        const struct kube_service_port *port;
        char *name;
        bool seen; /* in a slice that has endpoints */
};

struct candidate_port {
        size_t backend;
        uint16_t port;
};

/* Slices of two families or Services become ready one after another, and the pod did so before the first of them. */
struct pod {
        bool ready, serving, terminating; /* in any slice */
        UT_hash_handle hh;
        char uid[];
};

/* One address of one pod, over all slices that have it. */
struct candidate {
        const struct kube_endpoint *endpoint; /* where it was seen first */
        const struct address *address;
        struct pod *pod;
        bool foreign;
        struct candidate_port *ports;
        size_t n_ports;
        size_t turn; /* among those of its node and family that are as ready as it */
        UT_hash_handle hh;
        char key[]; /* the address, and the pod's uid */
};

struct gathering {
        struct resolving *resolving;
        struct backend *backends;
        size_t n_backends;
        struct pod *pods;
        struct candidate *candidates;
        size_t others, foreign; /* endpoints that are no pods; pods that are not the target's */
        size_t unplaced;        /* pods whose node is not told */
        const char *unreadable; /* a slice, or NULL */
        bool too_many_ports;
};

static void gathering_done(struct gathering *gathering)
{
        struct candidate *candidate, *next;
        struct pod *pod, *next_pod;

        HASH_ITER(hh, gathering->candidates, candidate, next) {
                HASH_DEL(gathering->candidates, candidate);
                free(candidate->ports);
                free(candidate);
        }
        HASH_ITER(hh, gathering->pods, pod, next_pod) {
                HASH_DEL(gathering->pods, pod);
                free(pod);
        }
        for (size_t i = 0; i < gathering->n_backends; i++)
                free(gathering->backends[i].name);
        free(gathering->backends);
}

static int backends_make(struct gathering *gathering)
{
        const struct resolving *resolving = gathering->resolving;
        size_t count = 0;

        for (size_t i = 0; i < resolving->n_services; i++)
                count += resolving->services[i]->n_ports;
        gathering->backends = calloc(count + 1, sizeof(*gathering->backends));
        if (!gathering->backends)
                return -ENOMEM;
        for (size_t i = 0; i < resolving->n_services; i++)
                for (size_t j = 0; j < resolving->services[i]->n_ports; j++) {
                        struct backend *backend = &gathering->backends[gathering->n_backends];

                        backend->service = resolving->services[i];
                        backend->port = &backend->service->ports[j];
                        if (backend->port->protocol == 0)
                                continue;
                        backend->name = resolve_backend(backend->service, backend->port);
                        if (!backend->name)
                                return -ENOMEM;
                        gathering->n_backends++;
                }
        return 0;
}

static struct backend *backend_find(const struct gathering *gathering, const struct kube_service *service,
                                    const struct kube_slice_port *port)
{
        for (size_t i = 0; i < gathering->n_backends; i++) {
                struct backend *backend = &gathering->backends[i];

                if (backend->service == service && backend->port->protocol == port->protocol &&
                    strcmp(backend->port->name, port->name) == 0)
                        return backend;
        }
        return NULL;
}

static const struct resolve_probe *probe_find(const struct resolve_input *input, const char *pod_uid)
{
        for (size_t i = 0; i < input->n_probes; i++)
                if (strcmp(input->probes[i].pod_uid, pod_uid) == 0)
                        return &input->probes[i];
        return NULL;
}

static int pod_get(struct gathering *gathering, const char *uid, struct pod **ret_pod)
{
        size_t length = strlen(uid);
        struct pod *pod;

        HASH_FIND(hh, gathering->pods, uid, length, pod);
        if (!pod) {
                pod = calloc(1, sizeof(*pod) + length);
                if (!pod)
                        return -ENOMEM;
                memcpy(pod->uid, uid, length);
                HASH_ADD(hh, gathering->pods, uid, length, pod);
                if (!pod->hh.tbl) {
                        free(pod);
                        return -ENOMEM;
                }
        }
        *ret_pod = pod;
        return 0;
}

static int candidate_get(struct gathering *gathering, const struct kube_endpoint *endpoint, struct candidate **ret_candidate)
{
        const struct address *address = &endpoint->addresses[0]; /* all that kube-proxy looks at, too */
        size_t uid_length = strlen(endpoint->pod_uid), length = sizeof(*address) + uid_length;
        struct candidate *candidate = calloc(1, sizeof(*candidate) + length), *known;
        const struct policy *policy = gathering->resolving->input->object->policy;

        if (!candidate)
                return -ENOMEM;
        memcpy(candidate->key, address, sizeof(*address));
        memcpy(candidate->key + sizeof(*address), endpoint->pod_uid, uid_length);
        HASH_FIND(hh, gathering->candidates, candidate->key, length, known);
        if (known) {
                free(candidate);
                *ret_candidate = known;
                return 0;
        }
        HASH_ADD(hh, gathering->candidates, key, length, candidate);
        if (!candidate->hh.tbl) {
                free(candidate);
                return -ENOMEM;
        }
        candidate->endpoint = endpoint;
        candidate->address = address;
        candidate->foreign = !resolve_is_pod_of(&policy->cluster.reference, endpoint->pod);
        gathering->foreign += candidate->foreign;
        *ret_candidate = candidate;
        return 0;
}

static int candidate_add_port(struct gathering *gathering, struct candidate *candidate, size_t backend, uint16_t port)
{
        struct candidate_port *ports;

        for (size_t i = 0; i < candidate->n_ports; i++)
                if (candidate->ports[i].backend == backend)
                        return 0;
        if (candidate->n_ports == STATUS_PORTS_MAX) {
                gathering->too_many_ports = true;
                return 0;
        }
        ports = reallocarray(candidate->ports, candidate->n_ports + 1, sizeof(*ports));
        if (!ports)
                return -ENOMEM;
        candidate->ports = ports;
        ports[candidate->n_ports++] = (struct candidate_port){ .backend = backend, .port = port };
        return 0;
}

static int endpoint_gather(struct gathering *gathering, const struct kube_service *service, const struct kube_endpoint_slice *slice,
                           const struct kube_endpoint *endpoint)
{
        struct candidate *candidate;
        struct pod *pod;
        int r;

        if (endpoint->n_addresses == 0)
                return 0;
        if (!endpoint->pod || !endpoint->pod_uid) {
                gathering->others++;
                return 0;
        }
        r = candidate_get(gathering, endpoint, &candidate);
        if (r >= 0)
                r = pod_get(gathering, endpoint->pod_uid, &pod);
        if (r < 0)
                return r;
        candidate->pod = pod;
        /* With publishNotReadyAddresses "ready" is always true, and "serving" says whether the pod is. */
        pod->ready = pod->ready || (service->publish_not_ready ? endpoint->serving : endpoint->ready);
        pod->serving = pod->serving || endpoint->serving;
        pod->terminating = pod->terminating || endpoint->terminating;
        for (size_t i = 0; r >= 0 && i < slice->n_ports; i++) {
                struct backend *backend = backend_find(gathering, service, &slice->ports[i]);

                if (backend)
                        r = candidate_add_port(gathering, candidate, (size_t)(backend - gathering->backends), slice->ports[i].port);
        }
        return r;
}

static const struct kube_service *slice_service(const struct resolving *resolving, const struct kube_endpoint_slice *slice)
{
        if (!slice->service || slice->fqdn || (slice->managed_by && strcmp(slice->managed_by, PARKING_MANAGER) == 0))
                return NULL;
        for (size_t i = 0; i < resolving->n_services; i++)
                if (strcmp(resolving->services[i]->metadata.name, slice->service) == 0)
                        return resolving->services[i];
        return NULL;
}

static int slices_gather(struct gathering *gathering)
{
        const struct resolve_input *input = gathering->resolving->input;
        int r = 0;

        for (size_t i = 0; i < input->n_slices; i++) {
                const struct kube_endpoint_slice *slice = input->slices[i];
                const struct kube_service *service = slice_service(gathering->resolving, slice);

                if (slice->unreadable)
                        gathering->unreadable = slice->metadata.name;
                for (size_t j = 0; service && r >= 0 && j < slice->n_endpoints; j++)
                        r = endpoint_gather(gathering, service, slice, &slice->endpoints[j]);
        }
        return r;
}

static int compare_text(const char *a, const char *b)
{
        return strcmp(a ? a : "", b ? b : "");
}

static int by_node(const void *a, const void *b)
{
        const struct candidate *left = *(struct candidate *const *)a, *right = *(struct candidate *const *)b;
        int difference = right->pod->ready - left->pod->ready;

        if (difference == 0)
                difference = compare_text(left->endpoint->node, right->endpoint->node);
        if (difference == 0)
                difference = address_is_ipv4(right->address) - address_is_ipv4(left->address);
        if (difference == 0)
                difference = strcmp(left->endpoint->pod_uid, right->endpoint->pod_uid);
        return difference ? difference : memcmp(left->address, right->address, sizeof(*left->address));
}

static int by_turn(const void *a, const void *b)
{
        const struct candidate *left = *(struct candidate *const *)a, *right = *(struct candidate *const *)b;

        if (left->pod->ready != right->pod->ready)
                return right->pod->ready - left->pod->ready;
        if (left->turn != right->turn)
                return left->turn < right->turn ? -1 : 1;
        return by_node(a, b);
}

/* Ready ones first, and of those one of each node and family before the second of any. */
static void candidates_order(struct candidate **list, size_t n)
{
        qsort(list, n, sizeof(*list), by_node);
        for (size_t i = 1; i < n; i++) {
                const struct candidate *last = list[i - 1];

                if (last->pod->ready == list[i]->pod->ready && compare_text(last->endpoint->node, list[i]->endpoint->node) == 0 &&
                    address_is_ipv4(last->address) == address_is_ipv4(list[i]->address))
                        list[i]->turn = last->turn + 1;
        }
        qsort(list, n, sizeof(*list), by_turn);
}

static int text_copy(const char *text, char **ret_copy)
{
        *ret_copy = text ? strdup(text) : NULL;
        return text && !*ret_copy ? -ENOMEM : 0;
}

static int ports_fill(const struct gathering *gathering, const struct candidate *candidate, struct status_endpoint *endpoint)
{
        endpoint->ports = calloc(candidate->n_ports + 1, sizeof(*endpoint->ports));
        if (!endpoint->ports)
                return -ENOMEM;
        for (size_t i = 0; i < gathering->n_backends; i++)
                for (size_t j = 0; j < candidate->n_ports; j++) {
                        struct status_port *port = &endpoint->ports[endpoint->n_ports];

                        if (candidate->ports[j].backend != i)
                                continue;
                        port->port = candidate->ports[j].port;
                        port->protocol = gathering->backends[i].port->protocol;
                        if (text_copy(gathering->backends[i].name, &port->backend) < 0)
                                return -ENOMEM;
                        endpoint->n_ports++;
                }
        return 0;
}

static int endpoint_fill(const struct gathering *gathering, const struct candidate *candidate, struct status_endpoint *endpoint)
{
        const struct resolve_input *input = gathering->resolving->input;
        const struct resolve_probe *probe = probe_find(input, candidate->endpoint->pod_uid);
        int r = text_copy(candidate->endpoint->node, &endpoint->node);

        endpoint->address = *candidate->address;
        endpoint->ready = candidate->pod->ready;
        if (r >= 0)
                r = text_copy(candidate->endpoint->pod, &endpoint->pod);
        if (r >= 0)
                r = text_copy(candidate->endpoint->pod_uid, &endpoint->pod_uid);
        if (r >= 0)
                r = ports_fill(gathering, candidate, endpoint);
        if (r < 0 || !probe || input->object->policy->cluster.readiness == READINESS_READY)
                return r;
        endpoint->started_realtime_ns = probe->started_realtime_ns;
        return status_probe_copy(&probe->probe, &endpoint->probe);
}

static int endpoints_fill(struct gathering *gathering)
{
        const struct leftovers *leftovers = gathering->resolving->input->leftovers;
        struct resolution *resolution = gathering->resolving->resolution;
        _cleanup_(freep) struct candidate **list = calloc(HASH_COUNT(gathering->candidates) + 1, sizeof(*list));
        struct candidate *candidate, *next;
        size_t n = 0;
        int r = 0;

        if (!list)
                return -ENOMEM;
        HASH_ITER(hh, gathering->candidates, candidate, next) {
                if (candidate->pod->terminating || candidate->foreign || leftovers_have(leftovers, candidate->endpoint->pod_uid))
                        continue;
                resolution->n_ready += candidate->pod->ready;
                list[n++] = candidate;
        }
        candidates_order(list, n);
        n = MIN(n, (size_t)STATUS_ENDPOINTS_MAX);
        resolution->endpoints = calloc(n + 1, sizeof(*resolution->endpoints));
        if (!resolution->endpoints)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < n; i++) {
                resolution->n_endpoints++;
                r = endpoint_fill(gathering, list[i], &resolution->endpoints[i]);
        }
        return r;
}

/* A terminating pod may be at its last answers, as long as it says that it serves; one on a node that is gone does not. */
static bool runs(const struct candidate *candidate)
{
        return !candidate->foreign && (!candidate->pod->terminating || candidate->pod->serving);
}

static int by_node_and_pod(const void *a, const void *b)
{
        const struct kube_endpoint *left = (*(struct candidate *const *)a)->endpoint,
                                   *right = (*(struct candidate *const *)b)->endpoint;
        int difference = strcmp(left->node, right->node);

        return difference ? difference : strcmp(left->pod_uid, right->pod_uid);
}

/* The nodes and pods of a list in that order. Returns how many nodes there are, or -ENOMEM. */
static int nodes_count(struct candidate *const *list, size_t n, struct resolution *resolution)
{
        int different = 0;

        for (size_t i = 0; i < n; i++) {
                const struct kube_endpoint *endpoint = list[i]->endpoint, *last = i > 0 ? list[i - 1]->endpoint : NULL;
                bool other_node = !last || strcmp(endpoint->node, last->node) != 0;
                bool other_pod = other_node || strcmp(endpoint->pod_uid, last->pod_uid) != 0;

                different += other_node;
                resolution->n_pods += other_pod && !list[i]->pod->terminating;
                if (different > RESOLVE_NODES_MAX)
                        continue;
                if (other_node) {
                        resolution->nodes[resolution->n_nodes] = strdup(endpoint->node);
                        if (!resolution->nodes[resolution->n_nodes])
                                return -ENOMEM;
                        resolution->n_nodes++;
                }
                resolution->node_pods[resolution->n_nodes - 1] += other_pod;
        }
        return different;
}

static int nodes_fill(struct gathering *gathering)
{
        struct resolution *resolution = gathering->resolving->resolution;
        _cleanup_(freep) struct candidate **list = calloc(HASH_COUNT(gathering->candidates) + 1, sizeof(*list));
        struct candidate *candidate, *next;
        size_t n = 0;
        int different;

        if (!list)
                return -ENOMEM;
        HASH_ITER(hh, gathering->candidates, candidate, next) {
                if (runs(candidate) && candidate->endpoint->node)
                        list[n++] = candidate;
                else if (runs(candidate))
                        gathering->unplaced++;
        }
        qsort(list, n, sizeof(*list), by_node_and_pod);
        resolution->nodes = calloc(n + 1, sizeof(*resolution->nodes));
        resolution->node_pods = calloc(n + 1, sizeof(*resolution->node_pods));
        if (!resolution->nodes || !resolution->node_pods)
                return -ENOMEM;
        different = nodes_count(list, n, resolution);
        if (different <= RESOLVE_NODES_MAX)
                return MIN(different, 0);
        return resolve_problem_add(gathering->resolving, PROBLEM_BOUND, "Nodes",
                                   "its pods run on %d nodes, more than the %d of which lull can keep count for one policy",
                                   different, RESOLVE_NODES_MAX);
}

static int port_fill(struct gathering *gathering, const struct backend *backend, uint16_t number)
{
        struct resolution *resolution = gathering->resolving->resolution;
        struct status_port *port = &resolution->ports[resolution->n_ports];

        for (size_t i = 0; i < resolution->n_ports; i++) {
                const struct status_port *other = &resolution->ports[i];

                if (other->port == number && other->backend && strcmp(other->backend, backend->name) == 0)
                        return 0;
        }
        if (resolution->n_ports == STATUS_PORTS_MAX) {
                gathering->too_many_ports = true;
                return 0;
        }
        *port = (struct status_port){ .port = number, .protocol = backend->port->protocol, .backend = strdup(backend->name) };
        if (!port->backend)
                return -ENOMEM;
        resolution->n_ports++;
        return 0;
}

/* A named port may have other numbers in other pods. */
static int seen_ports_fill(struct gathering *gathering, size_t index)
{
        struct backend *backend = &gathering->backends[index];
        struct candidate *candidate, *next;
        int r = 0;

        HASH_ITER(hh, gathering->candidates, candidate, next)
                for (size_t i = 0; r >= 0 && !candidate->foreign && i < candidate->n_ports; i++)
                        if (candidate->ports[i].backend == index) {
                                backend->seen = true;
                                r = port_fill(gathering, backend, candidate->ports[i].port);
                        }
        return r;
}

/* Without endpoints slices have no ports. */
static int known_ports_fill(struct gathering *gathering, const struct backend *backend)
{
        const struct scale_to_zero_status *status = &gathering->resolving->input->object->status;
        int r = 0;

        if (backend->port->target_port != 0)
                return port_fill(gathering, backend, backend->port->target_port);
        for (size_t i = 0; r >= 0 && i < status->n_ports; i++)
                if (strcmp(status->ports[i].backend, backend->name) == 0)
                        r = port_fill(gathering, backend, status->ports[i].port);
        return r;
}

static int by_backend_and_number(const void *a, const void *b)
{
        const struct status_port *left = a, *right = b;
        int difference = strcmp(left->backend, right->backend);

        return difference ? difference : left->port - right->port;
}

static int ports_fill_all(struct gathering *gathering)
{
        struct resolution *resolution = gathering->resolving->resolution;
        int r = 0;

        resolution->ports = calloc(STATUS_PORTS_MAX, sizeof(*resolution->ports));
        if (!resolution->ports)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < gathering->n_backends; i++) {
                r = seen_ports_fill(gathering, i);
                if (r >= 0 && !gathering->backends[i].seen)
                        r = known_ports_fill(gathering, &gathering->backends[i]);
        }
        qsort(resolution->ports, resolution->n_ports, sizeof(*resolution->ports), by_backend_and_number);
        if (r < 0 || !gathering->too_many_ports)
                return r;
        return resolve_problem_add(
                gathering->resolving, PROBLEM_BOUND, "Ports",
                "its Services have more than the %d ports of which lull can keep count for one policy; make several "
                "policies of them",
                STATUS_PORTS_MAX);
}

static int check_shared(struct gathering *gathering)
{
        int r = 0;

        if (gathering->foreign > 0)
                r = resolve_problem_add(
                        gathering->resolving, PROBLEM_SERVICE_SHARED, "OtherPods",
                        "its Services also lead to %zu pods that are not the target's, which would be cut off while it "
                        "sleeps; let their selectors tell the two apart",
                        gathering->foreign);
        if (r >= 0 && gathering->others > 0)
                r = resolve_problem_add(
                        gathering->resolving, PROBLEM_SERVICE_SHARED, "OtherPods",
                        "its Services also lead to %zu endpoints that are no pods, which would be cut off while it sleeps; "
                        "take them out of the EndpointSlices",
                        gathering->others);
        return r;
}

static int check_known(struct gathering *gathering)
{
        int r = 0;

        if (gathering->unplaced > 0)
                r = resolve_problem_add(
                        gathering->resolving, PROBLEM_PODS_UNKNOWN, "NoNode",
                        "EndpointSlices do not tell on which node %zu of its pods run, so nobody knows whether they "
                        "are idle; write nodeName there",
                        gathering->unplaced);
        if (r >= 0 && gathering->unreadable)
                r = resolve_problem_add(
                        gathering->resolving, PROBLEM_PODS_UNKNOWN, "SliceUnreadable",
                        "EndpointSlice \"%s\" cannot be read and may name pods of it; the controller's log tells what "
                        "is wrong with it",
                        gathering->unreadable);
        return r;
}

int resolve_endpoints(struct resolving *resolving)
{
        _cleanup_(gathering_done) struct gathering gathering = { .resolving = resolving };
        int r = backends_make(&gathering);

        if (r >= 0)
                r = slices_gather(&gathering);
        if (r >= 0)
                r = endpoints_fill(&gathering);
        if (r >= 0)
                r = nodes_fill(&gathering);
        if (r >= 0)
                r = ports_fill_all(&gathering);
        if (r >= 0)
                r = check_shared(&gathering);
        return r < 0 ? r : check_known(&gathering);
}
