/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kube/fields.h"
#include "kube/resource.h"

struct kube_service *kube_service_free(struct kube_service *service)
{
        if (!service)
                return NULL;
        kube_metadata_done(&service->metadata);
        json_decref(service->selector);
        free(service->cluster_ips);
        free(service->external_ips);
        free(service->load_balancer_ips);
        free(service->source_ranges);
        for (size_t i = 0; i < service->n_ports; i++) {
                free(service->ports[i].name);
                free(service->ports[i].target_name);
        }
        free(service->ports);
        free(service);
        return NULL;
}

static struct address *addresses_read(struct field_reader *reader, const json_t *list, size_t *ret_count, const char *field)
{
        struct address *addresses = field_allocate(reader, list, sizeof(*addresses), KUBE_SERVICE_ADDRESSES_MAX, field);
        const json_t *entry;
        size_t i, count = 0;

        if (!addresses)
                return NULL;
        json_array_foreach(list, i, entry) {
                const char *text = json_string_value(entry);

                if (!text)
                        field_fail(reader, -EBADMSG, field);
                else if (*text == '\0' || strcmp(text, "None") == 0)
                        continue;
                else if (address_parse(text, &addresses[count]) < 0)
                        field_fail(reader, -EBADMSG, field);
                else
                        count++;
        }
        *ret_count = count;
        return addresses;
}

/* clusterIPs says all; objects of before Kubernetes 1.20 have only clusterIP. */
static void cluster_ips_read(struct field_reader *reader, const json_t *spec, struct kube_service *service)
{
        const char *first = field_text(reader, spec, "clusterIP", "spec.clusterIP");
        const json_t *list = field_array(reader, spec, "clusterIPs", "spec.clusterIPs");

        service->headless = first && strcmp(first, "None") == 0;
        service->cluster_ips = addresses_read(reader, list, &service->n_cluster_ips, "spec.clusterIPs[]");
        if (service->n_cluster_ips > 0 || service->headless || !first || !*first || reader->failed < 0)
                return;
        free(service->cluster_ips);
        service->cluster_ips = calloc(1, sizeof(*service->cluster_ips));
        if (!service->cluster_ips)
                field_fail(reader, -ENOMEM, "spec.clusterIP");
        else if (address_parse(first, service->cluster_ips) < 0)
                field_fail(reader, -EBADMSG, "spec.clusterIP");
        else
                service->n_cluster_ips = 1;
}

static bool text_is(struct field_reader *reader, const json_t *spec, const char *key, const char *wanted, const char *field)
{
        const char *text = field_text(reader, spec, key, field);

        return text && strcmp(text, wanted) == 0;
}

static void load_balancer_read(struct field_reader *reader, const json_t *object, struct kube_service *service)
{
        const json_t *status = field_object(reader, object, "status", "status");
        const json_t *balancer = field_object(reader, status, "loadBalancer", "status.loadBalancer"), *entry;
        const json_t *list = field_array(reader, balancer, "ingress", "status.loadBalancer.ingress");
        size_t i;

        service->load_balancer_ips = field_allocate(reader, list, sizeof(*service->load_balancer_ips), KUBE_SERVICE_ADDRESSES_MAX,
                                                    "status.loadBalancer.ingress");
        if (!service->load_balancer_ips)
                return;
        json_array_foreach(list, i, entry) {
                const char *text = field_text(reader, entry, "ip", "status.loadBalancer.ingress[].ip");

                if (!text || !*text || text_is(reader, entry, "ipMode", "Proxy", "status.loadBalancer.ingress[].ipMode"))
                        continue;
                if (address_parse(text, &service->load_balancer_ips[service->n_load_balancer_ips]) < 0)
                        field_fail(reader, -EBADMSG, "status.loadBalancer.ingress[].ip");
                else
                        service->n_load_balancer_ips++;
        }
}

static void source_ranges_read(struct field_reader *reader, const json_t *spec, struct kube_service *service)
{
        static const char field[] = "spec.loadBalancerSourceRanges";
        const json_t *list = field_array(reader, spec, "loadBalancerSourceRanges", field), *entry;
        size_t i;

        service->source_ranges = field_allocate(reader, list, sizeof(*service->source_ranges), KUBE_SERVICE_ADDRESSES_MAX, field);
        if (!service->source_ranges)
                return;
        json_array_foreach(list, i, entry) {
                const char *text = json_string_value(entry);

                if (!text || prefix_parse(text + strspn(text, " "), &service->source_ranges[i]) < 0)
                        field_fail(reader, -EBADMSG, field);
                service->n_source_ranges++;
        }
}

static void port_read(struct field_reader *reader, const json_t *source, struct kube_service_port *port)
{
        const json_t *target = json_object_get(source, "targetPort");

        port->name = field_copy(reader, source, "name", "", "spec.ports[].name");
        port->protocol = field_protocol(reader, source, "protocol", "spec.ports[].protocol");
        port->port = (uint16_t)field_number(reader, source, "port", 0, UINT16_MAX, "spec.ports[].port");
        port->node_port = (uint16_t)field_number(reader, source, "nodePort", 0, UINT16_MAX, "spec.ports[].nodePort");
        if (port->port == 0)
                field_fail(reader, -EBADMSG, "spec.ports[].port");

        if (json_is_string(target))
                port->target_name = field_copy(reader, source, "targetPort", NULL, "spec.ports[].targetPort");
        else
                port->target_port =
                        (uint16_t)field_number(reader, source, "targetPort", port->port, UINT16_MAX, "spec.ports[].targetPort");
}

static void ports_read(struct field_reader *reader, const json_t *spec, struct kube_service *service)
{
        const json_t *list = field_array(reader, spec, "ports", "spec.ports"), *entry;
        size_t i;

        service->ports = field_allocate(reader, list, sizeof(*service->ports), KUBE_SERVICE_PORTS_MAX, "spec.ports");
        if (!service->ports)
                return;
        json_array_foreach(list, i, entry)
                port_read(reader, entry, &service->ports[service->n_ports++]);
}

static void spec_read(struct field_reader *reader, const json_t *spec, struct kube_service *service)
{
        const json_t *selector = field_object(reader, spec, "selector", "spec.selector");

        service->external_name = text_is(reader, spec, "type", "ExternalName", "spec.type");
        service->publish_not_ready = field_bool(reader, spec, "publishNotReadyAddresses", false, "spec.publishNotReadyAddresses");
        service->internal_local = text_is(reader, spec, "internalTrafficPolicy", "Local", "spec.internalTrafficPolicy");
        service->external_local = text_is(reader, spec, "externalTrafficPolicy", "Local", "spec.externalTrafficPolicy");
        service->client_affinity = text_is(reader, spec, "sessionAffinity", "ClientIP", "spec.sessionAffinity");
        service->selector = json_object_size(selector) > 0 ? json_incref((json_t *)selector) : NULL;
        cluster_ips_read(reader, spec, service);
        service->external_ips = addresses_read(reader, field_array(reader, spec, "externalIPs", "spec.externalIPs"),
                                               &service->n_external_ips, "spec.externalIPs[]");
        source_ranges_read(reader, spec, service);
        ports_read(reader, spec, service);
}

int kube_service_read(const json_t *object, struct kube_service **ret_service, const char **ret_field)
{
        _cleanup_(kube_service_freep) struct kube_service *service = calloc(1, sizeof(*service));
        struct field_reader reader = { 0 };
        const json_t *spec = field_object(&reader, object, "spec", "spec");
        int r;

        if (!service)
                return -ENOMEM;
        r = kube_metadata_read(object, &service->metadata, ret_field);
        if (r < 0)
                return r;
        spec_read(&reader, spec, service);
        load_balancer_read(&reader, object, service);
        if (reader.failed < 0) {
                *ret_field = reader.field;
                return reader.failed;
        }
        *ret_service = TAKE_PTR(service);
        return 0;
}
