/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod's GPUs are told of device plugins' requests, ResourceClaims and ResourceSlices. */
#include "unit/agent_world.h"

#define CLAIMS "/apis/resource.k8s.io/v1/resourceclaims"
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define AWAKE "'phase':'Awake','epoch':1"

static int world_with_gpus(void **state)
{
        struct world *world;

        world_new(state);
        world = *state;
        world->agent.node.gpu = &world->gpu;
        world->agent.node.gpu_since_ns = world->began_ns;
        return 0;
}

/* An event in JSON with ' for ". */
static void quoted_event(struct kube_request *watch, const char *type, const char *object)
{
        _cleanup_(freep) char *text = strdup(object);

        event(watch, type, unquote(text));
}

#define POD(version, spec, status)                                                                                                 \
        "{'metadata':{'namespace':'shop','name':'web-1','uid':'u1','resourceVersion':'" version                                    \
        "','labels':{'app':'web'}},'spec':{'nodeName':'n1'," spec "},'status':{'phase':'Running'" status "}}"
#define LIMITS(limits) "'containers':[{'name':'c','resources':{'limits':{" limits "}}}]"
#define CLAIMING "'resourceClaims':[{'name':'gpu','resourceClaimName':'web-gpu'}]"
#define CLAIM(version, device)                                                                                                     \
        "{'metadata':{'namespace':'shop','name':'web-gpu','resourceVersion':'" version                                             \
        "'},'status':{'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.nvidia.com','pool':'n1','device':'" device  \
        "'}]}}}}"
#define SLICE(name, generation, device, bus)                                                                                       \
        "{'metadata':{'name':'" name "','resourceVersion':'" generation                                                            \
        "'},'spec':{'nodeName':'n1','driver':'gpu.nvidia.com','pool':{'name':'n1','generation':" generation                        \
        ",'resourceSliceCount':1},'devices':[{'name':'" device "','attributes':{'resource.kubernetes.io/pciBusID':{'string':'" bus \
        "'}}}]}}"

static struct gpu_tenant *pod_with(struct world *world, const char *pod)
{
        sync_all(world);
        write_object(world, "", AWAKE);
        quoted_event(world->pods, "ADDED", pod);
        assert_non_null(world->gpu.tenants[0]);
        return world->gpu.tenants[0];
}

static struct kube_request *opened(struct world *world, const char *path)
{
        struct kube_request *watch = await(&world->client, path);

        watch->callbacks.opened(watch->userdata);
        return watch;
}

static void a_request_of_a_device_plugin_is_told_at_once_and_nothing_more_is_watched(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = pod_with(world, POD("7", LIMITS("'nvidia.com/gpu':'2'"), ""));

        assert_string_equal(tenant->allocations, "nvidia.com/gpu 2 -");
        run(&world->client);
        assert_null(find(&world->client, CLAIMS));
        assert_null(find(&world->client, SLICES));
}

static void a_pod_that_was_given_nothing_is_told_so(void **state)
{
        struct gpu_tenant *tenant = pod_with(*state, POD("7", LIMITS("'cpu':'2'"), ""));

        assert_int_equal(tenant->told, 1);
        assert_string_equal(tenant->allocations, "");
}

static void a_claim_is_told_once_it_and_the_slices_are_known(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = pod_with(world, POD("7", CLAIMING, ""));
        struct kube_request *claims = opened(world, CLAIMS), *slices = opened(world, SLICES);

        quoted_event(claims, "ADDED", CLAIM("1", "gpu-0"));
        synced(claims);
        assert_int_equal(tenant->told, 0);
        quoted_event(slices, "ADDED", SLICE("s1", "1", "gpu-0", "0000:65:00.0"));
        synced(slices);
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 0000:65:00.0");
}

static void what_changes_in_claims_and_slices_is_told(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = pod_with(world, POD("7", CLAIMING, ""));
        struct kube_request *claims = opened(world, CLAIMS), *slices = opened(world, SLICES);

        synced(claims);
        synced(slices);
        assert_string_equal(tenant->allocations, "");

        quoted_event(claims, "ADDED", CLAIM("101", "gpu-0"));
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 -");
        quoted_event(slices, "ADDED", SLICE("s1", "102", "gpu-0", "0000:65:00.0"));
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 0000:65:00.0");
        quoted_event(slices, "ADDED", SLICE("s2", "103", "gpu-0", "0000:66:00.0"));
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 0000:66:00.0");
        quoted_event(slices, "DELETED", SLICE("s1", "102", "gpu-0", "0000:65:00.0"));
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 0000:66:00.0");
        quoted_event(claims, "MODIFIED", CLAIM("104", "gpu-1"));
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-1 1 -");
        quoted_event(claims, "MODIFIED",
                     "{'metadata':{'namespace':'shop','name':'web-gpu','resourceVersion':'105'},'status':{}}"); /* deallocated */
        assert_string_equal(tenant->allocations, "");
}

static void a_claim_that_is_made_of_a_template_is_told_once_the_pod_names_it(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant =
                pod_with(world, POD("7", "'resourceClaims':[{'name':'gpu','resourceClaimTemplateName':'t'}]", ""));
        struct kube_request *claims, *slices;

        assert_string_equal(tenant->allocations, "");
        quoted_event(world->pods, "MODIFIED",
                     POD("8", "'resourceClaims':[{'name':'gpu','resourceClaimTemplateName':'t'}]",
                         ",'resourceClaimStatuses':[{'name':'gpu','resourceClaimName':'web-gpu'}]"));
        claims = opened(world, CLAIMS);
        slices = opened(world, SLICES);
        quoted_event(claims, "ADDED", CLAIM("1", "gpu-0"));
        synced(claims);
        synced(slices);
        assert_string_equal(tenant->allocations, "gpu.nvidia.com/n1/gpu-0 1 -");
}

/* What cannot be read is left out, and the rest is told. */
static void a_claim_and_a_slice_that_are_not_as_promised_are_left_alone(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = pod_with(world, POD("7", CLAIMING "," LIMITS("'amd.com/gpu':'1'"), ""));
        struct kube_request *claims = opened(world, CLAIMS), *slices = opened(world, SLICES);

        quoted_event(slices, "ADDED", "{'metadata':{'name':'s1','resourceVersion':'1'},'spec':{'driver':7}}");
        synced(slices);
        quoted_event(claims, "ADDED",
                     "{'metadata':{'namespace':'shop','name':'web-gpu','resourceVersion':'2'},'status':{'allocation':[]}}");
        synced(claims);
        assert_string_equal(tenant->allocations, "amd.com/gpu 1 -");
}

/* Where the API server does not serve resource.k8s.io, or the agent may not read it. */
static void refusals_change_nothing_else(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = pod_with(world, POD("7", CLAIMING, ""));

        answer(await(&world->client, CLAIMS), 404, "{}");
        answer(await(&world->client, SLICES), 403, "{}");
        run(&world->client);
        assert_int_equal(tenant->told, 0);
        assert_true(world->agent.node.settled);
}

static void without_the_option_nothing_is_watched_for_claims(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, "", AWAKE);
        quoted_event(world->pods, "ADDED", POD("7", CLAIMING, ""));
        quoted_event(world->pods, "MODIFIED", POD("8", CLAIMING, ""));
        run(&world->client);
        assert_null(find(&world->client, CLAIMS));
        assert_null(find(&world->client, SLICES));
}

static void it_is_allocated_since_the_pod_began_or_the_agent_did(void **state)
{
        struct world *world = *state;
        char started[TIMESTAMP_TEXT_MAX], pod[1024];
        struct gpu_tenant *tenant;

        world->agent.node.gpu_since_ns = world->began_ns - 10 * NSEC_PER_SEC;
        timestamp_format(now_realtime_ns() - 5 * NSEC_PER_SEC, started);
        snprintf(pod, sizeof(pod), POD("7", LIMITS("'nvidia.com/gpu':'1'"), ",'startTime':'%s'"), started);
        tenant = pod_with(world, pod);
        assert_true(tenant->since_ns >= world->began_ns - 6 * NSEC_PER_SEC);
        assert_true(tenant->since_ns <= now_monotonic_ns() - 4 * NSEC_PER_SEC);

        quoted_event(world->pods, "MODIFIED", POD("8", LIMITS("'nvidia.com/gpu':'1'"), ",'startTime':'2020-01-01T00:00:00Z'"));
        assert_int_equal(tenant->since_ns, world->agent.node.gpu_since_ns);
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_with_gpus, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(a_request_of_a_device_plugin_is_told_at_once_and_nothing_more_is_watched),
                WORLD_TEST(a_pod_that_was_given_nothing_is_told_so),
                WORLD_TEST(a_claim_is_told_once_it_and_the_slices_are_known),
                WORLD_TEST(what_changes_in_claims_and_slices_is_told),
                WORLD_TEST(a_claim_that_is_made_of_a_template_is_told_once_the_pod_names_it),
                WORLD_TEST(a_claim_and_a_slice_that_are_not_as_promised_are_left_alone),
                WORLD_TEST(refusals_change_nothing_else),
                WORLD_TEST(it_is_allocated_since_the_pod_began_or_the_agent_did),
                cmocka_unit_test_setup_teardown(without_the_option_nothing_is_watched_for_claims, world_new, world_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
