/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPUs of a policy's pods on this node have to do with its sleep. */
#include "unit/agent_votes.h"

#define SPEC_OF(rules) ",'idle':{'after':'1ms','minAwake':'0'," rules "}"
#define REPORT SPEC_OF("'gpu':{'after':'5m'}")
#define SLEEP SPEC_OF("'gpu':{'after':'5m','onIdle':'Sleep'}")

static int world_with_gpus(void **state)
{
        struct world *world;

        world_new(state);
        world = *state;
        world->agent.node.gpu = &world->gpu;
        return 0;
}

static void has(struct gpu_tenant *tenant, enum gpu_state state, const char *reason)
{
        assert_non_null(tenant);
        tenant->devices = tenant->open = 1;
        tenant->verdict = (struct gpu_verdict){ .state = state };
        if (state == GPU_IDLE)
                tenant->verdict.idle_ns = 300 * NSEC_PER_SEC;
        snprintf(tenant->verdict.reason, sizeof(tenant->verdict.reason), "%s", reason);
}

/* Awake with one pod, whose network has been silent for long enough. */
static struct gpu_tenant *awake(struct world *world, const char *spec)
{
        sync_all(world);
        write_object(world, spec, AWAKE);
        add_pod(world);
        assert_non_null(world->gpu.tenants[0]);
        return world->gpu.tenants[0];
}

static void judge(struct world *world)
{
        struct agent_policy *policy = policy_of(world, "shop/web");
        uint64_t until = now_monotonic_ns() + 3 * NSEC_PER_MSEC;

        while (now_monotonic_ns() < until) /* idle.after */
                ;
        agent_policy_judge(policy);
}

/* What is told of the workload once it is @state, for a reason with @words in it. */
static const json_t *told(struct world *world, const char *state, const char *words)
{
        judge(world);
        while (!world->status || strcmp(text_of(workload_told(world), "state"), state) != 0 ||
               !strstr(text_of(workload_told(world), "reason"), words))
                written(world);
        return workload_told(world);
}

static const json_t *gpu_of(const json_t *workload)
{
        return json_object_get(workload, "gpu");
}

static void a_pod_without_a_gpu_is_judged_by_its_network(void **state)
{
        struct world *world = *state;

        awake(world, REPORT);

        assert_null(gpu_of(told(world, "Idle", "")));
        assert_string_equal(world->gpu.tenants[0]->name, "shop/web-1");
}

static void what_its_gpu_does_keeps_it_awake(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        has(awake(world, SLEEP), GPU_ACTIVE, "it launched");
        workload = told(world, "Active", "its GPU is active: it launched");

        assert_string_equal(text_of(gpu_of(workload), "state"), "Active");
        assert_int_equal(number_of(gpu_of(workload), "devices"), 1);
        assert_true(json_is_false(json_object_get(gpu_of(workload), "wouldSleep")));
}

static void an_idle_gpu_lets_it_sleep_where_the_policy_says_so(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        has(awake(world, SLEEP), GPU_IDLE, "nothing");
        workload = told(world, "Idle", "");

        assert_string_equal(text_of(gpu_of(workload), "state"), "Idle");
        assert_true(json_is_false(json_object_get(gpu_of(workload), "wouldSleep")));
        assert_non_null(strstr(policy_of(world, "shop/web")->verdict.reason, "its GPU is idle for 5m"));
}

static void elsewhere_it_is_told_that_it_would(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        has(awake(world, REPORT), GPU_IDLE, "nothing");
        workload = told(world, "Active", "idle.gpu.onIdle is Report, and its GPU is idle");

        assert_string_equal(text_of(gpu_of(workload), "state"), "Idle");
        assert_true(json_is_true(json_object_get(gpu_of(workload), "wouldSleep")));
}

static void what_it_closed_again_needs_no_leave(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, REPORT);

        has(tenant, GPU_IDLE, "nothing");
        tenant->open = 0;

        told(world, "Idle", "");
}

static void what_is_unknown_of_its_gpu_keeps_it_awake(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        has(awake(world, SLEEP), GPU_UNKNOWN, "one source only");
        workload = told(world, "Unknown", "its GPU is unknown: one source only");

        assert_string_equal(text_of(gpu_of(workload), "state"), "Unknown");
}

static void what_cannot_be_watched_keeps_it_awake(void **state)
{
        struct world *world = *state;

        world->gpu.error = -ENOMEM;
        sync_all(world);
        write_object(world, SLEEP, AWAKE);
        add_pod(world);

        told(world, "Unknown", "cannot be watched");
}

static void a_stuck_gpu_is_not_idle(void **state)
{
        struct world *world = *state;

        has(awake(world, SLEEP), GPU_STUCK, "full load");

        assert_string_equal(text_of(gpu_of(told(world, "Active", "its GPU is stuck")), "state"), "Stuck");
}

static void of_two_pods_the_busy_one_counts(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        awake(world, SLEEP);
        event(world->pods, "ADDED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-2\",\"uid\":\"u2\",\"resourceVersion\":\"8\","
              "\"labels\":{\"app\":\"web\"}},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}");
        has(world->gpu.tenants[0], GPU_IDLE, "nothing");
        has(world->gpu.tenants[1], GPU_QUIET, "nothing for 1m");
        workload = told(world, "Active", "its GPU is quiet: shop/web-2: nothing for 1m");

        assert_int_equal(number_of(gpu_of(workload), "devices"), 2);
        assert_string_equal(text_of(gpu_of(workload), "state"), "Active");
        has(world->gpu.tenants[1], GPU_IDLE, "nothing");
        told(world, "Idle", "");
}

static void only_what_changes_is_written(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);

        has(tenant, GPU_ACTIVE, "it launched");
        told(world, "Active", "it launched");
        has(tenant, GPU_QUIET, "nothing for 1m");
        judge(world);
        has(tenant, GPU_CANDIDATE, "nothing for 5m");
        judge(world);
        nothing_is_written_within(world, 50 * NSEC_PER_MSEC);
        assert_true(tenant->looks >= 3);
}

static void a_busy_network_needs_no_look_at_the_gpu(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);
        unsigned looks;

        has(tenant, GPU_IDLE, "nothing");
        told(world, "Idle", "");
        looks = tenant->looks;
        world->activity.workload->snapshot.open_requests = 1;
        world->activity.workload->snapshot.last_ns = now_monotonic_ns() + NSEC_PER_SEC;
        agent_policy_judge(policy_of(world, "shop/web"));

        assert_int_equal(tenant->looks, looks);
}

static void its_requests_are_the_gpus_too(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);

        world->activity.workload->snapshot.open_requests = 3;

        assert_int_equal(tenant->open_requests(tenant->userdata), 3);
}

static void the_window_is_the_policys_and_four_times_it_at_most(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);

        judge(world);
        assert_int_equal(tenant->rules.window_ns, 300 * NSEC_PER_SEC);
        assert_int_equal(tenant->rules.factor, 1);
        assert_int_equal(tenant->rules.cold_start_ns, 0);

        write_object(world, SLEEP, AWAKE ",'idleFactor':2");
        judge(world);
        judge(world);
        while (tenant->rules.factor != 2)
                step(world);
        write_object(world, SLEEP, AWAKE ",'idleFactor':16");
        while (tenant->rules.factor == 2)
                step(world);
        assert_int_equal(tenant->rules.factor, 4);
}

static void a_wake_that_was_seen_tells_how_long_a_cold_start_takes(void **state)
{
        struct world *world = *state;
        uint64_t began, took;

        awake(world, SLEEP);
        write_object(world, SLEEP, "'phase':'Asleep','holding':true,'epoch':2");
        began = now_monotonic_ns();
        write_object(world, SLEEP, "'phase':'Waking','holding':true,'epoch':2");
        nothing_is_written_within(world, 0);
        write_object(world, SLEEP, "'phase':'Awake','epoch':2");
        took = now_monotonic_ns() - began;

        assert_true(policy_of(world, "shop/web")->cold_start_ns > 0);
        assert_true(policy_of(world, "shop/web")->cold_start_ns <= took);
        write_object(world, SLEEP, SLEEPING BY_ITSELF);
        write_object(world, SLEEP, "'phase':'Awake','epoch':2"); /* no wake */
        assert_true(policy_of(world, "shop/web")->cold_start_ns <= took);
}

static void a_sleep_is_voted_for_while_its_gpu_is_idle(void **state)
{
        struct world *world = *state;

        has(awake(world, SLEEP), GPU_IDLE, "nothing");
        told(world, "Idle", "");
        write_object(world, SLEEP, SLEEPING BY_ITSELF);

        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);
}

static void work_for_its_gpu_before_the_vote_keeps_it_from_voting(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);
        const json_t *workload;

        has(tenant, GPU_IDLE, "nothing");
        told(world, "Idle", "");
        has(tenant, GPU_ACTIVE, "it launched");
        write_object(world, SLEEP, SLEEPING BY_ITSELF);
        while (strcmp(text_of(workload_told(world), "state"), "Active") != 0)
                written(world);
        workload = workload_told(world);

        assert_int_equal(number_of(workload, "quietEpoch"), -1);
        assert_non_null(strstr(text_of(workload, "reason"), "its GPU is active: it launched"));
        assert_int_equal(world->agent.node.counters.votes, 0);
}

static void work_for_its_gpu_takes_the_vote_back(void **state)
{
        struct world *world = *state;
        struct gpu_tenant *tenant = awake(world, SLEEP);

        has(tenant, GPU_IDLE, "nothing");
        told(world, "Idle", "");
        write_object(world, SLEEP, SLEEPING BY_ITSELF);
        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);

        has(tenant, GPU_ACTIVE, "it launched");
        while (number_of(workload_told(world), "quietEpoch") == 2)
                written(world);
        assert_non_null(strstr(text_of(workload_told(world), "reason"), "work for its GPU"));
        assert_int_equal(world->agent.node.counters.votes_withdrawn, 1);
}

static void an_operator_may_put_it_to_sleep_in_the_middle_of_work(void **state)
{
        struct world *world = *state;

        has(awake(world, REPORT), GPU_ACTIVE, "it launched");
        write_object(world, REPORT, SLEEPING BY_HAND);
        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);

        nothing_is_written_within(world, 3 * QUIET_NS);
}

static void a_pod_that_is_gone_takes_its_gpu_with_it(void **state)
{
        struct world *world = *state;

        has(awake(world, SLEEP), GPU_IDLE, "nothing");
        told(world, "Idle", "");
        event(world->pods, "DELETED",
              "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-1\",\"uid\":\"u1\",\"resourceVersion\":\"9\"}}");

        assert_null(world->gpu.tenants[0]);
        assert_int_equal(policy_of(world, "shop/web")->gpu.devices, 0);
}

static void add_pod_with(struct world *world, const char *spec)
{
        _cleanup_(freep) char *text = NULL;

        assert_true(asprintf(&text,
                             "{'metadata':{'namespace':'shop','name':'web-1','uid':'u1','resourceVersion':'%u',"
                             "'labels':{'app':'web'}},'spec':{'nodeName':'n1',%s},'status':{'phase':'Running'}}",
                             ++world->version, spec) > 0);
        event(world->pods, "MODIFIED", unquote(text));
}

#define CONTAINER(limits) "'containers':[{'name':'c','resources':{'limits':{" limits "}}}]"

static void without_the_option_a_pod_with_a_gpu_stays_awake(void **state)
{
        struct world *world = *state;
        const json_t *workload;

        sync_all(world);
        write_object(world, REPORT, AWAKE);
        add_pod_with(world, CONTAINER("'nvidia.com/gpu':'2','cpu':'1'"));
        workload = told(world, "Unknown",
                        "it has a GPU (nvidia.com/gpu), and this node's agent does not watch GPUs (start it with --gpu)");

        assert_string_equal(text_of(gpu_of(workload), "state"), "Unknown");
        assert_int_equal(number_of(gpu_of(workload), "devices"), 2);
}

static void without_the_option_a_claim_may_be_a_gpu(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, SLEEP, AWAKE);
        add_pod_with(world, "'resourceClaims':[{'name':'d','resourceClaimName':'d'}]," CONTAINER(""));

        told(world, "Unknown", "it has a GPU (by a resource claim, perhaps)");
}

static void without_the_option_all_others_are_judged_by_their_network(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, SLEEP, AWAKE);
        add_pod_with(world, CONTAINER("'cpu':'1','example.com/fpga':'1'"));

        assert_null(gpu_of(told(world, "Idle", "")));
}

static void without_the_option_an_operator_may_put_it_to_sleep(void **state)
{
        struct world *world = *state;

        sync_all(world);
        write_object(world, REPORT, AWAKE);
        add_pod_with(world, CONTAINER("'nvidia.com/gpu':'1'"));
        write_object(world, REPORT, SLEEPING BY_HAND);

        assert_int_equal(number_of(decided(world), "quietEpoch"), 2);
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, world_with_gpus, world_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WORLD_TEST(a_pod_without_a_gpu_is_judged_by_its_network),
                WORLD_TEST(what_its_gpu_does_keeps_it_awake),
                WORLD_TEST(an_idle_gpu_lets_it_sleep_where_the_policy_says_so),
                WORLD_TEST(elsewhere_it_is_told_that_it_would),
                WORLD_TEST(what_it_closed_again_needs_no_leave),
                WORLD_TEST(what_is_unknown_of_its_gpu_keeps_it_awake),
                WORLD_TEST(what_cannot_be_watched_keeps_it_awake),
                WORLD_TEST(a_stuck_gpu_is_not_idle),
                WORLD_TEST(of_two_pods_the_busy_one_counts),
                WORLD_TEST(only_what_changes_is_written),
                WORLD_TEST(a_busy_network_needs_no_look_at_the_gpu),
                WORLD_TEST(its_requests_are_the_gpus_too),
                WORLD_TEST(the_window_is_the_policys_and_four_times_it_at_most),
                WORLD_TEST(a_wake_that_was_seen_tells_how_long_a_cold_start_takes),
                WORLD_TEST(a_sleep_is_voted_for_while_its_gpu_is_idle),
                WORLD_TEST(work_for_its_gpu_before_the_vote_keeps_it_from_voting),
                WORLD_TEST(work_for_its_gpu_takes_the_vote_back),
                WORLD_TEST(an_operator_may_put_it_to_sleep_in_the_middle_of_work),
                WORLD_TEST(a_pod_that_is_gone_takes_its_gpu_with_it),
                cmocka_unit_test_setup_teardown(without_the_option_a_pod_with_a_gpu_stays_awake, world_new, world_free),
                cmocka_unit_test_setup_teardown(without_the_option_a_claim_may_be_a_gpu, world_new, world_free),
                cmocka_unit_test_setup_teardown(without_the_option_all_others_are_judged_by_their_network, world_new, world_free),
                cmocka_unit_test_setup_teardown(without_the_option_an_operator_may_put_it_to_sleep, world_new, world_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
