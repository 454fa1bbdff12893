/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of Services and EndpointSlices, as tables: objects as the API server sends them, and what is made of them in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controller/resolve.h"

enum { OBJECTS_MAX = 64 };

struct row {
        const char *promise;
        const char *services, *slices; /* arrays, with ' for " */
        const char *frontends;         /* one a line, as below; NULL: not looked at */
        const char *endpoints;
        const char *nodes;
        const char *ports;
        const char *problems; /* "Type/Reason" each, blank between */
        const char *named[3]; /* spec.services */
        const char *kind;     /* Deployment where not given */
        const char *labels;   /* {'app':'web'} where not given; "": not known */
        const char *message;  /* part of the first problem's */
        bool awake;           /* can_sleep is false */
        bool partial;         /* labels */
        bool readiness_ready;
};

struct fixture {
        struct kube_service *services[OBJECTS_MAX];
        struct kube_endpoint_slice *slices[OBJECTS_MAX];
        struct policy policy;
        struct scale_to_zero object;
        struct target_state target;
        struct resolve_input input;
        json_t *labels;
        char *named[4];
};

static json_t *json(const char *text)
{
        _cleanup_(freep) char *copy = strdup(text);
        json_error_t error;
        json_t *object;

        for (char *c = copy; *c; c++)
                if (*c == '\'')
                        *c = '"';
        object = json_loads(copy, 0, &error);
        if (!object)
                fail_msg("%s: %s", error.text, copy);
        return object;
}

static void read_services(struct fixture *fixture, const char *text)
{
        json_t *list = json(text ? text : "[]"), *entry;
        const char *field = "";
        size_t i;

        json_array_foreach(list, i, entry)
                assert_int_equal(kube_service_read(entry, &fixture->services[i], &field), 0);
        fixture->input.services = (const struct kube_service *const *)fixture->services;
        fixture->input.n_services = i;
        json_decref(list);
}

static void read_slices(struct fixture *fixture, const char *text)
{
        json_t *list = json(text ? text : "[]"), *entry;
        const char *field = "";
        size_t i;

        json_array_foreach(list, i, entry)
                assert_int_equal(kube_endpoint_slice_read(entry, &fixture->slices[i], &field), 0);
        fixture->input.slices = (const struct kube_endpoint_slice *const *)fixture->slices;
        fixture->input.n_slices = i;
        json_decref(list);
}

static void fixture_fill(struct fixture *fixture, const struct row *row)
{
        const char *labels = row->labels ? row->labels : "{'app':'web'}";

        *fixture = (struct fixture){ 0 };
        read_services(fixture, row->services);
        read_slices(fixture, row->slices);
        for (size_t i = 0; i < ELEMENTSOF(row->named) && row->named[i]; i++)
                fixture->named[i] = (char *)row->named[i];
        fixture->policy.cluster = (struct cluster_settings){
                .reference = { .api_version = (char *)"apps/v1",
                               .kind = (char *)(row->kind ? row->kind : "Deployment"),
                               .name = (char *)"web" },
                .services = row->named[0] ? fixture->named : NULL,
                .readiness = row->readiness_ready ? READINESS_READY : READINESS_PROBE,
        };
        fixture->labels = *labels ? json(labels) : NULL;
        fixture->object.policy = &fixture->policy;
        fixture->target = (struct target_state){
                .known = true, .exists = true, .pod_labels = fixture->labels, .labels_partial = row->partial
        };
        fixture->input.object = &fixture->object;
        fixture->input.target = &fixture->target;
}

static void fixture_done(struct fixture *fixture)
{
        for (size_t i = 0; i < OBJECTS_MAX; i++) {
                kube_service_free(fixture->services[i]);
                kube_endpoint_slice_free(fixture->slices[i]);
        }
        json_decref(fixture->labels);
}

static char *frontends_text(const struct resolution *resolution)
{
        static const char *const origins[] = { "cluster", "node", "external", "balancer", "parking" };
        char text[FRONTEND_TEXT_MAX], range[PREFIX_TEXT_MAX], *result;
        size_t size;
        FILE *stream = open_memstream(&result, &size);

        for (size_t i = 0; i < resolution->n_frontends; i++) {
                const struct status_frontend *frontend = &resolution->frontends[i];

                fprintf(stream, "%s %s %s", origins[frontend->origin], frontend_format(&frontend->frontend, text),
                        frontend->backend);
                if (frontend->node)
                        fprintf(stream, " on %s", frontend->node);
                if (frontend->local)
                        fprintf(stream, " local");
                if (frontend->affinity)
                        fprintf(stream, " affinity");
                for (size_t j = 0; j < frontend->n_source_ranges; j++)
                        fprintf(stream, " from %s", prefix_format(&frontend->source_ranges[j], range));
                fputc('\n', stream);
        }
        fclose(stream);
        return result;
}

static char *endpoints_text(const struct resolution *resolution)
{
        char address[ADDRESS_TEXT_MAX], *result;
        size_t size;
        FILE *stream = open_memstream(&result, &size);

        for (size_t i = 0; i < resolution->n_endpoints; i++) {
                const struct status_endpoint *endpoint = &resolution->endpoints[i];

                fprintf(stream, "%s %s %s%s", address_format(&endpoint->address, address), endpoint->pod,
                        endpoint->node ? endpoint->node : "-", endpoint->ready ? " ready" : "");
                for (size_t j = 0; j < endpoint->n_ports; j++)
                        fprintf(stream, " %s=%u%s", endpoint->ports[j].backend, endpoint->ports[j].port,
                                endpoint->ports[j].protocol == 17 ? "u" : "");
                if (endpoint->probe.type != PROBE_NONE)
                        fprintf(stream, " probe %u", endpoint->probe.port);
                fputc('\n', stream);
        }
        fclose(stream);
        return result;
}

static char *ports_text(const struct resolution *resolution)
{
        char *result;
        size_t size;
        FILE *stream = open_memstream(&result, &size);

        for (size_t i = 0; i < resolution->n_ports; i++)
                fprintf(stream, "%s%s=%u%s", i > 0 ? " " : "", resolution->ports[i].backend, resolution->ports[i].port,
                        resolution->ports[i].protocol == 17 ? "u" : "");
        fclose(stream);
        return result;
}

static char *words_text(const struct resolution *resolution, bool problems)
{
        char *result;
        size_t size;
        FILE *stream = open_memstream(&result, &size);

        for (size_t i = 0; problems && i < resolution->n_problems; i++)
                fprintf(stream, "%s%s/%s", i > 0 ? " " : "", resolution->problems[i].type, resolution->problems[i].reason);
        for (size_t i = 0; !problems && i < resolution->n_nodes; i++)
                fprintf(stream, "%s%s", i > 0 ? " " : "", resolution->nodes[i]);
        fclose(stream);
        return result;
}

static void assert_text(const char *promise, const char *what, char *is, const char *wanted)
{
        if (wanted && strcmp(is, wanted) != 0)
                fail_msg("%s: %s are\n%s\nand not\n%s", promise, what, is, wanted);
        free(is);
}

static void assert_row(const struct row *row, const struct resolution *resolution)
{
        const char *no_problem = row->problems ? row->problems : "";

        assert_text(row->promise, "frontends", frontends_text(resolution), row->frontends);
        assert_text(row->promise, "endpoints", endpoints_text(resolution), row->endpoints);
        assert_text(row->promise, "nodes", words_text(resolution, false), row->nodes);
        assert_text(row->promise, "ports", ports_text(resolution), row->ports);
        assert_text(row->promise, "problems", words_text(resolution, true), no_problem);
        if (row->message && !strstr(resolution->problems[0].message, row->message))
                fail_msg("%s: the message is \"%s\"", row->promise, resolution->problems[0].message);
        if (resolution->can_sleep == row->awake)
                fail_msg("%s: can_sleep is %d", row->promise, resolution->can_sleep);
}

static void check(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct fixture fixture;
                struct resolution *resolution;

                fixture_fill(&fixture, &rows[i]);
                assert_int_equal(resolve(&fixture.input, &resolution), 0);
                assert_row(&rows[i], resolution);
                resolution_free(resolution);
                fixture_done(&fixture);
        }
}

/* Objects. */
#define META(name) "'metadata':{'namespace':'shop','name':'" name "'}"
#define SERVICE(name, more)                                                                                                        \
        "{" META(name) ",'spec':{'selector':{'app':'web'},'clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1']," more "}}"
#define HTTP "'ports':[{'name':'http','port':80,'targetPort':8080}]"
#define SLICE(name, service, ports, endpoints)                                                                                     \
        "{'metadata':{'namespace':'shop','name':'" name "','labels':{'kubernetes.io/service-name':'" service                       \
        "','endpointslice.kubernetes.io/managed-by':'endpointslice-controller.k8s.io'}},'addressType':'IPv4','ports':" ports       \
        ",'endpoints':[" endpoints "]}"
#define HTTP_8080 "[{'name':'http','port':8080,'protocol':'TCP'}]"
#define POD(address, name, node, conditions)                                                                                       \
        "{'addresses':['" address "'],'conditions':{" conditions "},'nodeName':'" node "','targetRef':{'kind':'Pod','name':'" name \
        "','uid':'uid-" name "'}}"
#define READY "'ready':true,'serving':true"
#define UNREADY "'ready':false,'serving':false"
#define A "web-7d9f-bcdf2"
#define B "web-7d9f-bcdf4"
#define C "web-7d9f-bcdf5"

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
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
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
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_int_equal(resolution->n_ready, 0);
        assert_int_equal(resolution->n_endpoints, 0);
        assert_int_equal(resolution->n_nodes, 2); /* they run: whether they are idle is another question */
        resolution = resolution_free(resolution);

        kube_endpoint_slice_free(fixture.slices[0]);
        read_slices(&fixture, next.slices);
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
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
        _cleanup_(resolution_freep) struct resolution *resolution = NULL;
        struct fixture fixture;

        fixture_fill(&fixture, &row);
        assert_int_equal(kube_endpoint_slice_unreadable("shop/broken", &fixture.slices[1]), 0);
        assert_string_equal(fixture.slices[1]->metadata.namespace, "shop");
        fixture.input.n_slices = 2;
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_row(&row, resolution);
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
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
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
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_int_equal(resolution->n_frontends, STATUS_FRONTENDS_MAX);
        assert_row(&row, resolution);
        resolution_free(resolution);
        fixture_done(&fixture);
        free(services);
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
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_row(&row, resolution);
        assert_int_equal(resolution->endpoints[0].started_realtime_ns, 7);
        assert_string_equal(resolution->endpoints[0].probe.headers[0], "A: b");
        resolution_free(resolution);
        fixture_done(&fixture);
}

static void ports_with_names_are_remembered_at_zero_replicas(void **state)
{
        struct row row = { .promise = "ports",
                           .services = "[" SERVICE("web", "'ports':[{'name':'http','port':80,'targetPort':'h'}]") "]",
                           .ports = "web/http=8080" };
        struct status_port known[] = { { .backend = (char *)"web/http", .port = 8080, .protocol = 6 },
                                       { .backend = (char *)"gone/http", .port = 1, .protocol = 6 } };
        struct fixture fixture;
        struct resolution *resolution;

        fixture_fill(&fixture, &row);
        fixture.object.status.ports = known;
        fixture.object.status.n_ports = 2;
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_row(&row, resolution);
        resolution_free(resolution);
        fixture_done(&fixture);
}

static void a_target_that_cannot_be_scaled_is_told(void **state)
{
        struct row row = { .promise = "target", .problems = "TargetUnusable/NotScalable", .awake = true, .labels = "" };
        struct fixture fixture;
        struct resolution *resolution;

        fixture_fill(&fixture, &row);
        fixture.target = (struct target_state){ .problem = "no scale" };
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_row(&row, resolution);
        resolution_free(resolution);

        fixture.target = (struct target_state){ .known = true };
        row.problems = "TargetUnusable/NotFound";
        row.message = "there is no Deployment \"web\"";
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_row(&row, resolution);
        resolution_free(resolution);

        fixture.object.policy = NULL; /* its spec is wrong */
        assert_int_equal(resolve(&fixture.input, &resolution), 0);
        assert_false(resolution->can_sleep);
        resolution_free(resolution);
        fixture_done(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(services_become_frontends),
                cmocka_unit_test(what_cannot_be_held_is_told),
                cmocka_unit_test(slices_become_endpoints),
                cmocka_unit_test(whose_pod_it_is_is_known_by_its_name),
                cmocka_unit_test(pods_are_counted_once_a_node),
                cmocka_unit_test(pods_of_before_the_sleep_are_no_endpoints_of_the_wake),
                cmocka_unit_test(a_slice_that_cannot_be_read_forbids_sleep),
                cmocka_unit_test(the_bound_spreads_over_nodes),
                cmocka_unit_test(too_many_frontends_forbid_sleep),
                cmocka_unit_test(probes_and_parking_are_attached),
                cmocka_unit_test(ports_with_names_are_remembered_at_zero_replicas),
                cmocka_unit_test(a_target_that_cannot_be_scaled_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
