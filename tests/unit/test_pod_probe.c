/* SPDX-License-Identifier: Apache-2.0 */
/* Which probe an agent may run for a pod: pods as the API server sends them, and what is made of them in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "controller/pod_probe.h"
#include "unit/quoted_json.h"

/* "http 8080 /ready host=h tls headers=A: b timeout=1 delay=0 times=1 started=0", "none", "none pending" */
static char *probe_text(const struct pod_probe *probe)
{
        const struct status_probe *settings = &probe->probe;
        char *text;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (settings->type == PROBE_NONE) {
                fprintf(stream, probe->pending ? "none pending" : "none");
        } else {
                fprintf(stream, "%s %u", settings->type == PROBE_HTTP ? "http" : "tcp", settings->port);
                fprintf(stream, "%s%s", settings->path ? " " : "", settings->path ? settings->path : "");
                fprintf(stream, "%s%s", settings->host ? " host=" : "", settings->host ? settings->host : "");
                fprintf(stream, "%s", settings->tls ? " tls" : "");
                for (size_t i = 0; settings->headers && settings->headers[i]; i++)
                        fprintf(stream, " [%s]", settings->headers[i]);
                if (settings->timeout_ns != NSEC_PER_SEC)
                        fprintf(stream, " timeout=%u", (unsigned)(settings->timeout_ns / NSEC_PER_SEC));
                if (settings->initial_delay_ns != 0)
                        fprintf(stream, " delay=%u", (unsigned)(settings->initial_delay_ns / NSEC_PER_SEC));
                if (settings->success_threshold != 1)
                        fprintf(stream, " times=%u", settings->success_threshold);
                if (probe->started_realtime_ns != 0)
                        fprintf(stream, " started=%u", (unsigned)(probe->started_realtime_ns / NSEC_PER_SEC));
        }
        fclose(stream);
        return text;
}

#define GET "'httpGet':{'path':'/ready','port':8080,'scheme':'HTTP'}"
#define ONE(probes) "{'spec':{'containers':[{'name':'a','ports':[{'name':'web','containerPort':8081}]," probes "}]}}"
#define RUNNING(name, started) "{'name':'" name "','started':" started ",'state':{'running':{'startedAt':'2026-01-31T12:00:00Z'}}}"
#define WITH(probes, statuses) "{'spec':{'containers':[{'name':'a'," probes "}]},'status':{'containerStatuses':[" statuses "]}}"

static void only_a_probe_that_says_what_ready_says_is_run(void **state)
{
        static const struct {
                const char *pod, *probe;
        } cases[] = {
                /* defaults, all settings */
                { ONE("'readinessProbe':{" GET "}"), "http 8080 /ready" },
                { ONE("'readinessProbe':{'httpGet':{'port':'web'}}"), "http 8081 /" },
                { ONE("'readinessProbe':{'httpGet':{'port':'web','path':'ready?x=1'}}"), "http 8081 /ready?x=1" },
                { ONE("'readinessProbe':{'tcpSocket':{'port':8080}}"), "tcp 8080" },
                { ONE("'readinessProbe':{'timeoutSeconds':3,'successThreshold':2,'httpGet':{'path':'/r','port':8080,'scheme':'HTTPS',"
                      "'httpHeaders':[{'name':'A','value':'b'},{'name':'host','value':'h.example'},{'name':'C','value':''}]}}"),
                  "http 8080 /r host=h.example tls [A: b] [C: ] timeout=3 times=2" },
                { ONE("'readinessProbe':{'timeoutSeconds':0,'successThreshold':0," GET "}"), "http 8080 /ready" },

                /* what is left to the kubelet */
                { ONE("'image':'x'"), "none" },
                { ONE("'livenessProbe':{" GET "}"), "none" },
                { ONE("'readinessProbe':{'exec':{'command':['x']}}"), "none" },
                { ONE("'readinessProbe':{'grpc':{'port':8080}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':8080,'host':'other'}}"), "none" },
                { ONE("'readinessProbe':{'tcpSocket':{'port':8080,'host':'other'}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':8080,'protocol':'HTTP2'}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':8080,'protocol':'HTTP1'}}"), "http 8080 /" },
                { ONE("'readinessProbe':{'httpGet':{'port':'none'}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':0}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':8080,'path':'/a b'}}"), "none" },
                { ONE("'readinessProbe':{'httpGet':{'port':8080,'httpHeaders':[{'name':'A','value':'b\\r\\nC: d'}]}}"), "none" },
                { "{'spec':{'readinessGates':[{'conditionType':'x'}],'containers':[{'name':'a','readinessProbe':{" GET "}}]}}",
                  "none" },
                { "{'spec':{'containers':[{'name':'a','readinessProbe':{" GET "}},{'name':'b','readinessProbe':{" GET "}}]}}",
                  "none" },
                { "{'spec':{'initContainers':[{'name':'s','restartPolicy':'Always','readinessProbe':{" GET "}}],'containers':["
                  "{'name':'a','readinessProbe':{" GET "}}]}}",
                  "none" },
                { "{'spec':{'initContainers':[{'name':'s','restartPolicy':'Always','readinessProbe':{" GET "}}],'containers':["
                  "{'name':'a'}]}}",
                  "none" },
                { "{'spec':{'initContainers':[{'name':'s','restartPolicy':'Always'},{'name':'i'}],'containers':["
                  "{'name':'a','readinessProbe':{" GET "}}]}}",
                  "http 8080 /ready" },

                /* other containers must run already */
                { "{'spec':{'containers':[{'name':'a','readinessProbe':{" GET "}},{'name':'b'}]}}", "none pending" },
                { "{'spec':{'containers':[{'name':'a','readinessProbe':{" GET
                  "}},{'name':'b'}]},'status':{'containerStatuses':[" RUNNING("b", "true") "]}}",
                  "http 8080 /ready" },
                { "{'spec':{'containers':[{'name':'a','readinessProbe':{" GET
                  "}},{'name':'b'}]},'status':{'containerStatuses':[" RUNNING("b", "false") "]}}",
                  "none pending" },

                /* initialDelaySeconds counts from the container's start */
                { ONE("'readinessProbe':{'initialDelaySeconds':5," GET "}"), "none pending" },
                { WITH("'readinessProbe':{'initialDelaySeconds':5," GET "}", RUNNING("a", "true")),
                  "http 8080 /ready delay=5 started=1769860800" },
                { WITH("'readinessProbe':{'initialDelaySeconds':5," GET "}", "{'name':'a','state':{'waiting':{}}}"),
                  "none pending" },

                /* the startup probe comes first: it must have passed, or be proven by ours */
                { ONE("'readinessProbe':{" GET "},'startupProbe':{" GET "}"), "http 8080 /ready" },
                { ONE("'readinessProbe':{" GET "},'startupProbe':{'httpGet':{'path':'/up','port':8080}}"), "http 8080 /ready" },
                { ONE("'readinessProbe':{" GET "},'startupProbe':{'tcpSocket':{'port':8080}}"), "http 8080 /ready" },
                { ONE("'readinessProbe':{'tcpSocket':{'port':8080}},'startupProbe':{'tcpSocket':{'port':8080}}"), "tcp 8080" },
                { ONE("'readinessProbe':{'tcpSocket':{'port':8080}},'startupProbe':{" GET "}"), "none pending" },
                { ONE("'readinessProbe':{" GET "},'startupProbe':{'httpGet':{'path':'/up','port':'web'}}"), "none pending" },
                { ONE("'readinessProbe':{" GET "},'startupProbe':{'exec':{}}"), "none pending" },
                { WITH("'readinessProbe':{" GET "},'startupProbe':{'exec':{}}", RUNNING("a", "true")),
                  "http 8080 /ready started=1769860800" },
                { WITH("'readinessProbe':{" GET "},'startupProbe':{'exec':{}}", RUNNING("a", "false")), "none pending" },
                { WITH("'readinessProbe':{'initialDelaySeconds':2," GET "},'startupProbe':{'initialDelaySeconds':9," GET "}",
                       RUNNING("a", "false")),
                  "http 8080 /ready delay=9 started=1769860800" },
                { WITH("'readinessProbe':{" GET "},'startupProbe':{'initialDelaySeconds':9," GET "}", RUNNING("a", "true")),
                  "http 8080 /ready started=1769860800" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *pod = json(cases[i].pod);
                struct pod_probe probe;
                _cleanup_(freep) char *text = NULL;

                assert_int_equal(pod_probe_read(pod, &probe), 0);
                json_decref(pod);
                text = probe_text(&probe);
                if (strcmp(text, cases[i].probe) != 0)
                        fail_msg("%s\nis \"%s\" and not \"%s\"", cases[i].pod, text, cases[i].probe);
                pod_probe_done(&probe);
        }
}

static void more_headers_than_a_status_has_are_left_to_the_kubelet(void **state)
{
        json_t *pod = json(ONE("'readinessProbe':{" GET "}")), *headers = json_array();
        json_t *container = json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
        struct pod_probe probe;

        json_object_set_new(json_object_get(json_object_get(container, "readinessProbe"), "httpGet"), "httpHeaders", headers);
        for (int i = 0; i < STATUS_HEADERS_MAX; i++)
                json_array_append_new(headers, json_pack("{s:s,s:s}", "name", "A", "value", "b"));
        assert_int_equal(pod_probe_read(pod, &probe), 0);
        assert_int_equal(probe.probe.type, PROBE_HTTP);
        pod_probe_done(&probe);
        json_array_append_new(headers, json_pack("{s:s,s:s}", "name", "A", "value", "b"));
        assert_int_equal(pod_probe_read(pod, &probe), 0);
        assert_int_equal(probe.probe.type, PROBE_NONE);
        json_decref(pod);
}

static void what_is_no_pod_is_refused(void **state)
{
        static const char *const cases[] = { "{}", "[]", "{'spec':[]}", "{'spec':{'containers':{}}}" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *pod = json(cases[i]);
                struct pod_probe probe;

                assert_int_equal(pod_probe_read(pod, &probe), -EBADMSG);
                json_decref(pod);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_a_probe_that_says_what_ready_says_is_run),
                cmocka_unit_test(more_headers_than_a_status_has_are_left_to_the_kubelet),
                cmocka_unit_test(what_is_no_pod_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
