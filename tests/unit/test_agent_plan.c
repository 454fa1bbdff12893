/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

#include "agent/plan.h"

static struct address address(const char *text)
{
        struct address address;

        assert_int_equal(address_parse(text, &address), 0);
        return address;
}

static struct prefix prefix(const char *text)
{
        struct prefix prefix;

        assert_int_equal(prefix_parse(text, &prefix), 0);
        return prefix;
}

static struct status_frontend frontend(const char *text, enum frontend_origin origin)
{
        struct status_frontend frontend = { .origin = origin, .backend = (char *)"web/http" };

        assert_int_equal(frontend_parse(text, &frontend.frontend), 0);
        return frontend;
}

static struct hold_plan *plan(struct status_frontend *frontends, size_t n_frontends, struct policy *policy,
                              struct scale_to_zero_status status)
{
        struct scale_to_zero object = { .policy = policy, .status = status };
        struct hold_plan *plan;

        object.status.frontends = frontends;
        object.status.n_frontends = n_frontends;
        assert_int_equal(hold_plan_make(&object, "n1", &plan), 0);
        return plan;
}

static void a_parking_frontend_is_held_on_its_own_node_only(void **state)
{
        struct status_frontend frontends[] = {
                frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP),
                frontend("tcp/192.0.2.1:42000", FRONTEND_PARKING),
                frontend("tcp/192.0.2.2:42000", FRONTEND_PARKING),
        };
        struct policy policy = { .wake = { .max_held = 7, .hold_timeout_ns = 9 } };
        _cleanup_(hold_plan_freep) struct hold_plan *here = NULL;

        frontends[1].node = (char *)"n1";
        frontends[2].node = (char *)"n2";
        here = plan(frontends, 3, &policy, (struct scale_to_zero_status){ 0 });

        assert_int_equal(here->n_frontends, 2);
        assert_true(frontend_equal(&here->frontends[1], &frontends[1].frontend));
        assert_int_equal(here->max_held, 7);
        assert_int_equal(here->hold_timeout_ns, 9);
}

static void a_frontend_knows_the_parking_port_of_its_own_backend(void **state)
{
        struct status_frontend frontends[] = {
                frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP),
                frontend("tcp/10.0.0.1:81", FRONTEND_CLUSTER_IP),
                frontend("tcp/192.0.2.1:42001", FRONTEND_PARKING),
                frontend("tcp/192.0.2.1:42000", FRONTEND_PARKING),
        };
        struct policy policy = { 0 };
        _cleanup_(hold_plan_freep) struct hold_plan *here = NULL;

        frontends[1].backend = frontends[2].backend = (char *)"web/metrics";
        here = plan(frontends, ELEMENTSOF(frontends), &policy, (struct scale_to_zero_status){ 0 });

        for (size_t i = 0; i < ELEMENTSOF(frontends); i++)
                assert_int_equal(here->services[i].parking, i >= 2);
        assert_int_equal(here->services[2].backend, here->services[1].backend);
        assert_int_equal(here->services[3].backend, here->services[0].backend);
        assert_int_not_equal(here->services[0].backend, here->services[1].backend);
}

static void what_comes_from_outside_is_masqueraded_unless_its_policy_is_local(void **state)
{
        struct status_frontend frontends[] = {
                frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP),        frontend("tcp/0.0.0.0:30080", FRONTEND_NODE_PORT),
                frontend("tcp/0.0.0.0:30080", FRONTEND_NODE_PORT),       frontend("tcp/192.0.2.1:42000", FRONTEND_PARKING),
                frontend("tcp/198.51.100.1:80", FRONTEND_LOAD_BALANCER),
        };
        static const enum holding_masquerade masqueraded[] = { MASQUERADE_OUTSIDERS, MASQUERADE_ALL, MASQUERADE_NONE,
                                                               MASQUERADE_ALL, MASQUERADE_ALL };
        struct policy policy = { 0 };
        _cleanup_(hold_plan_freep) struct hold_plan *here = NULL;

        frontends[2].local = true;
        here = plan(frontends, ELEMENTSOF(frontends), &policy, (struct scale_to_zero_status){ 0 });
        for (size_t i = 0; i < ELEMENTSOF(frontends); i++)
                assert_int_equal(here->services[i].masquerade, masqueraded[i]);
        assert_true(here->services[2].local);
}

static void a_port_to_ignore_is_one_of_the_pods(void **state)
{
        struct status_frontend frontends[] = { frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP),
                                               frontend("tcp/10.0.0.1:9090", FRONTEND_CLUSTER_IP) };
        struct status_port ports[] = { { (char *)"web/http", 8080, IPPROTO_TCP }, { (char *)"web/metrics", 9091, IPPROTO_TCP } };
        struct ignore_rule rules[] = { { prefix("::/0"), 9091 }, { prefix("::/0"), 80 } };
        struct policy policy = { .ignore = rules, .n_ignore = ELEMENTSOF(rules) };
        _cleanup_(hold_plan_freep) struct hold_plan *known = NULL, *unknown = NULL;

        frontends[1].backend = (char *)"web/metrics";
        known = plan(frontends, 2, &policy, (struct scale_to_zero_status){ .ports = ports, .n_ports = 2 });
        assert_int_equal(known->n_ignore, 1);
        assert_int_equal(known->ignore[0].port, 9090);

        /* Before any pod was seen: the numbers as they stand. */
        unknown = plan(frontends, 2, &policy, (struct scale_to_zero_status){ 0 });
        assert_int_equal(unknown->n_ignore, 1);
        assert_int_equal(unknown->ignore[0].port, 80);
}

static void pods_to_ignore_come_with_the_status(void **state)
{
        struct status_frontend frontends[] = { frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP) };
        struct prefix ignored[] = { prefix("10.1.0.7"), prefix("10.1.0.8"), prefix("10.1.0.7") };
        struct ignore_rule rules[] = { { prefix("10.1.0.8"), 0 } };
        struct policy policy = { .ignore = rules, .n_ignore = 1 };
        _cleanup_(hold_plan_freep) struct hold_plan *here = NULL;

        here = plan(frontends, 1, &policy, (struct scale_to_zero_status){ .ignored = ignored, .n_ignored = 3 });
        assert_int_equal(here->n_ignore, 2);
        assert_int_equal(here->ignore[0].port, 0);
        assert_int_equal(here->ignore[1].port, 0);
}

static void plans_differ_where_the_holding_would(void **state)
{
        struct status_frontend frontends[] = { frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP) };
        struct prefix ranges[] = { prefix("192.0.2.0/24") };
        struct policy policy = { .wake = { .max_held = 1 } };
        struct scale_to_zero_status status = { 0 };
        _cleanup_(hold_plan_freep) struct hold_plan *first = plan(frontends, 1, &policy, status);
        struct hold_plan *other;

        other = plan(frontends, 1, &policy, status);
        assert_true(hold_plan_equal(first, other));
        hold_plan_free(other);

        frontends[0].source_ranges = ranges;
        frontends[0].n_source_ranges = 1;
        other = plan(frontends, 1, &policy, status);
        assert_false(hold_plan_equal(first, other));
        hold_plan_free(other);

        frontends[0].n_source_ranges = 0;
        frontends[0].affinity = true;
        other = plan(frontends, 1, &policy, status);
        assert_false(hold_plan_equal(first, other));
        hold_plan_free(other);

        frontends[0].affinity = false;
        policy.wake.from = ranges;
        policy.wake.n_from = 1;
        other = plan(frontends, 1, &policy, status);
        assert_false(hold_plan_equal(first, other));
        hold_plan_free(other);
}

static void an_endpoint_serves_by_backend_protocol_and_family(void **state)
{
        struct status_frontend frontends[] = { frontend("tcp/10.0.0.1:80", FRONTEND_CLUSTER_IP),
                                               frontend("udp/10.0.0.1:80", FRONTEND_CLUSTER_IP),
                                               frontend("tcp/[fd00::1]:80", FRONTEND_CLUSTER_IP),
                                               frontend("tcp/10.0.0.1:81", FRONTEND_CLUSTER_IP) };
        struct status_port ports[] = { { (char *)"web/http", 8080, IPPROTO_TCP } };
        struct status_endpoint endpoint = { .address = address("10.1.0.5"), .node = (char *)"n1", .ports = ports, .n_ports = 1 };
        struct policy policy = { 0 };
        struct holding_endpoint found;
        _cleanup_(hold_plan_freep) struct hold_plan *here = NULL;

        frontends[3].backend = (char *)"web/admin";
        here = plan(frontends, 4, &policy, (struct scale_to_zero_status){ 0 });
        assert_true(hold_plan_endpoint(here, 0, &endpoint, "n1", &found));
        assert_int_equal(found.port, 8080);
        assert_true(found.on_this_node);
        assert_false(hold_plan_endpoint(here, 1, &endpoint, "n1", &found));
        assert_false(hold_plan_endpoint(here, 2, &endpoint, "n1", &found));
        assert_false(hold_plan_endpoint(here, 3, &endpoint, "n1", &found));

        endpoint.node = (char *)"n2";
        assert_true(hold_plan_endpoint(here, 0, &endpoint, "n1", &found));
        assert_false(found.on_this_node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_parking_frontend_is_held_on_its_own_node_only),
                cmocka_unit_test(a_frontend_knows_the_parking_port_of_its_own_backend),
                cmocka_unit_test(what_comes_from_outside_is_masqueraded_unless_its_policy_is_local),
                cmocka_unit_test(a_port_to_ignore_is_one_of_the_pods),
                cmocka_unit_test(pods_to_ignore_come_with_the_status),
                cmocka_unit_test(plans_differ_where_the_holding_would),
                cmocka_unit_test(an_endpoint_serves_by_backend_protocol_and_family),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
