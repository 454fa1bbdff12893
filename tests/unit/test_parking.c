/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports and nodes a sleeping policy is parked on, and what becomes of its EndpointSlices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "controller/parking.h"
#include "unit/quoted_json.h"

static struct address address(const char *text)
{
        struct address parsed;

        assert_int_equal(address_parse(text, &parsed), 0);
        return parsed;
}

/* Ports */

static uint16_t assigned(struct parking_ports *ports, const char *policy, const char *backend)
{
        uint16_t port;

        assert_int_equal(parking_ports_assign(ports, policy, backend, &port), 0);
        return port;
}

static void no_two_backends_have_one_port(void **state)
{
        _cleanup_(parking_ports_freep) struct parking_ports *ports = NULL;
        bool seen[16] = { false };
        uint16_t port;
        char policy[16];

        assert_int_equal(parking_ports_new(0, 1, &ports), -EINVAL);
        assert_int_equal(parking_ports_new(2, 1, &ports), -EINVAL);
        assert_int_equal(parking_ports_new(42000, 42015, &ports), 0);
        for (unsigned i = 0; i < 16; i++) {
                snprintf(policy, sizeof(policy), "shop/web%u", i / 2);
                port = assigned(ports, policy, i % 2 ? "web/http" : "web/dns");
                assert_in_range(port, 42000, 42015);
                assert_false(seen[port - 42000]);
                seen[port - 42000] = true;
        }
        assert_int_equal(parking_ports_assign(ports, "shop/other", "web/http", &port), -ENOSPC);
        parking_ports_release(ports, "shop/web3");
        assert_int_equal(parking_ports_assign(ports, "shop/other", "web/http", &port), 0);
        parking_ports_release(ports, "shop/never");
}

static void a_port_stays_and_comes_back(void **state)
{
        _cleanup_(parking_ports_freep) struct parking_ports *ports = NULL, *again = NULL;
        uint16_t port;

        assert_int_equal(parking_ports_new(42000, 42999, &ports), 0);
        port = assigned(ports, "shop/web", "web/http");
        assert_int_equal(assigned(ports, "shop/web", "web/http"), port);
        assert_int_not_equal(assigned(ports, "shop/web", "web/dns"), port);
        assert_int_equal(parking_ports_new(42000, 42999, &again), 0);
        assert_int_equal(assigned(again, "shop/web", "web/http"), port);
}

static void what_a_status_says_counts_first(void **state)
{
        _cleanup_(parking_ports_freep) struct parking_ports *ports = NULL;
        struct status_frontend frontends[] = {
                { .origin = FRONTEND_CLUSTER_IP, .frontend.port = 42001, .backend = (char *)"web/http" },
                { .origin = FRONTEND_PARKING, .frontend.port = 42003, .backend = (char *)"web/http" },
                { .origin = FRONTEND_PARKING, .frontend.port = 42003, .backend = (char *)"web/http" }, /* another node's */
                { .origin = FRONTEND_PARKING, .frontend.port = 80, .backend = (char *)"web/dns" },
        };
        const struct scale_to_zero_status status = { .frontends = frontends, .n_frontends = ELEMENTSOF(frontends) };
        struct status_frontend moved = { .origin = FRONTEND_PARKING, .frontend.port = 42005, .backend = (char *)"web/http" };
        const struct scale_to_zero_status later = { .frontends = &moved, .n_frontends = 1 };

        assert_int_equal(parking_ports_new(42000, 42009, &ports), 0);
        assert_int_equal(parking_ports_learn(ports, "shop/web", &status), 0);
        assert_int_equal(parking_ports_learn(ports, "shop/web", &status), 0);
        assert_int_equal(assigned(ports, "shop/web", "web/http"), 42003);
        assert_in_range(assigned(ports, "shop/web", "web/dns"), 42000, 42009); /* its own was out of range */

        assert_int_equal(parking_ports_learn(ports, "shop/late", &status), 0); /* taken before */
        assert_int_not_equal(assigned(ports, "shop/late", "web/http"), 42003);
        parking_ports_release(ports, "shop/late");
        assert_int_equal(parking_ports_learn(ports, "shop/web", &later), 0); /* the leader has moved it */
        assert_int_equal(assigned(ports, "shop/web", "web/http"), 42005);
}

/* Plans and slices */

struct fixture {
        struct kube_service *service;
        const struct kube_service *services[1];
        struct status_frontend frontends[4];
        struct resolution resolution;
        struct parking_services used;
        struct parking_ports *ports;
        struct address addresses[2][2];
        struct parking_node nodes[2];
        struct scale_to_zero object;
        struct parking_plan plan;
        struct kube_endpoint_slice *slices[4];
        size_t n_slices;
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        json_t *service =
                json("{'metadata':{'namespace':'shop','name':'web'},'spec':{'clusterIPs':['10.0.0.1','fd00::1'],'ports':["
                     "{'name':'http','port':80},{'port':53,'protocol':'UDP'},{'name':'sig','port':9,'protocol':'SCTP'}]}}");
        const char *field;

        assert_int_equal(kube_service_read(service, &fixture->service, &field), 0);
        json_decref(service);
        fixture->services[0] = fixture->service;
        for (size_t i = 0; i < 4; i++) {
                fixture->frontends[i].origin = FRONTEND_CLUSTER_IP;
                fixture->frontends[i].frontend.address = address(i % 2 ? "fd00::1" : "10.0.0.1");
                fixture->frontends[i].backend = (char *)(i / 2 ? "web/53" : "web/http");
        }
        fixture->resolution = (struct resolution){ .frontends = fixture->frontends, .n_frontends = 4 };
        fixture->used = (struct parking_services){ fixture->services, 1, &fixture->resolution };
        fixture->addresses[0][0] = address("192.0.2.1");
        fixture->addresses[0][1] = address("fd77::1");
        fixture->addresses[1][0] = address("192.0.2.2");
        fixture->nodes[0] = (struct parking_node){ "n1", fixture->addresses[0], 2 };
        fixture->nodes[1] = (struct parking_node){ "n2", fixture->addresses[1], 1 };
        fixture->object.metadata =
                (struct kube_metadata){ .namespace = (char *)"shop", .name = (char *)"web", .uid = (char *)"p1" };
        assert_int_equal(parking_ports_new(42000, 42999, &fixture->ports), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < fixture->n_slices; i++)
                kube_endpoint_slice_free(fixture->slices[i]);
        parking_plan_done(&fixture->plan);
        parking_ports_free(fixture->ports);
        kube_service_free(fixture->service);
        free(fixture);
        return 0;
}

static void plan(struct fixture *fixture)
{
        parking_plan_done(&fixture->plan);
        assert_int_equal(parking_plan(fixture->ports, "shop/web", &fixture->used, fixture->nodes, ELEMENTSOF(fixture->nodes),
                                      &fixture->plan),
                         0);
}

static void every_port_and_family_is_parked_on_the_nodes(void **state)
{
        struct fixture *fixture = *state;
        const struct resolve_parking *entries;

        plan(fixture);
        entries = fixture->plan.entries;
        assert_null(fixture->plan.reason);
        assert_int_equal(fixture->plan.n_entries, 6); /* two ports, two IPv4 addresses and one IPv6 */
        assert_string_equal(entries[0].node, "n1");
        assert_string_equal(entries[1].node, "n2");
        assert_string_equal(entries[0].backend, "web/http");
        assert_int_equal(entries[0].port, entries[1].port);
        assert_int_equal(entries[0].port, entries[2].port);
        assert_true(address_equal(&entries[2].address, &fixture->addresses[0][1]));
        assert_string_equal(entries[3].backend, "web/53");
        assert_int_equal(entries[3].protocol, IPPROTO_UDP);
        assert_int_not_equal(entries[3].port, entries[0].port);
}

static void a_node_that_is_not_told_all_of_it_is_not_published(void **state)
{
        struct fixture *fixture = *state;
        struct status_frontend told[6] = { 0 };
        struct scale_to_zero_status status = { .frontends = told, .n_frontends = 6 };

        plan(fixture);
        for (size_t i = 0; i < 6; i++) {
                const struct resolve_parking *entry = &fixture->plan.entries[i];

                told[i] = (struct status_frontend){ .origin = FRONTEND_PARKING,
                                                    .frontend = { entry->address, entry->port, entry->protocol },
                                                    .node = (char *)entry->node };
        }
        parking_plan_keep_told(&fixture->plan, &status);
        assert_int_equal(fixture->plan.n_entries, 6);
        told[3].frontend.port++; /* the second port, of n1 */
        parking_plan_keep_told(&fixture->plan, &status);
        assert_int_equal(fixture->plan.n_entries, 2);
        for (size_t i = 0; i < 2; i++)
                assert_string_equal(fixture->plan.entries[i].node, "n2");
        status.n_frontends = 0;
        parking_plan_keep_told(&fixture->plan, &status);
        assert_int_equal(fixture->plan.n_entries, 0);
}

static void a_service_that_is_not_held_is_not_parked(void **state)
{
        struct fixture *fixture = *state;

        fixture->resolution.n_frontends = 1;
        plan(fixture);
        assert_int_equal(fixture->plan.n_entries, 2);
        fixture->frontends[0].origin = FRONTEND_NODE_PORT;
        plan(fixture);
        assert_int_equal(fixture->plan.n_entries, 0);
}

static void what_cannot_be_parked_is_told(void **state)
{
        struct fixture *fixture = *state;

        fixture->nodes[0].n_addresses = 1;
        plan(fixture);
        assert_int_equal(fixture->plan.n_entries, 4);
        assert_string_equal(fixture->plan.reason, "NoNodes");

        fixture->nodes[0].n_addresses = 2;
        parking_ports_free(fixture->ports);
        assert_int_equal(parking_ports_new(42000, 42000, &fixture->ports), 0);
        plan(fixture);
        assert_int_equal(fixture->plan.n_entries, 3);
        assert_string_equal(fixture->plan.reason, "PortsExhausted");
}

static void a_node_that_goes_moves_nothing_but_its_own(void **state)
{
        struct fixture *fixture = *state;
        struct parking_node nodes[20];
        char names[20][8];
        unsigned policies_on[20] = { 0 };

        fixture->resolution.n_frontends = 1;
        for (size_t i = 0; i < 20; i++) {
                snprintf(names[i], sizeof(names[i]), "node%zu", i);
                nodes[i] = (struct parking_node){ names[i], fixture->addresses[0], 1 };
        }
        for (unsigned i = 0; i < 100; i++) {
                struct parking_plan all, fewer;
                unsigned common = 0, had_last = 0;
                char policy[32];

                snprintf(policy, sizeof(policy), "shop/policy%u", i);
                assert_int_equal(parking_plan(fixture->ports, policy, &fixture->used, nodes, 20, &all), 0);
                assert_int_equal(parking_plan(fixture->ports, policy, &fixture->used, nodes, 19, &fewer), 0);
                assert_int_equal(all.n_entries, PARKING_NODES_MAX);
                assert_int_equal(fewer.n_entries, PARKING_NODES_MAX);
                for (size_t j = 0; j < PARKING_NODES_MAX; j++) {
                        policies_on[atoi(all.entries[j].node + 4)]++;
                        had_last += strcmp(all.entries[j].node, "node19") == 0;
                        for (size_t k = 0; k < PARKING_NODES_MAX; k++)
                                common += strcmp(all.entries[j].node, fewer.entries[k].node) == 0;
                }
                assert_int_equal(common, PARKING_NODES_MAX - had_last);
                parking_plan_done(&all);
                parking_plan_done(&fewer);
        }
        for (size_t i = 0; i < 20; i++)
                assert_in_range(policies_on[i], 4, 35); /* 15 each, about */
}

/* Does what is to be done, as the API server would, until nothing is left. Returns what it was, "create web-lull-ipv4, …". */
static const char *settle(struct fixture *fixture, const struct parking_plan *wanted, char text[static 256])
{
        static const char *const words[] = { "", "create", "update", "delete" };
        struct parking_step step;

        *text = '\0';
        for (;;) {
                const char *field;
                size_t place = 0, length = strlen(text);

                assert_int_equal(parking_next(&fixture->object, &fixture->used, wanted,
                                              (const struct kube_endpoint_slice *const *)fixture->slices, fixture->n_slices, &step),
                                 0);
                if (step.action == PARKING_NOTHING)
                        return text;
                snprintf(text + length, 256 - length, "%s%s %s", length ? ", " : "", words[step.action], step.name);
                while (place < fixture->n_slices && strcmp(fixture->slices[place]->metadata.name, step.name) != 0)
                        place++;
                if (step.action == PARKING_CREATE) {
                        assert_int_equal(place, fixture->n_slices);
                        assert_int_equal(kube_endpoint_slice_read(step.body, &fixture->slices[fixture->n_slices++], &field), 0);
                } else if (step.action == PARKING_UPDATE) {
                        json_t *body = json_pack(
                                "{s:{s:s, s:{s:s, s:s}, s:O}, s:O, s:O}", "metadata", "name", step.name, "labels",
                                "kubernetes.io/service-name", "web", "endpointslice.kubernetes.io/managed-by", PARKING_MANAGER,
                                "ownerReferences", json_object_get(json_object_get(step.body, "metadata"), "ownerReferences"),
                                "endpoints", json_object_get(step.body, "endpoints"), "ports", json_object_get(step.body, "ports"));

                        assert_non_null(json_object_get(json_object_get(step.body, "metadata"), "resourceVersion"));
                        kube_endpoint_slice_free(fixture->slices[place]);
                        assert_int_equal(kube_endpoint_slice_read(body, &fixture->slices[place], &field), 0);
                        json_decref(body);
                } else {
                        kube_endpoint_slice_free(fixture->slices[place]);
                        fixture->slices[place] = fixture->slices[--fixture->n_slices];
                        fixture->slices[fixture->n_slices] = NULL;
                }
                parking_step_done(&step);
        }
}

static void slices_come_change_and_go(void **state)
{
        struct fixture *fixture = *state;
        char text[256];

        plan(fixture);
        assert_string_equal(settle(fixture, &fixture->plan, text), "create web-lull-ipv4, create web-lull-ipv6");
        assert_string_equal(fixture->slices[0]->service, "web");
        assert_string_equal(fixture->slices[0]->managed_by, "lull.dev");
        assert_string_equal(fixture->slices[0]->owner_uid, "p1");
        assert_int_equal(fixture->slices[0]->n_endpoints, 2);
        assert_true(fixture->slices[0]->endpoints[0].ready && fixture->slices[0]->endpoints[0].serving);
        assert_string_equal(fixture->slices[0]->endpoints[0].node, "n1");
        assert_int_equal(fixture->slices[0]->n_ports, 2);
        assert_string_equal(fixture->slices[0]->ports[0].name, "http");
        assert_int_equal(fixture->slices[0]->ports[0].port, fixture->plan.entries[0].port);
        assert_string_equal(fixture->slices[0]->ports[1].name, "");
        assert_int_equal(fixture->slices[0]->ports[1].protocol, IPPROTO_UDP);
        assert_int_equal(fixture->slices[1]->n_endpoints, 1);

        assert_string_equal(settle(fixture, &fixture->plan, text), "");
        fixture->nodes[1] = (struct parking_node){ "n3", fixture->addresses[1], 1 };
        plan(fixture);
        assert_string_equal(settle(fixture, &fixture->plan, text), "update web-lull-ipv4");
        fixture->nodes[0].n_addresses = 1; /* no IPv6 any more */
        plan(fixture);
        assert_string_equal(settle(fixture, &fixture->plan, text), "delete web-lull-ipv6");
        assert_string_equal(settle(fixture, NULL, text), "delete web-lull-ipv4");
        assert_int_equal(fixture->n_slices, 0);
}

static void slices_of_others_are_left_alone(void **state)
{
        static const char *const others[] = {
                "{'metadata':{'name':'web-x','labels':{'kubernetes.io/service-name':'web','endpointslice.kubernetes.io/managed-by':"
                "'endpointslice-controller.k8s.io'},'ownerReferences':[{'uid':'p1'}]},'endpoints':null,'ports':null}",
                "{'metadata':{'name':'web-y','labels':{'kubernetes.io/service-name':'web','endpointslice.kubernetes.io/managed-by':"
                "'lull.dev'},'ownerReferences':[{'uid':'p2'}]},'endpoints':null,'ports':null}",
                "{'metadata':{'name':'web-z','labels':{'kubernetes.io/service-name':'web','endpointslice.kubernetes.io/managed-by':"
                "'lull.dev'}},'endpoints':null,'ports':null}",
        };
        struct fixture *fixture = *state;
        char text[256];

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                json_t *object = json(others[i]);
                const char *field;

                assert_int_equal(kube_endpoint_slice_read(object, &fixture->slices[fixture->n_slices++], &field), 0);
                json_decref(object);
        }
        assert_string_equal(settle(fixture, NULL, text), "");
}

static void a_slice_that_nobody_owns_any_more_is_taken_over(void **state)
{
        struct fixture *fixture = *state;
        json_t *object = json("{'metadata':{'name':'web-lull-ipv4','labels':{'kubernetes.io/service-name':'web',"
                              "'endpointslice.kubernetes.io/managed-by':'lull.dev'}},'endpoints':null,'ports':null}");
        const char *field;
        char text[256];

        assert_int_equal(kube_endpoint_slice_read(object, &fixture->slices[fixture->n_slices++], &field), 0);
        json_decref(object);
        plan(fixture);
        assert_string_equal(settle(fixture, &fixture->plan, text), "update web-lull-ipv4, create web-lull-ipv6");
        assert_true(parking_is_own(&fixture->object, fixture->slices[0]));
        assert_string_equal(settle(fixture, NULL, text), "delete web-lull-ipv4, delete web-lull-ipv6");
}

static void what_a_create_says_is_what_the_api_wants(void **state)
{
        struct fixture *fixture = *state;
        struct parking_step step;
        json_t *wanted =
                json("{'apiVersion':'discovery.k8s.io/v1','kind':'EndpointSlice','metadata':{'name':'web-lull-ipv4','namespace':"
                     "'shop','labels':{'kubernetes.io/service-name':'web','endpointslice.kubernetes.io/managed-by':'lull.dev'},"
                     "'ownerReferences':[{'apiVersion':'lull.dev/v1alpha1','kind':'ScaleToZero','name':'web','uid':'p1',"
                     "'controller':true}]},'addressType':'IPv4','endpoints':[{'addresses':['192.0.2.1'],'nodeName':'n1',"
                     "'conditions':{'ready':true,'serving':true,'terminating':false}}],"
                     "'ports':[{'name':'http','protocol':'TCP','port':42003}]}");
        struct status_frontend known = { .origin = FRONTEND_PARKING, .frontend.port = 42003, .backend = (char *)"web/http" };
        const struct scale_to_zero_status status = { .frontends = &known, .n_frontends = 1 };

        fixture->nodes[1].n_addresses = 0;
        fixture->resolution.n_frontends = 1;
        assert_int_equal(parking_ports_learn(fixture->ports, "shop/web", &status), 0);
        plan(fixture);
        assert_int_equal(parking_next(&fixture->object, &fixture->used, &fixture->plan, NULL, 0, &step), 0);
        assert_true(json_equal(step.body, wanted));
        parking_step_done(&step);
        json_decref(wanted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_two_backends_have_one_port),
                cmocka_unit_test(a_port_stays_and_comes_back),
                cmocka_unit_test(what_a_status_says_counts_first),
                cmocka_unit_test_setup_teardown(every_port_and_family_is_parked_on_the_nodes, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_is_not_told_all_of_it_is_not_published, setup, teardown),
                cmocka_unit_test_setup_teardown(a_service_that_is_not_held_is_not_parked, setup, teardown),
                cmocka_unit_test_setup_teardown(what_cannot_be_parked_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(a_node_that_goes_moves_nothing_but_its_own, setup, teardown),
                cmocka_unit_test_setup_teardown(slices_come_change_and_go, setup, teardown),
                cmocka_unit_test_setup_teardown(slices_of_others_are_left_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(a_slice_that_nobody_owns_any_more_is_taken_over, setup, teardown),
                cmocka_unit_test_setup_teardown(what_a_create_says_is_what_the_api_wants, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
