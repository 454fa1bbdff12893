/* SPDX-License-Identifier: Apache-2.0 */
/* lull's own objects: what is written is what is read again, what is absent has its default, and what is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "base/time.h"
#include "kube/micro_time.h"
#include "kube/node_activity.h"
#include "kube/scale_to_zero.h"
#include "unit/quoted_json.h"

#define METADATA "'metadata':{'namespace':'shop','name':'web','resourceVersion':'7','generation':3}"
#define SPEC "'spec':{'target':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}}"

static const char full_status[] =
        "{'phase':'Waking','epoch':4,'holding':true,'since':'2026-01-31T12:00:00.250000Z','replicasBefore':3,"
        "'frontends':["
        "{'address':'10.0.0.1','port':80,'protocol':'TCP','origin':'ClusterIP','backend':'web/http','local':false,'affinity':true},"
        "{'address':'0.0.0.0','port':30053,'protocol':'UDP','origin':'NodePort','backend':'web/dns','local':true,'affinity':false},"
        "{'address':'203.0.113.9','port':80,'protocol':'TCP','origin':'LoadBalancer','backend':'web/http',"
        "'sourceRanges':['198.51.100.0/24','2001:db8::/32'],'local':false,'affinity':false},"
        "{'address':'192.0.2.7','port':80,'protocol':'TCP','origin':'ExternalIP','backend':'web/http','local':false,'affinity':false},"
        "{'address':'fd77::11','port':42000,'protocol':'TCP','origin':'Parking','backend':'web/http','node':'n1','local':false,"
        "'affinity':false}],"
        "'endpoints':["
        "{'address':'10.77.1.5','node':'n1','pod':'web-1','podUID':'u1','ready':true,'startedAt':'2026-01-31T12:00:01.000000Z',"
        "'ports':[{'backend':'web/http','port':8080,'protocol':'TCP'}],"
        "'probe':{'type':'HTTP','port':8081,'tls':true,'path':'/ready','host':'web.example','headers':['X-A: b','X-C: d'],"
        "'timeoutSeconds':2,'initialDelaySeconds':5,'successThreshold':3}},"
        "{'address':'10.77.2.5','ready':false,'ports':[],"
        "'probe':{'type':'TCP','port':8080,'tls':false,'timeoutSeconds':1,'initialDelaySeconds':0,'successThreshold':1}},"
        "{'address':'fd00::5','ready':false,'ports':[]}],"
        "'selector':'app=web,tier in (a,b)','ports':[{'backend':'web/http','port':8080,'protocol':'TCP'}],"
        "'ignored':['10.77.1.9/32','fd00::9/128'],"
        "'lastWake':{'time':'2026-01-31T12:00:00.000001Z','cause':'Packet','source':'10.77.1.6:40000','node':'n2'},"
        "'lastSleep':{'time':'2026-01-31T11:00:00.000000Z','reason':'idle for 5m'},"
        "'savedReplicaSeconds':1234.5,'gpusBefore':2,'savedGpuSeconds':99.5,'idleFactor':4,'observedGeneration':3,"
        "'conditions':[{'type':'WakeFailed','status':'True','reason':'Unschedulable','message':'0/2 nodes are available',"
        "'lastTransitionTime':'2026-01-31T12:00:00.000000Z','observedGeneration':3},"
        "{'type':'DryRun','status':'False','reason':'Off','message':'','lastTransitionTime':'2026-01-31T10:00:00.000000Z',"
        "'observedGeneration':2}]}";

static struct scale_to_zero *read_object(const char *text)
{
        struct scale_to_zero *object = NULL;
        const char *field = "nothing";
        json_t *source = json(text);
        int r = scale_to_zero_read(source, &object, &field);

        json_decref(source);
        if (r < 0)
                fail_msg("%s: %d, %s", text, r, field);
        return object;
}

static struct scale_to_zero *read_with_status(json_t *status)
{
        struct scale_to_zero *object = NULL;
        const char *field = "nothing";
        json_t *source = json("{" METADATA "," SPEC "}");
        int r;

        json_object_set_new(source, "status", status);
        r = scale_to_zero_read(source, &object, &field);
        json_decref(source);
        if (r < 0)
                fail_msg("%d, %s", r, field);
        return object;
}

static void assert_json_equal(const json_t *a, const json_t *b)
{
        if (!json_equal(a, b)) {
                _cleanup_(freep) char *left = json_dumps(a, JSON_SORT_KEYS | JSON_INDENT(1));
                _cleanup_(freep) char *right = json_dumps(b, JSON_SORT_KEYS | JSON_INDENT(1));

                fail_msg("%s\n---\n%s", left, right);
        }
}

static void a_status_is_written_as_it_was_read(void **state)
{
        json_t *status = json(full_status), *written;
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = read_with_status(json_incref(status));

        written = scale_to_zero_status_json(&object->status);
        assert_non_null(written);
        assert_json_equal(status, written);
        json_decref(written);
        json_decref(status);
}

static void every_field_of_a_status_is_read(void **state)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = read_with_status(json(full_status));
        const struct scale_to_zero_status *status = &object->status;
        struct address pod;

        assert_int_equal(status->phase, PHASE_WAKING);
        assert_int_equal(status->epoch, 4);
        assert_true(status->holding);
        assert_int_equal(status->since_realtime_ns, UINT64_C(1769860800250000000));
        assert_int_equal(status->replicas_before, 3);
        assert_int_equal(status->n_frontends, 5);
        assert_int_equal(status->frontends[1].frontend.protocol, IPPROTO_UDP);
        assert_int_equal(status->frontends[1].frontend.port, 30053);
        assert_true(address_is_wildcard(&status->frontends[1].frontend.address));
        assert_true(status->frontends[0].affinity && status->frontends[1].local);
        assert_int_equal(status->frontends[2].n_source_ranges, 2);
        assert_int_equal(status->frontends[4].origin, FRONTEND_PARKING);
        assert_string_equal(status->frontends[4].node, "n1");
        assert_int_equal(status->n_endpoints, 3);
        assert_int_equal(address_parse("10.77.1.5", &pod), 0);
        assert_true(address_equal(&status->endpoints[0].address, &pod));
        assert_int_equal(status->endpoints[0].started_realtime_ns, UINT64_C(1769860801000000000));
        assert_int_equal(status->endpoints[0].probe.type, PROBE_HTTP);
        assert_int_equal(status->endpoints[0].probe.initial_delay_ns, 5 * NSEC_PER_SEC);
        assert_string_equal(status->endpoints[0].probe.headers[1], "X-C: d");
        assert_null(status->endpoints[0].probe.headers[2]);
        assert_int_equal(status->endpoints[1].probe.type, PROBE_TCP);
        assert_null(status->endpoints[1].probe.path);
        assert_int_equal(status->endpoints[2].probe.type, PROBE_NONE);
        assert_string_equal(status->selector, "app=web,tier in (a,b)");
        assert_int_equal(status->n_ports, 1);
        assert_int_equal(status->ports[0].port, 8080);
        assert_int_equal(status->n_ignored, 2);
        assert_string_equal(status->last_wake.source, "10.77.1.6:40000");
        assert_string_equal(status->last_sleep_reason, "idle for 5m");
        assert_int_equal(status->observed_generation, 3);
        assert_true(status_find_condition(status, "WakeFailed")->holds);
        assert_false(status_find_condition(status, "DryRun")->holds);
        assert_null(status_find_condition(status, "Flapping"));
}

static void an_object_without_a_status_is_awake_and_holds_nothing(void **state)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = read_object("{" METADATA "," SPEC "}");

        assert_string_equal(object->metadata.name, "web");
        assert_int_equal(object->metadata.generation, 3);
        assert_string_equal(object->policy->name, "shop/web");
        assert_null(object->policy_problem);
        assert_false(object->has_finalizer);
        assert_null(object->wake_requested);
        assert_int_equal(object->status.phase, PHASE_AWAKE);
        assert_false(object->status.holding);
        assert_string_equal(object->status.selector, "");
        assert_int_equal(object->status.since_realtime_ns, 0);
}

/* Null is what makes a merge patch remove a field: left out, the old value would stay. */
static void what_an_empty_status_does_not_have_is_written_as_null_or_an_empty_list(void **state)
{
        static const char *const nulls[] = { "since", "replicasBefore", "lastWake", "lastSleep" };
        static const char *const lists[] = { "frontends", "endpoints", "ports", "ignored", "conditions" };
        json_t *written = scale_to_zero_status_json(&(struct scale_to_zero_status){ 0 });
        json_t *full = json(full_status);
        const char *name;
        json_t *value;

        for (size_t i = 0; i < ELEMENTSOF(nulls); i++)
                assert_true(json_is_null(json_object_get(written, nulls[i])));
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                assert_true(json_is_array(json_object_get(written, lists[i])));
        json_object_foreach(full, name, value)
                assert_non_null(json_object_get(written, name));
        json_decref(full);
        json_decref(written);
}

static void a_wake_without_a_packet_removes_who_sent_the_last_one(void **state)
{
        struct scale_to_zero_status status = { .last_wake = { .realtime_ns = NSEC_PER_SEC, .cause = (char *)"Manual" } };
        json_t *written = scale_to_zero_status_json(&status), *wake = json_object_get(written, "lastWake");

        assert_true(json_is_null(json_object_get(wake, "source")));
        assert_true(json_is_null(json_object_get(wake, "node")));
        assert_string_equal(json_string_value(json_object_get(wake, "time")), "1970-01-01T00:00:01.000000Z");
        json_decref(written);
}

static void the_finalizer_and_what_operators_ask_for_are_read(void **state)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = read_object(
                "{'metadata':{'namespace':'shop','name':'web','finalizers':['other','lull.dev/wake-before-removal'],"
                "'deletionTimestamp':'2026-01-31T12:00:00Z','annotations':{'lull.dev/wake':'1','lull.dev/sleep':'now'}}," SPEC "}");

        assert_true(object->has_finalizer && object->metadata.deleting);
        assert_string_equal(object->wake_requested, "1");
        assert_string_equal(object->sleep_requested, "now");
}

static void a_wrong_spec_leaves_the_status_readable(void **state)
{
        _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = read_object(
                "{" METADATA ",'spec':{'target':{'apiVersion':'v1','kind':'Pod','name':'x'}},'status':{'phase':'Asleep'}}");

        assert_null(object->policy);
        assert_string_equal(object->policy_problem,
                            "spec.target.kind: \"Pod\" cannot be put to sleep: name the Deployment or what else makes it");
        assert_int_equal(object->status.phase, PHASE_ASLEEP);
}

#define ENDPOINT(fields) "'endpoints':[{'address':'10.0.0.1'," fields "}]"

static void wrong_fields_of_a_status_are_named(void **state)
{
        static const struct {
                const char *status, *field;
        } table[] = {
                { "'phase':'Dozing'", "status.phase" },
                { "'phase':1", "status.phase" },
                { "'epoch':'1'", "status.epoch" },
                { "'holding':'yes'", "status.holding" },
                { "'since':'yesterday'", "status.since" },
                { "'replicasBefore':-1", "status.replicasBefore" },
                { "'frontends':{}", "status.frontends" },
                { "'frontends':['x']", "status.frontends[].address" },
                { "'frontends':[{'address':'x','port':80,'origin':'NodePort','backend':'a/b'}]", "status.frontends[].address" },
                { "'frontends':[{'address':'::','port':0,'origin':'NodePort','backend':'a/b'}]", "status.frontends[].port" },
                { "'frontends':[{'address':'::','port':1,'protocol':'SCTP','origin':'NodePort','backend':'a/b'}]",
                  "status.frontends[].port" },
                { "'frontends':[{'address':'::','port':1,'origin':'Moon','backend':'a/b'}]", "status.frontends[].origin" },
                { "'frontends':[{'address':'::','port':1,'backend':'a/b'}]", "status.frontends[].origin" },
                { "'frontends':[{'address':'::','port':1,'origin':'NodePort'}]", "status.frontends[].backend" },
                { "'frontends':[{'address':'::','port':1,'origin':'NodePort','backend':'a','sourceRanges':['10.0.0.1/8']}]",
                  "status.frontends[].sourceRanges" },
                { "'endpoints':[{'address':'web.example'}]", "status.endpoints[].address" },
                { ENDPOINT("'ready':1"), "status.endpoints[].ready" },
                { ENDPOINT("'startedAt':'2026'"), "status.endpoints[].startedAt" },
                { ENDPOINT("'ports':[{'port':1}]"), "status.endpoints[].ports" },
                { ENDPOINT("'ports':[{'backend':'a/b','port':70000}]"), "status.endpoints[].ports" },
                { ENDPOINT("'probe':{'type':'Exec','port':1}"), "status.endpoints[].probe.type" },
                { ENDPOINT("'probe':{'type':'TCP'}"), "status.endpoints[].probe.port" },
                { ENDPOINT("'probe':{'type':'TCP','port':1,'headers':[1]}"), "status.endpoints[].probe.headers" },
                { ENDPOINT("'probe':{'type':'TCP','port':1,'timeoutSeconds':-1}"), "status.endpoints[].probe.timeoutSeconds" },
                { "'selector':[]", "status.selector" },
                { "'ports':[{'backend':'a/b','port':0}]", "status.ports" },
                { "'ignored':['x']", "status.ignored" },
                { "'lastWake':'now'", "status.lastWake" },
                { "'lastWake':{'time':1}", "status.lastWake.time" },
                { "'lastSleep':{'time':''}", "status.lastSleep.time" },
                { "'savedReplicaSeconds':'1'", "status.savedReplicaSeconds" },
                { "'savedGpuSeconds':'1'", "status.savedGpuSeconds" },
                { "'gpusBefore':-1", "status.gpusBefore" },
                { "'idleFactor':17", "status.idleFactor" },
                { "'observedGeneration':1.5", "status.observedGeneration" },
                { "'conditions':[{}]", "status.conditions[].type" },
                { "'conditions':[{'type':'A','status':true}]", "status.conditions[].status" },
                { "'conditions':[{'type':'A','lastTransitionTime':'x'}]", "status.conditions[].lastTransitionTime" },
        };
        char text[1024];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = NULL;
                const char *field = "nothing";
                json_t *source;

                snprintf(text, sizeof(text), "{" METADATA "," SPEC ",'status':{%s}}", table[i].status);
                source = json(text);
                if (scale_to_zero_read(source, &object, &field) != -EBADMSG || strcmp(field, table[i].field) != 0)
                        fail_msg("%s: %s", table[i].status, field);
                json_decref(source);
        }
}

static json_t *list_of(size_t n, const char *entry)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json(entry));
        return list;
}

static void lists_of_a_status_are_bounded(void **state)
{
        static const struct {
                const char *name, *entry;
                size_t max;
        } table[] = {
                { "frontends", "{'address':'::','port':1,'origin':'NodePort','backend':'a/b'}", STATUS_FRONTENDS_MAX },
                { "endpoints", "{'address':'::1'}", STATUS_ENDPOINTS_MAX },
                { "ports", "{'backend':'a/b','port':1}", STATUS_PORTS_MAX },
                { "conditions", "{'type':'A'}", STATUS_CONDITIONS_MAX },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(table); i++) {
                _cleanup_(scale_to_zero_freep) struct scale_to_zero *object = NULL;
                size_t over = i % 2, row = i / 2;
                json_t *source = json("{" METADATA "," SPEC ",'status':{}}");
                const char *field = NULL;

                json_object_set_new(json_object_get(source, "status"), table[row].name,
                                    list_of(table[row].max + over, table[row].entry));
                assert_int_equal(scale_to_zero_read(source, &object, &field), over ? -E2BIG : 0);
                json_decref(source);
        }
}

static const char full_activity[] =
        "{'programmed':4711,"
        "'demands':[{'policy':'shop/web','epoch':4,'firstPacket':'2026-01-31T12:00:00.123456Z','held':3,'source':'10.77.1.6:40000'},"
        "{'policy':'shop/api','epoch':0,'held':0}],"
        "'workloads':[{'policy':'shop/web','state':'Idle','quietEpoch':4,'since':'2026-01-31T12:00:00.000000Z','pods':2,"
        "'openRequests':1},"
        "{'policy':'shop/db','state':'Active','quietEpoch':-1,'pods':1,'openRequests':0,'reason':'a request is open'},"
        "{'policy':'shop/ml','state':'Unknown','quietEpoch':-1,'pods':1,'openRequests':0,'reason':'no cgroup',"
        "'gpu':{'state':'Stuck','devices':3,'since':'2026-01-31T11:00:00.000000Z','wouldSleep':true}}],"
        "'instance':'agent-1_5','problem':'hooks cannot be attached'}";

static struct node_activity *read_activity(const char *status)
{
        struct node_activity *activity = NULL;
        const char *field = "nothing";
        json_t *source = json("{'metadata':{'name':'n1','resourceVersion':'9'}}");
        int r;

        json_object_set_new(source, "status", json(status));
        r = node_activity_read(source, &activity, &field);
        json_decref(source);
        if (r < 0)
                fail_msg("%s: %d, %s", status, r, field);
        return activity;
}

static void an_activity_is_written_as_it_was_read(void **state)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = read_activity(full_activity);
        json_t *status = json(full_activity), *written = node_activity_status_json(activity);

        assert_json_equal(status, written);
        json_decref(written);
        json_decref(status);
}

static void every_field_of_an_activity_is_read(void **state)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = read_activity(full_activity);
        const struct node_demand *demand = node_activity_find_demand(activity, "shop/web");
        const struct node_workload *workload = node_activity_find_workload(activity, "shop/web");

        assert_string_equal(activity->metadata.name, "n1");
        assert_int_equal(activity->programmed, 4711);
        assert_int_equal(demand->epoch, 4);
        assert_int_equal(demand->first_realtime_ns, UINT64_C(1769860800123456000));
        assert_int_equal(demand->held, 3);
        assert_string_equal(demand->source, "10.77.1.6:40000");
        assert_null(node_activity_find_demand(activity, "shop/db"));
        assert_int_equal(workload->state, WORKLOAD_IDLE);
        assert_int_equal(workload->quiet_epoch, 4);
        assert_int_equal(workload->pods, 2);
        assert_int_equal(workload->open_requests, 1);
        assert_int_equal(node_activity_find_workload(activity, "shop/db")->state, WORKLOAD_ACTIVE);
        assert_int_equal(node_activity_find_workload(activity, "shop/ml")->state, WORKLOAD_UNKNOWN);
        assert_null(node_activity_find_workload(activity, "shop/none"));
        assert_string_equal(activity->instance, "agent-1_5");
        assert_string_equal(activity->problem, "hooks cannot be attached");
}

static void a_workload_of_which_nothing_is_said_is_unknown_and_has_not_voted(void **state)
{
        _cleanup_(node_activity_freep) struct node_activity *activity = read_activity("{'workloads':[{'policy':'a/b'}]}");

        assert_int_equal(activity->workloads[0].state, WORKLOAD_UNKNOWN);
        assert_int_equal(activity->workloads[0].quiet_epoch, -1);
        assert_int_equal(activity->programmed, 0);
}

static void a_gpu_of_which_nothing_is_said_is_unknown(void **state)
{
        _cleanup_(node_activity_freep) struct node_activity *activity =
                read_activity("{'workloads':[{'policy':'a/b','gpu':{}},{'policy':'a/c'}]}");

        assert_int_equal(activity->workloads[0].gpu.devices, 1);
        assert_int_equal(activity->workloads[0].gpu.state, NODE_GPU_UNKNOWN);
        assert_false(activity->workloads[0].gpu.would_sleep);
        assert_int_equal(activity->workloads[1].gpu.devices, 0);
}

static void an_activity_without_a_problem_removes_the_last_one(void **state)
{
        json_t *written = node_activity_status_json(&(struct node_activity){ 0 });

        assert_true(json_is_null(json_object_get(written, "problem")));
        assert_true(json_is_array(json_object_get(written, "demands")));
        assert_true(json_is_array(json_object_get(written, "workloads")));
        json_decref(written);
}

static void wrong_fields_of_an_activity_are_named(void **state)
{
        static const struct {
                const char *status, *field;
        } table[] = {
                { "{'programmed':-1}", "status.programmed" },
                { "{'programmed':'1'}", "status.programmed" },
                { "{'demands':1}", "status.demands" },
                { "{'demands':[{}]}", "status.demands[].policy" },
                { "{'demands':[{'policy':'a/b','epoch':'1'}]}", "status.demands[].epoch" },
                { "{'demands':[{'policy':'a/b','firstPacket':'1'}]}", "status.demands[].firstPacket" },
                { "{'demands':[{'policy':'a/b','held':-1}]}", "status.demands[].held" },
                { "{'demands':[{'policy':'a/b','source':1}]}", "status.demands[].source" },
                { "{'workloads':[{}]}", "status.workloads[].policy" },
                { "{'workloads':[{'policy':'a/b','state':'Busy'}]}", "status.workloads[].state" },
                { "{'workloads':[{'policy':'a/b','quietEpoch':true}]}", "status.workloads[].quietEpoch" },
                { "{'workloads':[{'policy':'a/b','since':1}]}", "status.workloads[].since" },
                { "{'workloads':[{'policy':'a/b','pods':1.5}]}", "status.workloads[].pods" },
                { "{'workloads':[{'policy':'a/b','openRequests':[]}]}", "status.workloads[].openRequests" },
                { "{'workloads':[{'policy':'a/b','reason':{}}]}", "status.workloads[].reason" },
                { "{'workloads':[{'policy':'a/b','gpu':1}]}", "status.workloads[].gpu" },
                { "{'workloads':[{'policy':'a/b','gpu':{'state':'Quiet'}}]}", "status.workloads[].gpu.state" },
                { "{'workloads':[{'policy':'a/b','gpu':{'devices':-1}}]}", "status.workloads[].gpu.devices" },
                { "{'workloads':[{'policy':'a/b','gpu':{'since':1}}]}", "status.workloads[].gpu.since" },
                { "{'workloads':[{'policy':'a/b','gpu':{'wouldSleep':1}}]}", "status.workloads[].gpu.wouldSleep" },
                { "{'problem':1}", "status.problem" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(node_activity_freep) struct node_activity *activity = NULL;
                json_t *source = json("{'metadata':{'name':'n1'}}");
                const char *field = "nothing";

                json_object_set_new(source, "status", json(table[i].status));
                if (node_activity_read(source, &activity, &field) != -EBADMSG || strcmp(field, table[i].field) != 0)
                        fail_msg("%s: %s", table[i].status, field);
                json_decref(source);
        }
}

static void lists_of_an_activity_are_bounded(void **state)
{
        static const struct {
                const char *name;
                size_t max;
        } table[] = { { "demands", NODE_ACTIVITY_DEMANDS_MAX }, { "workloads", NODE_ACTIVITY_WORKLOADS_MAX } };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(node_activity_freep) struct node_activity *activity = NULL;
                json_t *source = json("{'metadata':{'name':'n1'},'status':{}}");
                const char *field = NULL;

                json_object_set_new(json_object_get(source, "status"), table[i].name,
                                    list_of(table[i].max + 1, "{'policy':'a/b'}"));
                assert_int_equal(node_activity_read(source, &activity, &field), -E2BIG);
                json_decref(source);
        }
}

static void times_are_read_as_the_api_writes_them(void **state)
{
        static const struct {
                const char *text;
                uint64_t us;
        } good[] = {
                { "1970-01-01T00:00:00Z", 0 },
                { "2026-01-31T12:00:00Z", UINT64_C(1769860800000000) },
                { "2026-01-31T12:00:00.000001Z", UINT64_C(1769860800000001) },
                { "2026-01-31T12:00:00.5Z", UINT64_C(1769860800500000) },
                { "2026-01-31T12:00:00.123456789Z", UINT64_C(1769860800123456) },
                { "2026-01-31T13:30:00+01:30", UINT64_C(1769860800000000) },
                { "2026-01-31T04:00:00-08:00", UINT64_C(1769860800000000) },
                { "2262-04-11T00:00:00Z", UINT64_C(9223286400000000) },
        };
        static const char *const bad[] = {
                "",
                "2026-01-31",
                "2026-01-31T12:00:00",
                "2026-01-31T12:00:00.Z",
                "2026-01-31T12:00:00Zulu",
                "2026-01-31T12:00:00+1:00",
                "2026-01-31T12:00:00+01:00Z",
                "2026-13-31T12:00:00Z",
                "1969-12-31T23:59:59Z",
                "1970-01-01T00:00:00+01:00",
                "2263-01-01T00:00:00Z",
                "9999-12-31T23:59:59.99999999999999999999999999999999999Z",
        };
        char text[MICRO_TIME_TEXT_MAX];
        uint64_t us;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                us = 1;
                if (micro_time_parse(good[i].text, &us) != 0 || us != good[i].us)
                        fail_msg("%s: %llu", good[i].text, (unsigned long long)us);
                assert_int_equal(micro_time_parse(micro_time_format(us, text), &us), 0);
                assert_int_equal(us, good[i].us);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (micro_time_parse(bad[i], &us) != -EINVAL)
                        fail_msg("%s", bad[i]);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_status_is_written_as_it_was_read),
                cmocka_unit_test(every_field_of_a_status_is_read),
                cmocka_unit_test(an_object_without_a_status_is_awake_and_holds_nothing),
                cmocka_unit_test(what_an_empty_status_does_not_have_is_written_as_null_or_an_empty_list),
                cmocka_unit_test(a_wake_without_a_packet_removes_who_sent_the_last_one),
                cmocka_unit_test(the_finalizer_and_what_operators_ask_for_are_read),
                cmocka_unit_test(a_wrong_spec_leaves_the_status_readable),
                cmocka_unit_test(wrong_fields_of_a_status_are_named),
                cmocka_unit_test(lists_of_a_status_are_bounded),
                cmocka_unit_test(an_activity_is_written_as_it_was_read),
                cmocka_unit_test(every_field_of_an_activity_is_read),
                cmocka_unit_test(a_workload_of_which_nothing_is_said_is_unknown_and_has_not_voted),
                cmocka_unit_test(a_gpu_of_which_nothing_is_said_is_unknown),
                cmocka_unit_test(an_activity_without_a_problem_removes_the_last_one),
                cmocka_unit_test(wrong_fields_of_an_activity_are_named),
                cmocka_unit_test(lists_of_an_activity_are_bounded),
                cmocka_unit_test(times_are_read_as_the_api_writes_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
