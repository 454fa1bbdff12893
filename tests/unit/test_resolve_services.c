/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of Services: the frontends that are held, and what is told of those that cannot be. */
#include "unit/resolve_table.h"

static void services_become_frontends(void **state)
{
        static const struct row rows[] = {
                { .promise = "a cluster IP",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n",
                  .ports = "web/http=8080" },
                { .promise = "both families, TCP and UDP, a port without name",
                  .services = "[{" META("web") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.1','fd00::1'],"
                                               "'ports':[{'port':53,'protocol':'UDP'}]}}]",
                  .frontends = "cluster udp/10.0.0.1:53 web/53\ncluster udp/[fd00::1]:53 web/53\n",
                  .ports = "web/53=53u" },
                { .promise = "node ports of the Service's family only",
                  .services = "[" SERVICE("web", "'type':'NodePort','ports':[{'name':'http','port':80,'nodePort':30080}]") "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\nnode tcp/0.0.0.0:30080 web/http\n" },
                { .promise = "node ports of both families, externalTrafficPolicy Local",
                  .services = "[{" META(
                          "web") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.1','fd00::1'],"
                                 "'externalTrafficPolicy':'Local','ports':[{'name':'http','port':80,'nodePort':30080}]}}]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\ncluster tcp/[fd00::1]:80 web/http\n"
                               "node tcp/0.0.0.0:30080 web/http local\nnode tcp/[::]:30080 web/http local\n" },
                { .promise = "an IPv6 Service has no IPv4 node port",
                  .services = "[{" META("web") ",'spec':{'selector':{'app':'web'},'clusterIPs':['fd00::1'],"
                                               "'ports':[{'name':'http','port':80,'nodePort':30080}]}}]",
                  .frontends = "cluster tcp/[fd00::1]:80 web/http\nnode tcp/[::]:30080 web/http\n" },
                { .promise = "internalTrafficPolicy Local is the cluster IP's alone",
                  .services = "[" SERVICE("web", "'internalTrafficPolicy':'Local','externalIPs':['192.0.2.7']," HTTP) "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http local\nexternal tcp/192.0.2.7:80 web/http\n" },
                { .promise = "source ranges are the load balancer's alone, each family's its own",
                  .services = "[{" META(
                          "web") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.1'],'externalIPs':['192.0.2.7'],"
                                 "'loadBalancerSourceRanges':['198.51.100.0/24',' fd00:9::/32'],"
                                 "'ports':[{'name':'http','port':80,'nodePort':30080}]},'status':{'loadBalancer':{'ingress':["
                                 "{'ip':'203.0.113.9'},{'ip':'fd00::9'},{'hostname':'lb.example'},{'ip':'203.0.113.10','ipMode':'Proxy'},"
                                 "{'ip':'203.0.113.11','ipMode':'VIP'}]}}}]",
                  .frontends =
                          "cluster tcp/10.0.0.1:80 web/http\nnode tcp/0.0.0.0:30080 web/http\nexternal tcp/192.0.2.7:80 web/http\n"
                          "balancer tcp/203.0.113.9:80 web/http from 198.51.100.0/24\n"
                          "balancer tcp/[fd00::9]:80 web/http from fd00:9::/32\n"
                          "balancer tcp/203.0.113.11:80 web/http from 198.51.100.0/24\n" },
                { .promise = "ranges of the other family, or of everything, restrict nothing",
                  .services = "[{" META("web") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.1'],"
                                               "'loadBalancerSourceRanges':['10.0.0.0/8','0.0.0.0/0']," HTTP "},"
                                               "'status':{'loadBalancer':{'ingress':[{'ip':'203.0.113.9'},{'ip':'fd00::9'}]}}}]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\nbalancer tcp/203.0.113.9:80 web/http\n"
                               "balancer tcp/[fd00::9]:80 web/http\n" },
                { .promise = "the same address twice is one frontend",
                  .services = "[" SERVICE("web", "'externalIPs':['10.0.0.1','192.0.2.7','192.0.2.7']," HTTP) "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\nexternal tcp/192.0.2.7:80 web/http\n" },
                { .promise = "two Services of one target, by name whatever their order",
                  .services = "[{" META("web-b") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.2']," HTTP
                                                 "}}," SERVICE("web-a", HTTP) "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web-a/http\ncluster tcp/10.0.0.2:80 web-b/http\n",
                  .ports = "web-a/http=8080 web-b/http=8080" },
                { .promise = "a Service that selects something else is not the target's",
                  .services = "[{" META(
                          "other") ",'spec':{'selector':{'app':'web','tier':'b'},'clusterIPs':['10.0.0.2']," HTTP "}},"
                                   "{" META("any") ",'spec':{'clusterIPs':['10.0.0.3']," HTTP "}}," SERVICE("web", HTTP) "]",
                  .labels = "{'app':'web','tier':'a'}",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n" },
                { .promise = "only the named ones",
                  .services = "[" SERVICE("web", HTTP) ",{" META("other") ",'spec':{'selector':{'app':'web'},"
                                                                          "'clusterIPs':['10.0.0.2']," HTTP "}}]",
                  .named = { "other", "other" },
                  .frontends = "cluster tcp/10.0.0.2:80 other/http\n" },
                { .promise = "session affinity is told, and works",
                  .services = "[" SERVICE("web", "'sessionAffinity':'ClientIP'," HTTP) "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http affinity\n",
                  .problems = "SessionAffinity/ClientIP" },
                { .promise = "a per-pod Service of a StatefulSet, named",
                  .kind = "StatefulSet",
                  .services = "[{" META("web-0") ",'spec':{'selector':{'app':'web','statefulset.kubernetes.io/pod-name':'web-0'},"
                                                 "'clusterIPs':['10.0.0.2']," HTTP "}}]",
                  .named = { "web-0" },
                  .frontends = "cluster tcp/10.0.0.2:80 web-0/http\n" },
                { .promise = "where only some labels are known, nothing that contradicts them is had",
                  .services =
                          "[{" META("web") ",'spec':{'selector':{'app':'web','tier':'a'},'clusterIPs':['10.0.0.1']," HTTP "}},"
                                           "{" META("db") ",'spec':{'selector':{'app':'db'},'clusterIPs':['10.0.0.2']," HTTP "}}]",
                  .named = { "web", "db" },
                  .partial = true,
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n",
                  .problems = "ServiceMissing/SelectsOtherPods",
                  .message = "Service db",
                  .awake = true },
        };

        check(rows, ELEMENTSOF(rows));
}

static void what_cannot_be_held_is_told(void **state)
{
        static const struct row rows[] = {
                { .promise = "no Service at all", .problems = "ServiceMissing/NoneSelectsPods", .frontends = "", .awake = true },
                { .promise = "a Service that has moved to another target: its frontends go",
                  .services = "[{" META("web") ",'spec':{'selector':{'app':'new'},'clusterIPs':['10.0.0.1']," HTTP "}}]",
                  .frontends = "",
                  .problems = "ServiceMissing/NoneSelectsPods",
                  .awake = true },
                { .promise = "the same, named",
                  .services = "[{" META("web") ",'spec':{'selector':{'app':'new'},'clusterIPs':['10.0.0.1']," HTTP "}}]",
                  .named = { "web" },
                  .frontends = "",
                  .problems = "ServiceMissing/SelectsOtherPods",
                  .awake = true },
                { .promise = "a named Service that is missing; the other is held",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .named = { "wbe", "web" },
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n",
                  .problems = "ServiceMissing/NotFound",
                  .message = "there is no Service \"wbe\"",
                  .awake = true },
                { .promise = "two problems of one type are one condition",
                  .named = { "one", "two" },
                  .problems = "ServiceMissing/NotFound",
                  .message = "there is no Service \"one\"; create it, or correct spec.services; there is no Service \"two\"",
                  .awake = true },
                { .promise = "a headless Service",
                  .services =
                          "[{" META("web") ",'spec':{'selector':{'app':'web'},'clusterIP':'None','clusterIPs':['None']," HTTP "}}]",
                  .frontends = "",
                  .problems = "ServiceUnsupported/Headless",
                  .message = "name the other Services in spec.services",
                  .awake = true },
                { .promise = "a headless Service beside the one that is named is nobody's business",
                  .kind = "StatefulSet",
                  .services = "[{" META("pods") ",'spec':{'selector':{'app':'web'},'clusterIP':'None'," HTTP
                                                "}}," SERVICE("web", HTTP) "]",
                  .named = { "web" },
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n" },
                { .promise = "a named Service without selector",
                  .services = "[{" META("web") ",'spec':{'clusterIPs':['10.0.0.1']," HTTP "}}]",
                  .named = { "web" },
                  .frontends = "",
                  .problems = "ServiceUnsupported/NoSelector",
                  .awake = true },
                { .promise = "a named alias",
                  .services = "[{" META("web") ",'spec':{'type':'ExternalName','externalName':'a.example'}}]",
                  .named = { "web" },
                  .problems = "ServiceUnsupported/ExternalName",
                  .awake = true },
                { .promise = "an alias that selects is no Service of the target",
                  .services =
                          "[" SERVICE("web", HTTP) ",{" META("alias") ",'spec':{'type':'ExternalName','selector':{'app':'web'}}}]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n" },
                { .promise = "SCTP is left out",
                  .services =
                          "[" SERVICE("web", "'ports':[{'name':'http','port':80},{'name':'sig','port':99,'protocol':'SCTP'}]") "]",
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n",
                  .problems = "PortUnsupported/SCTP",
                  .message = "port 99 of Service web",
                  .awake = true },
                { .promise = "labels that are not known",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .labels = "",
                  .frontends = "",
                  .problems = "ServiceMissing/LabelsUnknown",
                  .awake = true },
                { .promise = "labels that are not known, with names",
                  .services = "[" SERVICE("web", HTTP) "]",
                  .labels = "",
                  .named = { "web" },
                  .frontends = "cluster tcp/10.0.0.1:80 web/http\n" },
                { .promise = "unready addresses",
                  .services = "[" SERVICE("web", "'publishNotReadyAddresses':true," HTTP) "]",
                  .slices = "[" SLICE("a", "web", HTTP_8080, POD("10.1.0.1", A, "n1", "'ready':true,'serving':false")) "]",
                  .endpoints = "10.1.0.1 " A " n1 web/http=8080\n",
                  .problems = "NotReadyAddresses/PublishNotReady" },
        };

        check(rows, ELEMENTSOF(rows));
}

static void too_many_frontends_forbid_sleep(void **state)
{
        struct row row = { .promise = "many", .problems = "BoundExceeded/Frontends", .awake = true, .message = "have 4 addresses" };
        struct fixture fixture;
        struct resolution *resolution;
        char *services;
        size_t size;
        FILE *stream = open_memstream(&services, &size);

        fprintf(stream, "[");
        for (unsigned i = 0; i < 2; i++) {
                fprintf(stream, "%s{" META("web%u") ",'spec':{'selector':{'app':'web'},'clusterIPs':['10.0.0.1'],'externalIPs':[",
                        i ? "," : "", i);
                for (unsigned j = 0; j < 129; j++)
                        fprintf(stream, "%s'192.0.%u.%u'", j ? "," : "", i, j);
                fprintf(stream, "],'ports':[{'name':'http','port':%u,'targetPort':80}]}}", 80 + i);
        }
        fprintf(stream, "]");
        fclose(stream);
        row.services = services;

        fixture_fill(&fixture, &row);
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_frontends, STATUS_FRONTENDS_MAX);
        assert_row(&row, resolution);
        resolution_free(resolution);
        fixture_done(&fixture);
        free(services);
}

static void ports_with_names_are_remembered_at_zero_replicas(void **state)
{
        struct row row = { .promise = "ports",
                           .services = "[" SERVICE("web", "'ports':[{'name':'http','port':80,'targetPort':'h'}]") "]",
                           .ports = "web/http=8080" };
        struct status_port known[] = { { .backend = (char *)"web/http", .port = 8080, .protocol = 6 },
                                       { .backend = (char *)"gone/http", .port = 1, .protocol = 6 } };
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        fixture.object.status.ports = known;
        fixture.object.status.n_ports = 2;
        check_fixture(&fixture, &row);
        fixture_done(&fixture);
}

static void a_target_that_cannot_be_scaled_is_told(void **state)
{
        struct row row = { .promise = "target", .problems = "TargetUnusable/NotScalable", .awake = true, .labels = "" };
        struct fixture fixture;
        struct resolution *resolution;

        fixture_fill(&fixture, &row);
        fixture.target = (struct target_state){ .problem = "no scale" };
        check_fixture(&fixture, &row);

        fixture.target = (struct target_state){ .known = true };
        row.problems = "TargetUnusable/NotFound";
        row.message = "there is no Deployment \"web\"";
        check_fixture(&fixture, &row);

        fixture.object.policy = NULL; /* its spec is wrong */
        resolution = resolve_fixture(&fixture);
        assert_false(resolution->can_sleep);
        resolution_free(resolution);
        fixture_done(&fixture);
}

/* What a change of a Service makes due is what it could make a difference to. */
static void only_services_that_may_be_the_targets_matter(void **state)
{
        static const struct {
                struct row row;
                bool may;
        } cases[] = {
                { { .promise = "it selects the pods", .services = "[" SERVICE("web", HTTP) "]" }, true },
                { { .promise = "it selects others", .services = "[" SERVICE("web", HTTP) "]", .labels = "{'app':'db'}" }, false },
                { { .promise = "labels are not known", .services = "[" SERVICE("web", HTTP) "]", .labels = "" }, true },
                { { .promise = "it is named, whatever it selects",
                    .services = "[" SERVICE("web", HTTP) "]",
                    .labels = "{'app':'db'}",
                    .named = { "other", "web" } },
                  true },
                { { .promise = "others are named", .services = "[" SERVICE("web", HTTP) "]", .named = { "other" } }, false },
                { { .promise = "it selects nothing",
                    .services = "[{" META("web") ",'spec':{'clusterIPs':['10.0.0.1']," HTTP "}}]" },
                  false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct fixture fixture;

                fixture_fill(&fixture, &cases[i].row);
                if (resolve_may_use(&fixture.policy, &fixture.target, fixture.services[0]) != cases[i].may)
                        fail_msg("%s", cases[i].row.promise);
                fixture_done(&fixture);
        }
}

/* What a change of an EndpointSlice makes due is what uses its Service. */
static void the_services_that_are_used_are_told(void **state)
{
        static const struct row row = { .promise = "services",
                                        .services = "[" SERVICE("web", HTTP) "," SERVICE("admin", HTTP) ",{" META(
                                                "other") ",'spec':{'selector':{'app':'db'},'clusterIPs':['10.0.0.2']," HTTP "}}]" };
        _cleanup_(resolution_freep) struct resolution *resolution = NULL;
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        resolution = resolve_fixture(&fixture);
        assert_int_equal(resolution->n_services, 2);
        assert_string_equal(resolution->services[0], "admin");
        assert_string_equal(resolution->services[1], "web");
        fixture_done(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(services_become_frontends),
                cmocka_unit_test(what_cannot_be_held_is_told),
                cmocka_unit_test(too_many_frontends_forbid_sleep),
                cmocka_unit_test(ports_with_names_are_remembered_at_zero_replicas),
                cmocka_unit_test(a_target_that_cannot_be_scaled_is_told),
                cmocka_unit_test(only_services_that_may_be_the_targets_matter),
                cmocka_unit_test(the_services_that_are_used_are_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
