/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims and ResourceSlices as the API server sends them, and what they say of a pod's devices together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kube/pod_allocations.h"
#include "unit/quoted_json.h"

enum { SLICES_MAX = 4, CLAIMS_MAX = 2 };

static json_t *object_of(const char *rest)
{
        char text[4096];

        snprintf(text, sizeof(text), "{'metadata':{'name':'x','namespace':'n'}%s%s}", *rest ? "," : "", rest);
        return json(text);
}

static int read_slice(const char *rest, struct kube_resource_slice **ret_slice, const char **ret_field)
{
        json_t *object = object_of(rest);
        int r = kube_resource_slice_read(object, ret_slice, ret_field);

        json_decref(object);
        return r;
}

static int read_claim(const char *rest, struct kube_resource_claim **ret_claim, const char **ret_field)
{
        json_t *object = object_of(rest);
        int r = kube_resource_claim_read(object, ret_claim, ret_field);

        json_decref(object);
        return r;
}

#define POOL(generation, count)                                                                                                    \
        "'driver':'gpu.nvidia.com','pool':{'name':'n1','generation':" generation ",'resourceSliceCount':" count "}"
#define BUS(text) "'resource.kubernetes.io/pciBusID':{'string':'" text "'}"
#define DEVICE(name, attributes) "{'name':'" name "','attributes':{" attributes "}}"
#define SLICE(generation, count, devices) "'spec':{'nodeName':'n1'," POOL(generation, count) ",'devices':[" devices "]}"
#define RESULT(driver, device) "{'request':'r','driver':'" driver "','pool':'n1','device':'" device "'}"
#define CLAIM(results) "'status':{'allocation':{'devices':{'results':[" results "]}}}"

static void a_slice_is_read(void **state)
{
        _cleanup_(kube_resource_slice_freep) struct kube_resource_slice *slice = NULL;
        const char *field = NULL;

        assert_int_equal(
                read_slice(
                        SLICE("7", "2",
                              DEVICE("gpu-0", BUS("0000:65:00.0") ",'uuid':{'string':'GPU-0'},'type':{'string':'gpu'}") "," DEVICE("mig", "'gpu.nvidia.com/parentUUID':{'string':'GPU-0'},'uuid':{'string':'MIG-0'}") "," DEVICE(
                                      "odd",
                                      "'uuid':{'int':7},'resource.kubernetes.io/pciBusID':{'version':'1.0.0'}") ","
                                                                                                                "{'name':'bare'}"),
                        &slice, &field),
                0);
        assert_string_equal(slice->driver, "gpu.nvidia.com");
        assert_string_equal(slice->pool, "n1");
        assert_int_equal(slice->generation, 7);
        assert_int_equal(slice->n_slices, 2);
        assert_int_equal(slice->n_devices, 4);
        assert_string_equal(slice->devices[0].bus_id, "0000:65:00.0");
        assert_string_equal(slice->devices[0].uuid, "GPU-0");
        assert_null(slice->devices[1].bus_id);
        assert_string_equal(slice->devices[1].uuid, "GPU-0");
        assert_null(slice->devices[2].bus_id);
        assert_null(slice->devices[2].uuid);
        assert_string_equal(slice->devices[3].name, "bare");
        assert_null(slice->devices[3].uuid);
}

static void a_claim_is_read(void **state)
{
        static const struct {
                const char *rest;
                size_t n;
        } rows[] = {
                { "", 0 },
                { "'status':{}", 0 },
                { "'status':{'allocation':null}", 0 },
                { "'status':{'allocation':{'devices':{}}}", 0 },
                { CLAIM(RESULT("gpu.nvidia.com", "gpu-0")), 1 },
                { CLAIM(RESULT("gpu.nvidia.com", "gpu-0") "," RESULT("nic.example.com", "eth1")), 2 },
                { CLAIM("{'request':'r','driver':'d','pool':'p','device':'x','adminAccess':true}"), 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_resource_claim_freep) struct kube_resource_claim *claim = NULL;
                const char *field = NULL;

                assert_int_equal(read_claim(rows[i].rest, &claim, &field), 0);
                assert_int_equal(claim->n_devices, rows[i].n);
                if (rows[i].n > 0) {
                        assert_string_equal(claim->devices[0].driver, "gpu.nvidia.com");
                        assert_string_equal(claim->devices[0].pool, "n1");
                        assert_string_equal(claim->devices[0].device, "gpu-0");
                        assert_string_equal(claim->devices[0].request, "r");
                }
        }
}

static void wrong_fields_are_named(void **state)
{
        static const struct {
                bool claim;
                const char *rest, *field;
        } rows[] = {
                { true, "'status':[]", "status" },
                { true, "'status':{'allocation':1}", "status.allocation" },
                { true, "'status':{'allocation':{'devices':[]}}", "status.allocation.devices" },
                { true, "'status':{'allocation':{'devices':{'results':{}}}}", "status.allocation.devices.results" },
                { true, CLAIM("7"), "status.allocation.devices.results[].driver" },
                { true, CLAIM("{'driver':'d','device':'x'}"), "status.allocation.devices.results[].pool" },
                { true, CLAIM("{'driver':'d','pool':'p','device':''}"), "status.allocation.devices.results[].device" },
                { true, CLAIM("{'driver':'d','pool':'p','device':'x','adminAccess':'yes'}"),
                  "status.allocation.devices.results[].adminAccess" },
                { false, "", "spec.driver" },
                { false, "'spec':{'driver':'d'}", "spec.pool.name" },
                { false, "'spec':{'driver':'d','pool':[]}", "spec.pool" },
                { false, "'spec':{'driver':'d','pool':{'name':'p'}}", "spec.pool.resourceSliceCount" },
                { false, "'spec':{'driver':'d','pool':{'name':'p','resourceSliceCount':-1}}", "spec.pool.resourceSliceCount" },
                { false, "'spec':{'driver':'d','pool':{'name':'p','generation':'1','resourceSliceCount':1}}",
                  "spec.pool.generation" },
                { false, "'spec':{" POOL("1", "1") ",'devices':{}}", "spec.devices" },
                { false, SLICE("1", "1", "7"), "spec.devices[].name" },
                { false, SLICE("1", "1", "{'name':'x','attributes':[]}"), "spec.devices[].attributes" },
                { false, SLICE("1", "1", DEVICE("x", "'uuid':'GPU'")), "spec.devices[].attributes" },
                { false, SLICE("1", "1", DEVICE("x", "'uuid':{'string':7}")), "spec.devices[].attributes" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kube_resource_claim_freep) struct kube_resource_claim *claim = NULL;
                _cleanup_(kube_resource_slice_freep) struct kube_resource_slice *slice = NULL;
                const char *field = NULL;
                int r = rows[i].claim ? read_claim(rows[i].rest, &claim, &field) : read_slice(rows[i].rest, &slice, &field);

                assert_int_equal(r, -EBADMSG);
                assert_string_equal(field, rows[i].field);
        }
}

static void lists_are_bounded(void **state)
{
        for (int over = 0; over < 2; over++) {
                _cleanup_(kube_resource_claim_freep) struct kube_resource_claim *claim = NULL;
                _cleanup_(kube_resource_slice_freep) struct kube_resource_slice *slice = NULL;
                json_t *results = json_array(), *devices = json_array(), *object;
                const char *field = NULL;

                for (int i = 0; i < KUBE_CLAIM_DEVICES_MAX + over; i++)
                        json_array_append_new(results, json_pack("{ss, ss, ss}", "driver", "d", "pool", "p", "device", "x"));
                for (int i = 0; i < KUBE_SLICE_DEVICES_MAX + over; i++)
                        json_array_append_new(devices, json_pack("{ss}", "name", "x"));

                object = json_pack("{s{ss}, s{s{s{so}}}}", "metadata", "name", "x", "status", "allocation", "devices", "results",
                                   results);
                assert_int_equal(kube_resource_claim_read(object, &claim, &field), over ? -E2BIG : 0);
                json_decref(object);
                object = json_pack("{s{ss}, s{ss, s{ss, si}, so}}", "metadata", "name", "x", "spec", "driver", "d", "pool", "name",
                                   "p", "resourceSliceCount", 1, "devices", devices);
                assert_int_equal(kube_resource_slice_read(object, &slice, &field), over ? -E2BIG : 0);
                json_decref(object);
        }
}

struct world {
        struct kube_resource_claim *claims[CLAIMS_MAX];
        struct kube_resource_slice *slices[SLICES_MAX];
        struct pod_allocations_view view;
};

/* Called "c0" and "c1". */
static const struct kube_resource_claim *claim_of(const char *namespace, const char *name, void *userdata)
{
        struct world *world = userdata;

        assert_string_equal(namespace, "n");
        return name[0] == 'c' && name[1] >= '0' && name[1] < '0' + CLAIMS_MAX ? world->claims[name[1] - '0'] : NULL;
}

static void world_begin(struct world *world, const char *const *claims, const char *const *slices)
{
        const char *field;

        *world = (struct world){ .view = { .claim = claim_of, .userdata = world } };
        for (size_t i = 0; i < CLAIMS_MAX && claims[i]; i++)
                assert_int_equal(read_claim(claims[i], &world->claims[i], &field), 0);
        for (size_t i = 0; i < SLICES_MAX && slices[i]; i++)
                assert_int_equal(read_slice(slices[i], &world->slices[world->view.n_slices++], &field), 0);
        world->view.slices = (const struct kube_resource_slice *const *)world->slices;
}

static void world_end(struct world *world)
{
        for (size_t i = 0; i < CLAIMS_MAX; i++)
                kube_resource_claim_free(world->claims[i]);
        for (size_t i = 0; i < SLICES_MAX; i++)
                kube_resource_slice_free(world->slices[i]);
}

/* "NAME COUNT BUS UUID" of each with "; " between, "-" for what is not known. */
static void allocations_text(const struct pod_allocations *allocations, char *text, size_t size)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < allocations->n; i++) {
                const struct gpu_allocation *allocation = &allocations->list[i];

                used += (size_t)snprintf(text + used, size - used, "%s%s %u %s %s%s", i ? "; " : "", allocation->name,
                                         allocation->count, allocation->bus_id ? allocation->bus_id : "-",
                                         allocation->uuid ? allocation->uuid : "-", allocation->doubtful ? " ?" : "");
        }
}

#define GPU0 DEVICE("gpu-0", BUS("0000:01:00.0") ",'uuid':{'string':'GPU-0'}")
#define GPU1 DEVICE("gpu-1", BUS("0000:02:00.0"))
#define OLD_GPU0 DEVICE("gpu-0", BUS("0000:09:00.0"))
#define CLAIM0 CLAIM(RESULT("gpu.nvidia.com", "gpu-0"))

static void claims_are_joined_with_the_newest_complete_generation_of_their_pool(void **state)
{
        static const struct {
                const char *claims[CLAIMS_MAX], *slices[SLICES_MAX];
                const char *expected;
        } rows[] = {
                { { CLAIM0 }, { SLICE("1", "1", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0 }, { NULL }, "gpu.nvidia.com/n1/gpu-0 1 - -" },
                { { CLAIM0 }, { SLICE("1", "2", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 - -" }, /* one is still missing */
                { { CLAIM0 }, { SLICE("1", "2", GPU0), SLICE("1", "2", GPU1) }, "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0 }, { SLICE("1", "2", GPU1), SLICE("1", "2", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0 },
                  { SLICE("1", "1", OLD_GPU0), SLICE("2", "1", GPU0) },
                  "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0 },
                  { SLICE("2", "1", GPU0), SLICE("1", "1", OLD_GPU0) },
                  "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0 },
                  { SLICE("1", "1", OLD_GPU0), SLICE("2", "2", GPU0) },
                  "gpu.nvidia.com/n1/gpu-0 1 - -" }, /* the new one is coming */
                { { CLAIM0 }, { SLICE("2", "1", GPU1), SLICE("1", "1", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 - -" }, /* it has gone */
                { { CLAIM0 },
                  { SLICE("1", "1", GPU0), SLICE("1", "1", GPU1) },
                  "gpu.nvidia.com/n1/gpu-0 1 - -" }, /* more than there are */
                { { CLAIM(RESULT("gpu.amd.com", "gpu-0")) }, { SLICE("1", "1", GPU0) }, "gpu.amd.com/n1/gpu-0 1 - -" },
                { { CLAIM(RESULT("gpu.nvidia.com", "gpu-0") "," RESULT("gpu.nvidia.com", "gpu-1")) },
                  { SLICE("1", "1", GPU0 "," GPU1) },
                  "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0; gpu.nvidia.com/n1/gpu-1 1 0000:02:00.0 -" },
                { { CLAIM0, CLAIM0 }, { SLICE("1", "1", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM0, NULL }, { SLICE("1", "1", GPU0) }, "gpu.nvidia.com/n1/gpu-0 1 0000:01:00.0 GPU-0" },
                { { CLAIM(RESULT("nic.example.com", "eth1")) }, { NULL }, "" }, /* whatever that is */
                { { CLAIM(RESULT("accelerators.example.com", "a0")) },
                  { "'spec':{'driver':'accelerators.example.com','pool':{'name':'n1','generation':0,'resourceSliceCount':1},"
                    "'devices':[" DEVICE("a0", BUS("0000:05:00.0")) "]}" },
                  "accelerators.example.com/n1/a0 1 0000:05:00.0 - ?" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *names[] = { (char *)"c0", (char *)"c1", (char *)"gone" };
                struct kube_pod pod = { .metadata.namespace = (char *)"n", .claims = names, .n_claims = ELEMENTSOF(names) };
                struct pod_allocations allocations;
                struct world world;
                char text[512];

                world_begin(&world, rows[i].claims, rows[i].slices);
                assert_int_equal(pod_allocations_read(&pod, &world.view, &allocations), 0);
                allocations_text(&allocations, text, sizeof(text));
                if (strcmp(text, rows[i].expected) != 0)
                        fail_msg("row %zu: \"%s\", not \"%s\"", i, text, rows[i].expected);
                pod_allocations_done(&allocations);
                world_end(&world);
        }
}

static void requests_come_with_claims(void **state)
{
        struct kube_gpu_request requests[] = { { .resource = (char *)"nvidia.com/gpu", .count = 2 },
                                               { .resource = (char *)"nvidia.com/mig-1g.10gb", .count = 1, .parts = true } };
        char *names[] = { (char *)"c0" };
        struct kube_pod pod = { .metadata.namespace = (char *)"n",
                                .gpu_requests = requests,
                                .n_gpu_requests = ELEMENTSOF(requests),
                                .claims = names,
                                .n_claims = 1 };
        struct pod_allocations allocations;
        struct world world;
        char text[512];

        world_begin(&world, (const char *const[CLAIMS_MAX]){ CLAIM0 }, (const char *const[SLICES_MAX]){ NULL });
        assert_int_equal(pod_allocations_read(&pod, &world.view, &allocations), 0);
        allocations_text(&allocations, text, sizeof(text));
        assert_string_equal(text, "nvidia.com/gpu 2 - -; nvidia.com/mig-1g.10gb 1 - -; gpu.nvidia.com/n1/gpu-0 1 - -");
        assert_false(allocations.list[0].parts);
        assert_true(allocations.list[1].parts);
        pod_allocations_done(&allocations);
        world_end(&world);
}

/* Two claims with as many devices as the API lets them have at most, and more. */
static void allocations_are_bounded(void **state)
{
        struct kube_claim_device devices[GPU_ALLOCATIONS_MAX + 1];
        char names[ELEMENTSOF(devices)][16], *claims[] = { (char *)"c0" };
        struct kube_resource_claim claim = { .devices = devices, .n_devices = ELEMENTSOF(devices) };
        struct kube_pod pod = { .metadata.namespace = (char *)"n", .claims = claims, .n_claims = 1 };
        struct world world = { .claims = { &claim }, .view = { .claim = claim_of, .userdata = &world } };
        struct pod_allocations allocations;

        for (size_t i = 0; i < ELEMENTSOF(devices); i++) {
                snprintf(names[i], sizeof(names[i]), "gpu-%zu", i);
                devices[i] = (struct kube_claim_device){ .driver = (char *)"gpu.x", .pool = (char *)"p", .device = names[i] };
        }
        assert_int_equal(pod_allocations_read(&pod, &world.view, &allocations), 0);
        assert_int_equal(allocations.n, GPU_ALLOCATIONS_MAX);
        pod_allocations_done(&allocations);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_slice_is_read),
                cmocka_unit_test(a_claim_is_read),
                cmocka_unit_test(wrong_fields_are_named),
                cmocka_unit_test(lists_are_bounded),
                cmocka_unit_test(claims_are_joined_with_the_newest_complete_generation_of_their_pool),
                cmocka_unit_test(requests_come_with_claims),
                cmocka_unit_test(allocations_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
