/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kube/resource.h"
#include "unit/quoted_json.h"

static int read_pod(const char *rest, struct kube_pod **ret_pod, const char **ret_field)
{
        char text[4096];
        json_t *object;
        int r;

        snprintf(text, sizeof(text), "{'metadata':{'name':'x','namespace':'n'},%s}", rest);
        object = json(text);
        r = kube_pod_read(object, ret_pod, ret_field);
        json_decref(object);
        return r;
}

static uint32_t requested(const struct kube_pod *pod, const char *resource)
{
        for (size_t i = 0; i < pod->n_gpu_requests; i++)
                if (strcmp(pod->gpu_requests[i].resource, resource) == 0)
                        return pod->gpu_requests[i].count;
        return 0;
}

static void gpus_are_known_by_the_names_of_their_resources(void **state)
{
        static const struct {
                const char *resource;
                bool gpu, parts;
        } rows[] = {
                { "nvidia.com/gpu", true, false },
                { "nvidia.com/gpu.shared", true, true },
                { "nvidia.com/mig-1g.10gb", true, true },
                { "amd.com/gpu", true, false },
                { "amd.com/gpu-mi300x", true, false },
                { "amd.com/cpx_nps4", true, true },
                { "gpu.intel.com/i915", true, true },
                { "gpu.intel.com/xe", true, true },
                { "gpu.intel.com/millicores", false, false }, /* of a device that is requested beside it */
                { "gpu.intel.com/i915_monitoring", false, false },
                { "nvidia.com/gpumem", false, false },
                { "example.com/nvidia.com", false, false },
                { "cpu", false, false },
                { "memory", false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
                const char *field = NULL;
                char rest[256];

                snprintf(rest, sizeof(rest), "'spec':{'containers':[{'name':'a','resources':{'limits':{'%s':'2'}}}]}",
                         rows[i].resource);
                assert_int_equal(read_pod(rest, &pod, &field), 0);
                assert_int_equal(requested(pod, rows[i].resource), rows[i].gpu ? 2 : 0);
                assert_int_equal(pod->n_gpu_requests, rows[i].gpu ? 1 : 0);
                if (rows[i].gpu)
                        assert_int_equal(pod->gpu_requests[0].parts, rows[i].parts);
        }
}

#define GPUS(name, count) "{'name':'" name "','resources':{'limits':{'cpu':'500m','nvidia.com/gpu':'" count "'}}}"
#define SIDECAR(name, count) "{'name':'" name "','restartPolicy':'Always','resources':{'limits':{'nvidia.com/gpu':'" count "'}}}"

/* As the scheduler sums up: an init container's devices are given on to the containers, a sidecar's are not. */
static void containers_and_sidecars_are_summed_and_init_containers_are_not(void **state)
{
        static const struct {
                const char *spec;
                uint32_t count;
        } rows[] = {
                { "'containers':[" GPUS("a", "1") "]", 1 },
                { "'containers':[" GPUS("a", "1") "," GPUS("b", "3") ",{'name':'c'}]", 4 },
                { "'containers':[" GPUS("a", "0") "]", 0 },
                { "'containers':[{'name':'a','resources':{'requests':{'cpu':'1'}}}]", 0 },
                { "'initContainers':[" SIDECAR("s", "2") "],'containers':[" GPUS("a", "1") "]", 3 },
                { "'initContainers':[" GPUS("i", "1") "],'containers':[" GPUS("a", "1") "]", 1 },
                { "'initContainers':[" GPUS("i", "4") "],'containers':[" GPUS("a", "1") "]", 4 },
                { "'initContainers':[" SIDECAR("s", "2") "," GPUS("i", "4") "],'containers':[" GPUS("a", "1") "]", 6 },
                { "'initContainers':[" GPUS("i", "2") "," SIDECAR("s", "2") "],'containers':[{'name':'a'}]", 2 },
                { "'containers':[" GPUS("a", "1k") "," GPUS("b", "1k") "]", KUBE_POD_GPUS_MAX },
                { "'containers':[" GPUS("a", "99999999999999999999999999") "]", KUBE_POD_GPUS_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
                const char *field = NULL;
                char rest[1024];

                snprintf(rest, sizeof(rest), "'spec':{%s}", rows[i].spec);
                assert_int_equal(read_pod(rest, &pod, &field), 0);
                assert_int_equal(requested(pod, "nvidia.com/gpu"), rows[i].count);
                assert_int_equal(pod->n_gpu_requests, rows[i].count > 0);
        }
}

static void claims_are_those_that_are_named_and_those_made_of_templates(void **state)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
        const char *field = NULL;

        assert_int_equal(
                read_pod("'spec':{'resourceClaims':[{'name':'own','resourceClaimName':'shared-gpu'},"
                         "{'name':'made','resourceClaimTemplateName':'t'},{'name':'not-yet','resourceClaimTemplateName':'t'},"
                         "{'name':'none-needed','resourceClaimTemplateName':'t'}]},"
                         "'status':{'startTime':'1970-01-01T00:00:07Z','resourceClaimStatuses':["
                         "{'name':'none-needed'},{'name':'made','resourceClaimName':'x-made-7kq2p'}]}",
                         &pod, &field),
                0);
        assert_int_equal(pod->n_claims, 2);
        assert_string_equal(pod->claims[0], "shared-gpu");
        assert_string_equal(pod->claims[1], "x-made-7kq2p");
        assert_int_equal(pod->started_realtime_ns, UINT64_C(7000000000));
}

/* The scheduler serves extended resources by a claim of its own making where DRA has the devices. */
static void what_a_claim_provides_is_no_request_too(void **state)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
        const char *field = NULL;

        assert_int_equal(
                read_pod(
                        "'spec':{'containers':[" GPUS("a", "1") "," GPUS(
                                "b",
                                "2") "]},"
                                     "'status':{'extendedResourceClaimStatus':{'resourceClaimName':'x-extended','requestMappings':["
                                     "{'containerName':'a','resourceName':'nvidia.com/gpu','requestName':'container-0-request-0'}]}}",
                        &pod, &field),
                0);
        assert_int_equal(requested(pod, "nvidia.com/gpu"), 2);
        assert_int_equal(pod->n_claims, 1);
        assert_string_equal(pod->claims[0], "x-extended");
}

static void a_pod_without_devices_has_none(void **state)
{
        _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
        const char *field = NULL;

        assert_int_equal(
                read_pod("'spec':{'containers':[{'name':'a'}]},'status':{'extendedResourceClaimStatus':null}", &pod, &field), 0);
        assert_int_equal(pod->n_gpu_requests, 0);
        assert_int_equal(pod->n_claims, 0);
        assert_int_equal(pod->started_realtime_ns, 0);
}

static void wrong_fields_are_named(void **state)
{
        static const struct {
                const char *rest, *field;
        } rows[] = {
                { "'spec':{'containers':{}}", "spec.containers" },
                { "'spec':{'initContainers':'x'}", "spec.initContainers" },
                { "'spec':{'containers':[{'name':7}]}", "spec.containers[].name" },
                { "'spec':{'containers':[{'resources':[]}]}", "spec.containers[].resources" },
                { "'spec':{'containers':[{'resources':{'limits':[]}}]}", "spec.containers[].resources.limits" },
                { "'spec':{'containers':[" GPUS("a", "-1") "]}", "spec.containers[].resources.limits" },
                { "'spec':{'containers':[" GPUS("a", "1500m") "]}", "spec.containers[].resources.limits" },
                { "'spec':{'containers':[" GPUS("a", "") "]}", "spec.containers[].resources.limits" },
                { "'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':1}}}]}", "spec.containers[].resources.limits" },
                { "'spec':{'initContainers':[{'restartPolicy':true}]}", "spec.initContainers[].restartPolicy" },
                { "'spec':{'resourceClaims':{}}", "spec.resourceClaims" },
                { "'spec':{'resourceClaims':[{'name':1}]}", "spec.resourceClaims[].name" },
                { "'spec':{'resourceClaims':[{'name':'a','resourceClaimName':[]}]}", "spec.resourceClaims[].resourceClaimName" },
                { "'status':{'resourceClaimStatuses':{}}", "status.resourceClaimStatuses" },
                { "'spec':{'resourceClaims':[{'name':'a'}]},'status':{'resourceClaimStatuses':[{'name':'a','resourceClaimName':1}]}",
                  "status.resourceClaimStatuses[].resourceClaimName" },
                { "'status':{'extendedResourceClaimStatus':[]}", "status.extendedResourceClaimStatus" },
                { "'status':{'extendedResourceClaimStatus':{'resourceClaimName':1}}",
                  "status.extendedResourceClaimStatus.resourceClaimName" },
                { "'status':{'startTime':'today'}", "status.startTime" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
                const char *field = NULL;

                assert_int_equal(read_pod(rows[i].rest, &pod, &field), -EBADMSG);
                assert_string_equal(field, rows[i].field);
        }
}

static json_t *list_of(size_t n, const char *element)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_loads(element, 0, NULL));
        return list;
}

static void lists_are_bounded(void **state)
{
        static const struct {
                const char *key, *element;
                size_t max;
        } rows[] = {
                { "containers", "{\"name\":\"a\"}", KUBE_POD_CONTAINERS_MAX },
                { "initContainers", "{\"name\":\"a\"}", KUBE_POD_CONTAINERS_MAX },
                { "resourceClaims", "{\"name\":\"a\",\"resourceClaimName\":\"b\"}", KUBE_POD_CLAIMS_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows) * 2; i++) {
                size_t row = i / 2, over = i % 2;
                _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
                const char *field = NULL;
                json_t *object = json_pack("{s{ss}, s{so}}", "metadata", "name", "x", "spec", rows[row].key,
                                           list_of(rows[row].max + over, rows[row].element));

                assert_int_equal(kube_pod_read(object, &pod, &field), over ? -E2BIG : 0);
                json_decref(object);
        }
}

static void different_resources_are_bounded(void **state)
{
        for (size_t over = 0; over < 2; over++) {
                _cleanup_(kube_pod_freep) struct kube_pod *pod = NULL;
                json_t *limits = json_object(), *object;
                const char *field = NULL;

                for (size_t i = 0; i < KUBE_POD_GPU_REQUESTS_MAX + over; i++) {
                        char name[64];

                        snprintf(name, sizeof(name), "nvidia.com/mig-%zu", i);
                        json_object_set_new(limits, name, json_string("1"));
                }
                object = json_pack("{s{ss}, s{s[{ss, s{so}}]}}", "metadata", "name", "x", "spec", "containers", "name", "a",
                                   "resources", "limits", limits);
                assert_int_equal(kube_pod_read(object, &pod, &field), over ? -E2BIG : 0);
                json_decref(object);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(gpus_are_known_by_the_names_of_their_resources),
                cmocka_unit_test(containers_and_sidecars_are_summed_and_init_containers_are_not),
                cmocka_unit_test(claims_are_those_that_are_named_and_those_made_of_templates),
                cmocka_unit_test(what_a_claim_provides_is_no_request_too),
                cmocka_unit_test(a_pod_without_devices_has_none),
                cmocka_unit_test(wrong_fields_are_named),
                cmocka_unit_test(lists_are_bounded),
                cmocka_unit_test(different_resources_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
