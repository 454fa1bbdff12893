/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of Services and EndpointSlices, as tables: objects as the API server sends them, and what is made of them in words. */
#pragma once

#include <stdio.h>

#include "controller/resolve.h"
#include "unit/quoted_json.h"

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

static inline void read_services(struct fixture *fixture, const char *text)
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

static inline void read_slices(struct fixture *fixture, const char *text)
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

static inline void fixture_fill(struct fixture *fixture, const struct row *row)
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

static inline void fixture_done(struct fixture *fixture)
{
        for (size_t i = 0; i < OBJECTS_MAX; i++) {
                kube_service_free(fixture->services[i]);
                kube_endpoint_slice_free(fixture->slices[i]);
        }
        json_decref(fixture->labels);
}

static inline char *frontends_text(const struct resolution *resolution)
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

static inline char *endpoints_text(const struct resolution *resolution)
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

static inline char *ports_text(const struct resolution *resolution)
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

static inline char *words_text(const struct resolution *resolution, bool problems)
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

static inline void assert_text(const char *promise, const char *what, char *is, const char *wanted)
{
        if (wanted && strcmp(is, wanted) != 0)
                fail_msg("%s: %s are\n%s\nand not\n%s", promise, what, is, wanted);
        free(is);
}

static inline void assert_row(const struct row *row, const struct resolution *resolution)
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

static inline struct resolution *resolve_fixture(const struct fixture *fixture)
{
        struct resolution *resolution;

        assert_int_equal(resolve(&fixture->input, &resolution), 0);
        return resolution;
}

static inline void check_fixture(const struct fixture *fixture, const struct row *row)
{
        _cleanup_(resolution_freep) struct resolution *resolution = resolve_fixture(fixture);

        assert_row(row, resolution);
}

static inline void check(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct fixture fixture;

                fixture_fill(&fixture, &rows[i]);
                check_fixture(&fixture, &rows[i]);
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
