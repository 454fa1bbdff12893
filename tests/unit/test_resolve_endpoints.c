/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of EndpointSlices: whom held flows are released to, and the nodes that pods run on. */
#include "unit/resolve_table.h"

static void slices_become_endpoints(void **state)
{
        static const struct row rows[] = {
                { .promise = "ready first, terminating never, by node",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080,
                                      POD("10.1.0.1", A, "n2", UNREADY) "," POD("10.1.0.2", B, "n1", READY) "," POD(
                                              "10.1.0.3", C, "n3", "'ready':false,'serving':true,'terminating':true")) "]",
                  .endpoints = "10.1.0.2 " B " n1 ready web/http=8080\n10.1.0.1 " A " n2 web/http=8080\n",
                  .nodes = "n1 n2 n3", /* n3 may be at its last answers */
                  .ports = "web/http=8080" },
                { .promise = "a terminating pod that does not serve runs nowhere",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080,
                                      POD("10.1.0.3", C, "n3", "'ready':false,'serving':false,'terminating':true")) "]",
                  .endpoints = "",
                  .nodes = "" },
                { .promise = "a pod without node is at none, and forbids sleep",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080,
                                      "{'addresses':['10.1.0.1'],'targetRef':{'kind':'Pod','name':'" A "','uid':'u'}}") "]",
                  .endpoints = "10.1.0.1 " A " - ready web/http=8080\n",
                  .nodes = "",
                  .problems = "PodsUnknown/NoNode",
                  .awake = true },
                { .promise = "several slices and Services of one pod are one endpoint; a named port has the slice's number",
                  .services = "[" SERVICE(
                          "web",
                          "'ports':[{'name':'http','port':80,'targetPort':'h'},{'name':'dns','port':53,"
                          "'protocol':'UDP','targetPort':5353}]") ",{" META("admin") ",'spec':{'selector':{'app':'web'},"
                                                                                     "'clusterIPs':['10.0.0.2'],'ports':[{'port':9000,'targetPort':'a'}]}}]",
                  .slices = "[" SLICE("a", "web",
                                      "[{'name':'http','port':8080},{'name':'dns','port':5353,'protocol':'UDP'},"
                                      "{'name':'gone','port':1}]",
                                      POD("10.1.0.1", A, "n1", READY)) "," SLICE("b", "admin", "[{'name':'','port':9001}]",
                                                                                 POD("10.1.0.1", A, "n1", READY)) "]",
                  .endpoints = "10.1.0.1 " A " n1 ready admin/9000=9001 web/http=8080 web/dns=5353u\n",
                  .nodes = "n1",
                  .ports = "admin/9000=9001 web/dns=5353u web/http=8080" },
                { .promise = "a named port may have another number in another pod",
                  .services = "[" SERVICE("web", "'ports':[{'name':'http','port':80,'targetPort':'h'}]") "]",
                  .slices = "[" SLICE("a", "web", "[{'name':'http','port':8081}]", POD("10.1.0.1", A, "n1", READY)) "," SLICE(
                          "b", "web", "[{'name':'http','port':8080}]", POD("10.1.0.2", B, "n1", READY)) "]",
                  .endpoints = "10.1.0.1 " A " n1 ready web/http=8081\n10.1.0.2 " B " n1 ready web/http=8080\n",
                  .nodes = "n1",
                  .ports = "web/http=8080 web/http=8081" },
                { .promise = "both families of a pod are two endpoints",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("b", "web", HTTP_8080, POD("fd01::1", A, "n1", READY)) "," SLICE(
                          "a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", READY)) "]",
                  .endpoints = "10.1.0.1 " A " n1 ready web/http=8080\nfd01::1 " A " n1 ready web/http=8080\n" },
                { .promise = "a pod is ready in both families as soon as one slice says so",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", "'ready':false,'serving':false")) "," SLICE(
                          "b", "web", HTTP_8080, POD("fd01::1", A, "n1", READY)) "]",
                  .endpoints = "10.1.0.1 " A " n1 ready web/http=8080\nfd01::1 " A " n1 ready web/http=8080\n" },
                { .promise = "our own slices, those of other Services, and host names are none",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices =
                          "[{'metadata':{'name':'p','labels':{'kubernetes.io/service-name':'web',"
                          "'endpointslice.kubernetes.io/managed-by':'lull.dev'}},'addressType':'IPv4','ports':" HTTP_8080
                          ",'endpoints':[{'addresses':['192.0.2.1']}]}," SLICE(
                                  "o", "other", HTTP_8080,
                                  POD("10.1.0.9", B, "n9",
                                      READY)) ","
                                              "{'metadata':{'name':'n','labels':{'kubernetes.io/service-name':'web'}},'addressType':'FQDN','ports':" HTTP_8080
                                              ",'endpoints':[{'addresses':['a.example']}]}]",
                  .endpoints = "",
                  .nodes = "" },
                { .promise = "a pod of another Deployment is not released to, and forbids sleep",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices =
                          "[" SLICE("a", "web", HTTP_8080,
                                    POD("10.1.0.1", "web-canary-7d9f-bcdf2", "n2", READY) "," POD("10.1.0.2", B, "n1", READY)) "]",
                  .endpoints = "10.1.0.2 " B " n1 ready web/http=8080\n",
                  .nodes = "n1",
                  .problems = "ServiceShared/OtherPods",
                  .awake = true },
                { .promise = "so does an endpoint that is no pod",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080, "{'addresses':['192.0.2.9']}") "]",
                  .endpoints = "",
                  .problems = "ServiceShared/OtherPods",
                  .awake = true },
                { .promise = "at zero replicas slices say nothing",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[{'metadata':{'name':'a','labels':{'kubernetes.io/service-name':'web'}},'addressType':'IPv4',"
                            "'ports':null,'endpoints':null}]",
                  .endpoints = "",
                  .nodes = "",
                  .ports = "web/http=8080" },
                { .promise = "wake.readiness Ready wants no probe",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", UNREADY)) "]",
                  .readiness_ready = true,
                  .endpoints = "10.1.0.1 " A " n1 web/http=8080\n" },
        };

        check(rows, ELEMENTSOF(rows));
}

static void pods_are_counted_once_a_node(void **state)
{
        static const struct row row = {
                .services = "[" SERVICE("web", HTTP) "]",
                .slices = "[" SLICE("a", "web", HTTP_8080,
                                    POD("10.1.0.1", A, "n2", READY) "," POD("10.1.0.2", B, "n1", UNREADY) "," POD(
                                            "10.1.0.3", C, "n2", READY)) "," SLICE("b", "web", HTTP_8080,
                                                                                   POD("fd01::1", A, "n2", READY)) "]",
        };
        _cleanup_(resolution_freep) struct resolution *resolution = NULL;
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_nodes, 2);
        assert_int_equal(resolution->node_pods[0], 1);
        assert_int_equal(resolution->node_pods[1], 2);
        assert_int_equal(resolution->n_pods, 3);
        fixture_done(&fixture);
}

/* A wake that comes right after the sleep: slices call the old pods ready yet, and one new pod too. */
static void pods_of_before_the_sleep_are_no_endpoints_of_the_wake(void **state)
{
        static const struct row row = {
                .services = "[" SERVICE("web", HTTP) "]",
                .slices = "[" SLICE("a", "web", HTTP_8080,
                                    POD("10.1.0.1", A, "n1", READY) "," POD("10.1.0.2", B, "n2", READY) "," POD("10.1.0.4", "other",
                                                                                                                "n2", READY)) "]",
        };
        static const struct row next = {
                .slices = "[" SLICE("a", "web", HTTP_8080,
                                    POD("10.1.0.1", A, "n1", READY) "," POD("10.1.0.2", B, "n2", READY) "," POD("10.1.0.3", C, "n2",
                                                                                                                READY)) "]",
        };
        _cleanup_(leftovers_freep) struct leftovers *leftovers = NULL;
        struct resolution *resolution = NULL;
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        assert_int_equal(
                leftovers_take(&fixture.policy.cluster.reference, fixture.input.slices, fixture.input.n_slices, &leftovers), 0);
        fixture.input.leftovers = leftovers;
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_ready, 0);
        assert_int_equal(resolution->n_endpoints, 0);
        assert_int_equal(resolution->n_nodes, 2); /* they run: whether they are idle is another question */
        resolution = resolution_free(resolution);

        kube_endpoint_slice_free(fixture.slices[0]);
        read_slices(&fixture, next.slices);
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_ready, 1);
        assert_string_equal(resolution->endpoints[0].pod, C);
        resolution_free(resolution);
        fixture_done(&fixture);
}

static void a_slice_that_cannot_be_read_forbids_sleep(void **state)
{
        static const struct row row = {
                .services = "[" SERVICE("web", HTTP) "]",
                .slices = "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", READY)) "]",
                .problems = "PodsUnknown/SliceUnreadable",
                .message = "\"broken\"",
                .awake = true,
        };
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        assert_int_equal(kube_endpoint_slice_unreadable("shop/broken", &fixture.slices[1]), 0);
        assert_string_equal(fixture.slices[1]->metadata.namespace, "shop");
        fixture.input.n_slices = 2;
        check_fixture(&fixture, &row);
        fixture_done(&fixture);
}

static void whose_pod_it_is_is_known_by_its_name(void **state)
{
        static const struct {
                const char *kind, *pod;
                bool own;
        } cases[] = {
                { "Deployment", "web-7d9f6c5b4d-x2x4z", true },
                { "Deployment", "web-7d9f-bcdf2", true },
                { "Deployment", "web-bcdf2", false }, /* a ReplicaSet's called web */
                { "Deployment", "web-api-7d9f6c5b4d-x2x4z", false },
                { "Deployment", "web-7d9f6c5b4d-x2x4a", false }, /* no such letter */
                { "Deployment", "api-7d9f6c5b4d-x2x4z", false },
                { "Deployment", "webby", false },
                { "ReplicaSet", "web-x2x4z", true },
                { "ReplicaSet", "web-7d9f-x2x4z", false },
                { "StatefulSet", "web-0", true },
                { "StatefulSet", "web-12", true },
                { "StatefulSet", "web-b-0", false },
                { "StatefulSet", "web-", false },
                { "DaemonSet", "anything", true }, /* not one that we know */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char slices[1024];
                struct row row = { .promise = cases[i].pod, .services = "[" SERVICE("web", HTTP) "]", .kind = cases[i].kind };

                snprintf(slices, sizeof(slices), "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", "%s", "n1", READY)) "]",
                         cases[i].pod, cases[i].pod);
                row.slices = slices;
                row.nodes = cases[i].own ? "n1" : "";
                row.problems = cases[i].own ? "" : "ServiceShared/OtherPods";
                row.awake = !cases[i].own;
                check(&row, 1);
        }
}

/* 3 nodes with 20 ready pods in all: the bound takes from each in turn. */
static void the_bound_spreads_over_nodes(void **state)
{
        struct row row = { .promise = "spread", .services = "[" SERVICE("web", HTTP) "]" };
        unsigned on_node[4] = { 0 };
        struct resolution *resolution;
        struct fixture fixture;
        char *slices;
        size_t size;
        FILE *stream = open_memstream(&slices, &size);

        fprintf(stream, "[");
        for (unsigned i = 0; i < 20; i++)
                fprintf(stream, "%s" SLICE("a", "web", HTTP_8080, POD("10.1.0.%u", "web-7d9f-bcd%u%u", "n%u", READY)), i ? "," : "",
                        i + 1,
                        i < 14   ? 1U
                        : i < 17 ? 2U
                                 : 3U,
                        2 + i / 6, 2 + i % 6, 2 + i / 6, 2 + i % 6);
        fprintf(stream, "]");
        fclose(stream);
        row.slices = slices;

        fixture_fill(&fixture, &row);
        free(slices);
        fixture.policy.cluster.reference.kind = (char *)"Other";
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_endpoints, STATUS_ENDPOINTS_MAX);
        assert_int_equal(resolution->n_ready, 20);
        for (size_t i = 0; i < resolution->n_endpoints; i++)
                on_node[resolution->endpoints[i].node[1] - '0']++;
        assert_int_equal(on_node[1], 10);
        assert_int_equal(on_node[2], 3);
        assert_int_equal(on_node[3], 3);
        assert_int_equal(resolution->n_nodes, 3);
        resolution_free(resolution);
        fixture_done(&fixture);
}

static void probes_and_parking_are_attached(void **state)
{
        struct row row = { .promise = "probe",
                           .services = "[" SERVICE("web", HTTP) "]",
                           .slices = "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", UNREADY)) "]",
                           .endpoints = "10.1.0.1 " A " n1 web/http=8080 probe 8081\n",
                           .frontends = "cluster tcp/10.0.0.1:80 web/http\nparking tcp/192.0.2.1:42000 web/http on n1\n" };
        char *headers[] = { (char *)"A: b", NULL };
        const struct resolve_probe probe = { .pod_uid = "uid-" A,
                                             .probe = { .type = PROBE_HTTP, .port = 8081, .path = (char *)"/", .headers = headers },
                                             .started_realtime_ns = 7 };
        struct resolve_parking parking[] = {
                { .node = "n1", .backend = "web/http", .port = 42000, .protocol = 6 },
                { .node = "n1", .backend = "gone/http", .port = 42001, .protocol = 6 },
        };
        struct fixture fixture;
        struct resolution *resolution;

        address_parse("192.0.2.1", &parking[0].address);
        address_parse("192.0.2.1", &parking[1].address);
        fixture_fill(&fixture, &row);
        fixture.input.probes = &probe;
        fixture.input.n_probes = 1;
        fixture.input.parking = parking;
        fixture.input.n_parking = 2;
        resolution = resolve_fixture(&fixture);
        assert_row(&row, resolution);
        assert_int_equal(resolution->endpoints[0].started_realtime_ns, 7);
        assert_string_equal(resolution->endpoints[0].probe.headers[0], "A: b");
        resolution_free(resolution);
        fixture_done(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slices_become_endpoints),
                cmocka_unit_test(pods_are_counted_once_a_node),
                cmocka_unit_test(pods_of_before_the_sleep_are_no_endpoints_of_the_wake),
                cmocka_unit_test(a_slice_that_cannot_be_read_forbids_sleep),
                cmocka_unit_test(whose_pod_it_is_is_known_by_its_name),
                cmocka_unit_test(the_bound_spreads_over_nodes),
                cmocka_unit_test(probes_and_parking_are_attached),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
