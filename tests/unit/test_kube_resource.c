/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as the API server sends them, the defaults of what it leaves out, and the names of fields that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "kube/counters.h"
#include "kube/patch.h"
#include "kube/resource.h"
#include "kube/status.h"
#include "unit/quoted_json.h"

/* The @kind that @text is. */
#define READ(kind, text)                                                                                                           \
        ({                                                                                                                         \
                struct kube_##kind *_read = NULL;                                                                                  \
                const char *_field = NULL;                                                                                         \
                json_t *_object = json(text);                                                                                      \
                assert_int_equal(kube_##kind##_read(_object, &_read, &_field), 0);                                                 \
                json_decref(_object);                                                                                              \
                _read;                                                                                                             \
        })

static void assert_address(const struct address *address, const char *text)
{
        char buffer[ADDRESS_TEXT_MAX];

        assert_string_equal(address_format(address, buffer), text);
}

static void a_service_is_read(void **state)
{
        _cleanup_(kube_service_freep) struct kube_service *service =
                READ(service, "{'metadata':{'namespace':'shop','name':'web','uid':'u','resourceVersion':'7'},"
                              "'spec':{'type':'LoadBalancer','clusterIP':'10.0.0.1','clusterIPs':['10.0.0.1','fd00::1'],"
                              "'externalIPs':['192.0.2.7'],'loadBalancerSourceRanges':['198.51.100.0/24'],"
                              "'externalTrafficPolicy':'Local','internalTrafficPolicy':'Cluster','sessionAffinity':'None',"
                              "'selector':{'app':'web'},'ports':["
                              "{'name':'http','protocol':'TCP','port':80,'targetPort':8080,'nodePort':30080},"
                              "{'name':'dns','protocol':'UDP','port':53,'targetPort':'named'},{'name':'plain','port':9}]},"
                              "'status':{'loadBalancer':{'ingress':[{'hostname':'a.example'},{'ip':'203.0.113.9'},"
                              "{'ip':'203.0.113.10','ipMode':'Proxy'}]}}}");

        assert_string_equal(service->metadata.namespace, "shop");
        assert_string_equal(service->metadata.resource_version, "7");
        assert_false(service->headless || service->external_name || service->internal_local || service->client_affinity);
        assert_true(service->external_local);
        assert_int_equal(service->n_cluster_ips, 2);
        assert_address(&service->cluster_ips[1], "fd00::1");
        assert_address(&service->external_ips[0], "192.0.2.7");
        assert_int_equal(service->n_load_balancer_ips, 1);
        assert_address(&service->load_balancer_ips[0], "203.0.113.9");
        assert_int_equal(service->n_source_ranges, 1);
        assert_int_equal(service->n_ports, 3);
        assert_int_equal(service->ports[0].target_port, 8080);
        assert_int_equal(service->ports[0].node_port, 30080);
        assert_int_equal(service->ports[1].protocol, IPPROTO_UDP);
        assert_string_equal(service->ports[1].target_name, "named");
        assert_int_equal(service->ports[1].target_port, 0);
        assert_int_equal(service->ports[2].protocol, IPPROTO_TCP);
        assert_int_equal(service->ports[2].target_port, 9);
        assert_string_equal(json_string_value(json_object_get(service->selector, "app")), "web");
}

static void a_headless_service_has_no_addresses(void **state)
{
        _cleanup_(kube_service_freep) struct kube_service *service =
                READ(service, "{'metadata':{'name':'web'},'spec':{'clusterIP':'None','clusterIPs':['None'],'selector':{}}}");

        assert_true(service->headless);
        assert_int_equal(service->n_cluster_ips, 0);
        assert_null(service->selector);
        assert_string_equal(service->metadata.namespace, "");
}

static void conditions_of_an_endpoint_have_their_defaults(void **state)
{
        _cleanup_(kube_endpoint_slice_freep) struct kube_endpoint_slice *slice = READ(
                endpoint_slice, "{'metadata':{'name':'web-1','labels':{'kubernetes.io/service-name':'web',"
                                "'endpointslice.kubernetes.io/managed-by':'lull.dev'}},'addressType':'IPv4','endpoints':["
                                "{'addresses':['10.1.0.1']},"
                                "{'addresses':['10.1.0.2'],'conditions':{'ready':false,'serving':true,'terminating':true},"
                                "'nodeName':'n1','zone':'z','targetRef':{'kind':'Pod','name':'p','uid':'pu'}},"
                                "{'addresses':['10.1.0.3'],'conditions':{'ready':null},'targetRef':{'kind':'Node','name':'x'}}],"
                                "'ports':[{'name':'http','port':8080,'protocol':'TCP'},{'port':null}]}");

        assert_string_equal(slice->service, "web");
        assert_string_equal(slice->managed_by, "lull.dev");
        assert_int_equal(slice->n_endpoints, 3);
        assert_true(slice->endpoints[0].ready && slice->endpoints[0].serving && !slice->endpoints[0].terminating);
        assert_true(!slice->endpoints[1].ready && slice->endpoints[1].serving && slice->endpoints[1].terminating);
        assert_string_equal(slice->endpoints[1].pod, "p");
        assert_string_equal(slice->endpoints[1].node, "n1");
        assert_true(slice->endpoints[2].ready);
        assert_null(slice->endpoints[2].pod);
        assert_int_equal(slice->n_ports, 1);
        assert_int_equal(slice->ports[0].port, 8080);
}

static void the_slice_of_an_empty_service_is_empty(void **state)
{
        _cleanup_(kube_endpoint_slice_freep) struct kube_endpoint_slice *slice =
                READ(endpoint_slice, "{'metadata':{'name':'web-1'},'addressType':'IPv6','endpoints':null,'ports':null}");

        assert_int_equal(slice->n_endpoints + slice->n_ports, 0);
        assert_null(slice->service);
}

static void absent_replicas_mean_zero(void **state)
{
        _cleanup_(kube_scale_freep) struct kube_scale *scale =
                READ(scale, "{'metadata':{'name':'web','resourceVersion':'9'},'spec':{},'status':{'replicas':2,'selector':'a=b'}}");

        assert_int_equal(scale->replicas, 0);
        assert_int_equal(scale->current, 2);
        assert_string_equal(scale->selector, "a=b");
}

static void a_lease_without_a_holder_is_held_by_nobody(void **state)
{
        _cleanup_(kube_lease_freep) struct kube_lease *lease =
                READ(lease, "{'metadata':{'name':'lulld'},'spec':{'leaseDurationSeconds':15,'holderIdentity':null}}");

        assert_string_equal(lease->holder, "");
        assert_int_equal(lease->duration_seconds, 15);
        assert_string_equal(lease->renew_time, "");
}

static void a_pod_is_read(void **state)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod =
                READ(pod, "{'metadata':{'name':'web-x','namespace':'d','labels':{'app':'web'},'deletionTimestamp':'now',"
                          "'ownerReferences':[{'kind':'Other','name':'o','uid':'1'},"
                          "{'kind':'ReplicaSet','name':'web','uid':'2','controller':true}]},"
                          "'spec':{'nodeName':'n1','hostNetwork':true},'status':{'phase':'Running',"
                          "'podIPs':[{'ip':'10.0.0.9'},{'ip':'fd00::9'}],"
                          "'conditions':[{'type':'PodScheduled','status':'True'},{'type':'Ready','status':'True'}]}}");

        assert_true(pod->metadata.deleting && pod->host_network && pod->ready);
        assert_string_equal(pod->node, "n1");
        assert_string_equal(pod->owner_kind, "ReplicaSet");
        assert_int_equal(pod->n_addresses, 2);
        assert_address(&pod->addresses[1], "fd00::9");
}

enum kind { SERVICE, SLICE, SCALE, LEASE, POD };

static int read_kind(enum kind kind, const json_t *object, const char **ret_field)
{
        _cleanup_(kube_service_freep) struct kube_service *service = NULL;
        _cleanup_(kube_endpoint_slice_freep) struct kube_endpoint_slice *slice = NULL;
        _cleanup_(kube_scale_freep) struct kube_scale *scale = NULL;
        _cleanup_(kube_lease_freep) struct kube_lease *lease = NULL;
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;

        switch (kind) {
        case SERVICE:
                return kube_service_read(object, &service, ret_field);
        case SLICE:
                return kube_endpoint_slice_read(object, &slice, ret_field);
        case SCALE:
                return kube_scale_read(object, &scale, ret_field);
        case LEASE:
                return kube_lease_read(object, &lease, ret_field);
        case POD:
                return kube_pod_read(object, &pod, ret_field);
        }
        return -EINVAL;
}

static void wrong_fields_are_named(void **state)
{
        static const struct {
                enum kind kind;
                const char *rest; /* beside the metadata */
                const char *field;
        } rows[] = {
                { SERVICE, "'spec':[]", "spec" },
                { SERVICE, "'spec':{'clusterIP':1}", "spec.clusterIP" },
                { SERVICE, "'spec':{'clusterIP':'ten'}", "spec.clusterIP" },
                { SERVICE, "'spec':{'clusterIPs':['ten']}", "spec.clusterIPs[]" },
                { SERVICE, "'spec':{'ports':[{}]}", "spec.ports[].port" },
                { SERVICE, "'spec':{'ports':[{'port':65536}]}", "spec.ports[].port" },
                { SERVICE, "'spec':{'ports':[{'port':1,'targetPort':true}]}", "spec.ports[].targetPort" },
                { SERVICE, "'spec':{'ports':[{'port':1,'nodePort':-1}]}", "spec.ports[].nodePort" },
                { SERVICE, "'spec':{'selector':'all'}", "spec.selector" },
                { SERVICE, "'spec':{'loadBalancerSourceRanges':['x']}", "spec.loadBalancerSourceRanges" },
                { SERVICE, "'status':{'loadBalancer':{'ingress':[{'ip':'x'}]}}", "status.loadBalancer.ingress[].ip" },
                { SLICE, "'endpoints':{}", "endpoints" },
                { SLICE, "'endpoints':[{'addresses':['x']}]", "endpoints[].addresses[]" },
                { SLICE, "'endpoints':[{'conditions':{'ready':'yes'}}]", "endpoints[].conditions.ready" },
                { SLICE, "'ports':[{'port':'http'}]", "ports[].port" },
                { SCALE, "'spec':{'replicas':'1'}", "spec.replicas" },
                { SCALE, "'spec':{'replicas':-1}", "spec.replicas" },
                { SCALE, "'status':{'selector':{}}", "status.selector" },
                { LEASE, "'spec':{'leaseDurationSeconds':1.5}", "spec.leaseDurationSeconds" },
                { LEASE, "'spec':{'holderIdentity':1}", "spec.holderIdentity" },
                { POD, "'status':{'podIPs':[{'ip':'x'}]}", "status.podIPs[].ip" },
                { POD, "'status':{'conditions':{}}", "status.conditions" },
                { POD, "'spec':{'hostNetwork':'true'}", "spec.hostNetwork" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[256];
                const char *field = NULL;
                json_t *object;

                snprintf(text, sizeof(text), "{'metadata':{'name':'x'},%s}", rows[i].rest);
                object = json(text);
                assert_int_equal(read_kind(rows[i].kind, object, &field), -EBADMSG);
                json_decref(object);
                assert_string_equal(field, rows[i].field);
        }
}

static void an_object_without_a_name_is_refused_as_anything(void **state)
{
        static const char *const texts[] = { "{}", "[]", "null", "{'metadata':{}}", "{'metadata':{'name':''}}", "{'metadata':7}" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                for (enum kind kind = SERVICE; kind <= POD; kind++) {
                        json_t *object = json(texts[i]);
                        const char *field = NULL;

                        assert_int_equal(read_kind(kind, object, &field), -EBADMSG);
                        assert_non_null(strstr(field, "metadata"));
                        json_decref(object);
                }
}

static void paths_are_put_together_and_encoded(void **state)
{
        static const struct {
                struct kube_object object;
                const char *path; /* NULL: refused */
        } rows[] = {
                { { .api = "v1", .resource = "pods" }, "/api/v1/pods" },
                { { .api = "v1", .resource = "pods", .namespace = "a", .name = "b" }, "/api/v1/namespaces/a/pods/b" },
                { { .api = "apps/v1", .resource = "deployments", .namespace = "a", .name = "b", .subresource = "scale" },
                  "/apis/apps/v1/namespaces/a/deployments/b/scale" },
                { { .api = "v1", .resource = "pods", .namespace = "a/../b", .name = "c?d" },
                  "/api/v1/namespaces/a%2F..%2Fb/pods/c%3Fd" },
                { { .api = "v1", .resource = "pods", .namespace = "..", .name = "b" }, NULL },
                { { .api = "v1", .resource = "pods", .namespace = "", .name = "b" }, NULL },
                { { .api = "v1", .resource = "pods", .subresource = "status" }, NULL },
                { { .api = "/v1", .resource = "pods" }, NULL },
                { { .resource = "pods" }, NULL },
                { { .api = "v1" }, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(freep) char *path = NULL;

                assert_int_equal(kube_object_path(&rows[i].object, &path), rows[i].path ? 0 : -EINVAL);
                if (rows[i].path)
                        assert_string_equal(path, rows[i].path);
        }
}

static void a_status_is_read_with_its_causes(void **state)
{
        json_t *object = json("{'code':504,'reason':'Timeout','message':'m','details':{'retryAfterSeconds':1,"
                              "'causes':[{'reason':'Other'},{'reason':'ResourceVersionTooLarge'}]}}");
        struct kube_status status;

        kube_status_read(object, &status);
        json_decref(object);
        assert_int_equal(status.code, 504);
        assert_true(status.too_large);
        assert_int_equal(status.retry_after_ns, UINT64_C(1000000000));
        assert_false(kube_status_is_expired(&status));

        kube_status_read(NULL, &status);
        assert_int_equal(status.code, 0);
        assert_string_equal(status.message, "");
}

static void rows_of_counters_are_bounded(void **state)
{
        struct kube_counters *counters = calloc(1, sizeof(*counters));

        for (unsigned i = 0; i < 2 * KUBE_COUNTER_ROWS_MAX; i++)
                kube_counters_request(counters, KUBE_GET, "pods", i, 1000000);
        assert_int_equal(counters->n_rows, KUBE_COUNTER_ROWS_MAX);
        assert_string_equal(counters->rows[KUBE_COUNTER_ROWS_MAX - 1].resource, "other");
        assert_int_equal(counters->rows[KUBE_COUNTER_ROWS_MAX - 1].requests, KUBE_COUNTER_ROWS_MAX + 1);
        assert_int_equal(counters->rows[0].buckets[0], 1);
        free(counters);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_service_is_read),
                cmocka_unit_test(a_headless_service_has_no_addresses),
                cmocka_unit_test(conditions_of_an_endpoint_have_their_defaults),
                cmocka_unit_test(the_slice_of_an_empty_service_is_empty),
                cmocka_unit_test(absent_replicas_mean_zero),
                cmocka_unit_test(a_lease_without_a_holder_is_held_by_nobody),
                cmocka_unit_test(a_pod_is_read),
                cmocka_unit_test(wrong_fields_are_named),
                cmocka_unit_test(an_object_without_a_name_is_refused_as_anything),
                cmocka_unit_test(paths_are_put_together_and_encoded),
                cmocka_unit_test(a_status_is_read_with_its_causes),
                cmocka_unit_test(rows_of_counters_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
