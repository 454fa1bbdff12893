/* SPDX-License-Identifier: Apache-2.0 */
/* The EndpointSlices of parking.h: what they are to be, and what to do about those that are not. */
#include <netinet/in.h>
#include <string.h>

#include "controller/parking.h"
#include "controller/resolve_private.h"
#include "kube/patch.h"

/* One slice: those entries of the plan that belong to one Service and family. */
struct wanted {
        const struct kube_service *service;
        bool ipv4;
        char *name;
        json_t *endpoints, *ports;
};

static void wanted_done(struct wanted *wanted)
{
        free(wanted->name);
        json_decref(wanted->endpoints);
        json_decref(wanted->ports);
        *wanted = (struct wanted){ 0 };
}

void parking_step_done(struct parking_step *step)
{
        free(step->name);
        json_decref(step->body);
        *step = (struct parking_step){ 0 };
}

static int endpoint_append(json_t *list, const struct resolve_parking *entry)
{
        char address[ADDRESS_TEXT_MAX];
        json_t *endpoint = json_pack("{s:[s], s:{s:b, s:b, s:b}, s:s}", "addresses", address_format(&entry->address, address),
                                     "conditions", "ready", true, "serving", true, "terminating", false, "nodeName", entry->node);

        return json_array_append_new(list, endpoint);
}

static int port_append(json_t *list, const struct kube_service_port *port, uint16_t number)
{
        return json_array_append_new(list, json_pack("{s:s, s:s, s:i}", "name", port->name, "protocol",
                                                     port->protocol == IPPROTO_UDP ? "UDP" : "TCP", "port", (int)number));
}

/* The nodes are the same for all ports of a Service and family: the first port tells them. */
static int port_collect(const struct parking_plan *plan, const struct kube_service_port *port, const char *backend,
                        struct wanted *wanted)
{
        bool first = json_array_size(wanted->ports) == 0;
        const struct resolve_parking *found = NULL;

        for (size_t i = 0; i < plan->n_entries; i++) {
                const struct resolve_parking *entry = &plan->entries[i];

                if (strcmp(entry->backend, backend) != 0 || address_is_ipv4(&entry->address) != wanted->ipv4)
                        continue;
                found = entry;
                if (first && endpoint_append(wanted->endpoints, entry) < 0)
                        return -ENOMEM;
        }
        return found && port_append(wanted->ports, port, found->port) < 0 ? -ENOMEM : 0;
}

/* Without ports there is to be none. */
static int wanted_make(const struct kube_service *service, bool ipv4, const struct parking_plan *plan, struct wanted *ret_wanted)
{
        struct wanted wanted = { .service = service, .ipv4 = ipv4, .endpoints = json_array(), .ports = json_array() };
        int r = wanted.endpoints && wanted.ports ? 0 : -ENOMEM;

        if (asprintf(&wanted.name, "%s-lull-ipv%d", service->metadata.name, ipv4 ? 4 : 6) < 0) {
                wanted.name = NULL;
                r = -ENOMEM;
        }
        for (size_t i = 0; r >= 0 && i < service->n_ports; i++) {
                _cleanup_(freep) char *backend = resolve_backend(service, &service->ports[i]);

                r = backend ? port_collect(plan, &service->ports[i], backend, &wanted) : -ENOMEM;
        }
        if (r < 0) {
                wanted_done(&wanted);
                return r;
        }
        *ret_wanted = wanted;
        return 0;
}

bool parking_is_own(const struct scale_to_zero *object, const struct kube_endpoint_slice *slice)
{
        return slice->managed_by && strcmp(slice->managed_by, PARKING_MANAGER) == 0 && slice->owner_uid &&
               strcmp(slice->owner_uid, object->metadata.uid) == 0;
}

static bool is_orphan(const struct kube_endpoint_slice *slice)
{
        return slice->managed_by && strcmp(slice->managed_by, PARKING_MANAGER) == 0 && !slice->owner_uid;
}

static bool endpoint_is(const struct kube_endpoint *endpoint, const json_t *wanted)
{
        const char *address = json_string_value(json_array_get(json_object_get(wanted, "addresses"), 0));
        const char *node = json_string_value(json_object_get(wanted, "nodeName"));
        char text[ADDRESS_TEXT_MAX];

        return endpoint->n_addresses == 1 && endpoint->ready && !endpoint->terminating && endpoint->node &&
               strcmp(endpoint->node, node) == 0 && strcmp(address_format(&endpoint->addresses[0], text), address) == 0;
}

static bool port_is(const struct kube_slice_port *port, const json_t *wanted)
{
        const char *protocol = json_string_value(json_object_get(wanted, "protocol"));

        return strcmp(port->name, json_string_value(json_object_get(wanted, "name"))) == 0 &&
               port->port == json_integer_value(json_object_get(wanted, "port")) &&
               port->protocol == (strcmp(protocol, "UDP") == 0 ? IPPROTO_UDP : IPPROTO_TCP);
}

static bool slice_is(const struct kube_endpoint_slice *slice, const struct wanted *wanted)
{
        if (slice->n_endpoints != json_array_size(wanted->endpoints) || slice->n_ports != json_array_size(wanted->ports))
                return false;
        for (size_t i = 0; i < slice->n_endpoints; i++)
                if (!endpoint_is(&slice->endpoints[i], json_array_get(wanted->endpoints, i)))
                        return false;
        for (size_t i = 0; i < slice->n_ports; i++)
                if (!port_is(&slice->ports[i], json_array_get(wanted->ports, i)))
                        return false;
        return true;
}

static json_t *owners(const struct scale_to_zero *object)
{
        return json_pack("[{s:s, s:s, s:s, s:s, s:b}]", "apiVersion", SCALE_TO_ZERO_API, "kind", "ScaleToZero", "name",
                         object->metadata.name, "uid", object->metadata.uid, "controller", true);
}

static json_t *creation(const struct scale_to_zero *object, const struct wanted *wanted)
{
        return json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}, s:o}, s:s, s:O, s:O}", "apiVersion", "discovery.k8s.io/v1", "kind",
                         "EndpointSlice", "metadata", "name", wanted->name, "namespace", object->metadata.namespace, "labels",
                         "kubernetes.io/service-name", wanted->service->metadata.name, "endpointslice.kubernetes.io/managed-by",
                         PARKING_MANAGER, "ownerReferences", owners(object), "addressType", wanted->ipv4 ? "IPv4" : "IPv6",
                         "endpoints", wanted->endpoints, "ports", wanted->ports);
}

static json_t *change(const struct scale_to_zero *object, const struct kube_endpoint_slice *slice, const struct wanted *wanted)
{
        return json_pack("{s:{s:s, s:o}, s:O, s:O}", "metadata", "resourceVersion", slice->metadata.resource_version,
                         "ownerReferences", owners(object), "endpoints", wanted->endpoints, "ports", wanted->ports);
}

static int step_make(enum parking_action action, const char *name, json_t *body, struct parking_step *ret_step)
{
        struct parking_step step = { .action = action, .name = strdup(name), .body = body };

        if (!step.name || (action != PARKING_DELETE && !body)) {
                parking_step_done(&step);
                return -ENOMEM;
        }
        *ret_step = step;
        return 1;
}

struct looking {
        const struct scale_to_zero *object;
        const struct kube_endpoint_slice *const *slices;
        size_t n_slices;
        bool *kept; /* each slice */
};

/* Returns 1 with a step, 0 when the slice is as it is to be, or -ENOMEM. */
static int wanted_compare(const struct looking *looking, const struct wanted *wanted, struct parking_step *ret_step)
{
        for (size_t i = 0; i < looking->n_slices; i++) {
                const struct kube_endpoint_slice *slice = looking->slices[i];

                bool own = parking_is_own(looking->object, slice);

                if ((!own && !is_orphan(slice)) || strcmp(slice->metadata.name, wanted->name) != 0)
                        continue;
                looking->kept[i] = true;
                if (slice->metadata.deleting || (own && slice_is(slice, wanted)))
                        return 0;
                return step_make(PARKING_UPDATE, wanted->name, change(looking->object, slice, wanted), ret_step);
        }
        return step_make(PARKING_CREATE, wanted->name, creation(looking->object, wanted), ret_step);
}

static int service_compare(const struct looking *looking, const struct kube_service *service, const struct parking_plan *plan,
                           struct parking_step *ret_step)
{
        int r = 0;

        for (int ipv4 = 1; r == 0 && ipv4 >= 0; ipv4--) {
                struct wanted wanted;

                r = wanted_make(service, ipv4, plan, &wanted);
                if (r < 0)
                        return r;
                if (json_array_size(wanted.ports) > 0)
                        r = wanted_compare(looking, &wanted, ret_step);
                wanted_done(&wanted);
        }
        return r;
}

/* What is not wanted any more goes last, so that clients always find something. */
static int rest_compare(const struct looking *looking, struct parking_step *ret_step)
{
        for (size_t i = 0; i < looking->n_slices; i++) {
                const struct kube_endpoint_slice *slice = looking->slices[i];

                if (!looking->kept[i] && parking_is_own(looking->object, slice) && !slice->metadata.deleting)
                        return step_make(PARKING_DELETE, slice->metadata.name, NULL, ret_step);
        }
        return 0;
}

int parking_next(const struct scale_to_zero *object, const struct parking_services *services, const struct parking_plan *plan,
                 const struct kube_endpoint_slice *const *slices, size_t n_slices, struct parking_step *ret_step)
{
        _cleanup_(freep) bool *kept = calloc(n_slices + 1, sizeof(*kept));
        const struct looking looking = { .object = object, .slices = slices, .n_slices = n_slices, .kept = kept };
        struct parking_step step = { .action = PARKING_NOTHING };
        int r = 0;

        if (!kept)
                return -ENOMEM;
        for (size_t i = 0; plan && r == 0 && i < services->n_services; i++)
                r = service_compare(&looking, services->services[i], plan, &step);
        if (r == 0)
                r = rest_compare(&looking, &step);
        if (r < 0)
                return r;
        *ret_step = step;
        return 0;
}

int parking_step_start(struct kube_client *client, const char *namespace, const struct parking_step *step,
                       const struct kube_request_callbacks *callbacks, void *userdata, struct kube_request **ret_request)
{
        const struct kube_object collection = { .api = "discovery.k8s.io/v1",
                                                .resource = "endpointslices",
                                                .namespace = namespace };
        struct kube_object slice = collection;

        slice.name = step->name;
        switch (step->action) {
        case PARKING_CREATE:
                return kube_create(client, &collection, step->body, NULL, callbacks, userdata, ret_request);
        case PARKING_UPDATE:
                return kube_patch(client, &slice, KUBE_PATCH_MERGE, step->body, NULL, callbacks, userdata, ret_request);
        case PARKING_DELETE:
                return kube_delete(client, &slice, NULL, callbacks, userdata, ret_request);
        case PARKING_NOTHING:
                break;
        }
        return -EINVAL;
}
