/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "controller/agents.h"
#include "controller/evidence.h"

static const uint64_t second = NSEC_PER_SEC;

static struct kube_lease lease(const char *name, const char *renewed, uint32_t seconds)
{
        return (struct kube_lease){ .metadata.name = (char *)name,
                                    .holder = (char *)"someone",
                                    .renew_time = (char *)renewed,
                                    .duration_seconds = seconds };
}

static enum agent_freshness freshness(const struct agents *agents, uint64_t now_ns)
{
        return agents_get(agents, "n1", now_ns).freshness;
}

static void only_a_lease_that_was_seen_to_change_is_proof_of_life(void **state)
{
        _cleanup_(agents_freep) struct agents *agents = NULL;
        struct kube_lease first = lease("lull-agent-n1", "a", 40), next = lease("lull-agent-n1", "b", 40);

        assert_int_equal(agents_new(&agents), 0);
        assert_int_equal(freshness(agents, 0), AGENT_STALE);
        assert_int_equal(agents_lease(agents, &first, 100 * second), 1);
        assert_int_equal(freshness(agents, 139 * second), AGENT_UNPROVEN);
        assert_int_equal(freshness(agents, 140 * second), AGENT_STALE);
        assert_int_equal(agents_lease(agents, &first, 120 * second), 0);
        assert_int_equal(freshness(agents, 140 * second), AGENT_STALE);

        assert_int_equal(agents_lease(agents, &next, 130 * second), 1);
        assert_int_equal(freshness(agents, 169 * second), AGENT_FRESH);
        assert_int_equal(agents_deadline(agents, 169 * second), 170 * second);
        assert_int_equal(freshness(agents, 170 * second), AGENT_STALE);
        assert_int_equal(agents_deadline(agents, 170 * second), 0);
        assert_int_equal(agents_count(agents, AGENT_STALE, 170 * second), 1);
        assert_false(agents_fell_silent(agents, 169 * second));
        assert_true(agents_fell_silent(agents, 170 * second));
        assert_false(agents_fell_silent(agents, 171 * second));
        agents_lease_gone(agents, &next);
        assert_int_equal(agents_count(agents, AGENT_STALE, 170 * second), 0);
}

static void a_lease_lasts_as_long_as_it_says_but_not_for_ever(void **state)
{
        _cleanup_(agents_freep) struct agents *agents = NULL;
        struct kube_lease leases[] = { lease("lull-agent-n1", "a", 5), lease("lull-agent-n1", "b", 5),
                                       lease("lull-agent-n1", "c", 3600), lease("lull-agent-n1", "d", 3600) };

        assert_int_equal(agents_new(&agents), 0);
        for (int i = 0; i < 2; i++)
                agents_lease(agents, &leases[i], 0);
        assert_int_equal(freshness(agents, 5 * second - 1), AGENT_FRESH);
        assert_int_equal(freshness(agents, 5 * second), AGENT_STALE);
        agents_lease(agents, &leases[2], 10 * second);
        assert_int_equal(freshness(agents, 10 * second + AGENT_FRESH_MAX_NS), AGENT_STALE);
        leases[3].holder = (char *)""; /* given back */
        agents_lease(agents, &leases[3], 11 * second);
        assert_int_equal(freshness(agents, 11 * second), AGENT_STALE);
}

static void other_leases_are_left_alone(void **state)
{
        _cleanup_(agents_freep) struct agents *agents = NULL;
        struct kube_lease others[] = { lease("lull-controller", "a", 40), lease("lull-agent-", "a", 40) };

        assert_int_equal(agents_new(&agents), 0);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_int_equal(agents_lease(agents, &others[i], 0), 0);
        assert_int_equal(agents_count(agents, AGENT_UNPROVEN, 0), 0);
}

/* Two nodes with agents; each says of the policy what a test puts here. */
struct cluster {
        struct agents *agents;
        struct node_workload workloads[2];
        struct node_demand demands[2];
        struct node_activity activities[2];
};

static char *const node_names[] = { (char *)"n1", (char *)"n2" };

static void cluster_make(struct cluster *cluster)
{
        *cluster = (struct cluster){ 0 };
        assert_int_equal(agents_new(&cluster->agents), 0);
        for (int i = 0; i < 2; i++) {
                char name[32];
                struct kube_lease first = lease(name, "a", 40), next = lease(name, "b", 40);

                snprintf(name, sizeof(name), "lull-agent-%s", node_names[i]);
                agents_lease(cluster->agents, &first, 0);
                agents_lease(cluster->agents, &next, 0);
                cluster->workloads[i] =
                        (struct node_workload){ .policy = (char *)"a/b", .state = WORKLOAD_IDLE, .quiet_epoch = 7, .pods = 2 };
                cluster->demands[i] =
                        (struct node_demand){ .policy = (char *)"a/b", .epoch = 7, .first_realtime_ns = 100 - (unsigned)i };
                cluster->activities[i] = (struct node_activity){
                        .workloads = &cluster->workloads[i],
                        .n_workloads = 1,
                        .demands = &cluster->demands[i],
                        .programmed = 50,
                        .instance = (char *)"someone",
                };
                agents_activity(cluster->agents, node_names[i], &cluster->activities[i]);
        }
}

static struct evidence ask(const struct cluster *cluster, uint64_t now_ns)
{
        static const uint32_t pods[] = { 2, 2 };
        const struct evidence_question question = { .policy = "a/b",
                                                    .epoch = 7,
                                                    .version = 50,
                                                    .nodes = (char *const *)node_names,
                                                    .pods = pods,
                                                    .n_nodes = 2,
                                                    .who_asks = true,
                                                    .who_has_programmed = true };
        struct evidence evidence;

        evidence_gather(cluster->agents, &question, now_ns, &evidence);
        return evidence;
}

static void everybody_has_to_say_idle_and_quiet(void **state)
{
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        evidence = ask(&cluster, second);
        assert_true(evidence.idle && evidence.quiet && evidence.programmed);
        assert_int_equal(evidence.n_missing, 0);

        cluster.workloads[1].state = WORKLOAD_UNKNOWN;
        cluster.workloads[1].reason = (char *)"cannot be read";
        cluster.workloads[0].quiet_epoch = 6;
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet);
        assert_true(evidence.busy_is_unknown);
        assert_string_equal(evidence.busy_node, "n2");
        assert_string_equal(evidence.busy_reason, "cannot be read");
        assert_string_equal(evidence.unquiet_node, "n1");
        agents_free(cluster.agents);
}

static void a_node_that_says_nothing_is_not_idle(void **state)
{
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        cluster.activities[1].n_workloads = 0;
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet);
        agents_activity(cluster.agents, "n2", NULL);
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet || evidence.programmed);
        assert_string_equal(evidence.unprogrammed_node, "n2");
        agents_free(cluster.agents);
}

static void what_a_silent_agent_once_said_is_not_believed(void **state)
{
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        cluster.activities[0].n_demands = 1;
        evidence = ask(&cluster, 40 * second);
        assert_false(evidence.idle || evidence.quiet);
        assert_int_equal(evidence.n_missing, 2);
        assert_string_equal(evidence.missing[0], "n1");
        assert_true(evidence.programmed); /* they hold nothing */
        assert_non_null(evidence.demand); /* but somebody asked */
        agents_free(cluster.agents);
}

/* An agent that dies while a policy falls asleep, and is started again at once: its Lease has not run out. */
static void what_the_process_before_said_is_not_believed(void **state)
{
        struct kube_lease next = lease("lull-agent-n2", "c", 40);
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        cluster.activities[1].n_demands = 1;
        next.holder = (char *)"someone else";
        assert_int_equal(agents_lease(cluster.agents, &next, second), 1);
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet || evidence.programmed);
        assert_true(evidence.busy_is_unknown);
        assert_string_equal(evidence.busy_node, "n2");
        assert_string_equal(evidence.unquiet_node, "n2");
        assert_string_equal(evidence.unprogrammed_node, "n2");
        assert_int_equal(evidence.n_missing, 0);
        assert_non_null(evidence.demand); /* but somebody asked */
        cluster.activities[1].instance = NULL;
        assert_false(ask(&cluster, second).quiet);
        cluster.activities[1].instance = (char *)"someone else";
        evidence = ask(&cluster, second);
        assert_true(evidence.idle && evidence.quiet && evidence.programmed);
        agents_free(cluster.agents);
}

static void what_the_process_before_said_elsewhere_is_not_believed(void **state)
{
        struct node_workload workload = { .policy = (char *)"a/b", .state = WORKLOAD_IDLE, .quiet_epoch = 7, .pods = 1 };
        struct node_activity activity = { .workloads = &workload, .n_workloads = 1, .programmed = 50, .instance = (char *)"old" };
        struct kube_lease first = lease("lull-agent-n3", "a", 40), next = lease("lull-agent-n3", "b", 40);
        struct cluster cluster;

        cluster_make(&cluster);
        agents_activity(cluster.agents, "n3", &activity);
        agents_lease(cluster.agents, &first, 0);
        agents_lease(cluster.agents, &next, 0);
        assert_string_equal(ask(&cluster, second).busy_node, "n3");
        assert_string_equal(ask(&cluster, second).unquiet_node, "n3");
        activity.instance = (char *)"someone";
        assert_true(ask(&cluster, second).idle && ask(&cluster, second).quiet);
        agents_free(cluster.agents);
}

static void an_unproven_agent_is_neither_believed_nor_missing(void **state)
{
        struct kube_lease gone = lease("lull-agent-n1", "a", 40);
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        agents_lease_gone(cluster.agents, &gone);
        agents_lease(cluster.agents, &gone, second);
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet);
        assert_int_equal(evidence.n_missing, 0);
        agents_free(cluster.agents);
}

static void after_an_outage_each_agent_has_to_renew_its_lease_first(void **state)
{
        struct cluster cluster;
        struct kube_lease next;

        cluster_make(&cluster);
        assert_true(ask(&cluster, second).idle);

        agents_doubt(cluster.agents);
        assert_false(ask(&cluster, second).idle || ask(&cluster, second).quiet);
        assert_int_equal(ask(&cluster, second).n_missing, 0);

        for (size_t i = 0; i < ELEMENTSOF(node_names); i++) {
                char name[32];

                snprintf(name, sizeof(name), "lull-agent-%s", node_names[i]);
                next = lease(name, "later", 40);
                assert_int_equal(agents_lease(cluster.agents, &next, second), 1);
        }
        assert_true(ask(&cluster, second).idle);
        agents_free(cluster.agents);
}

static void no_pods_are_no_evidence(void **state)
{
        const struct evidence_question question = { .policy = "a/b", .epoch = 7 };
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        evidence_gather(cluster.agents, &question, second, &evidence);
        assert_false(evidence.idle || evidence.quiet);
        agents_free(cluster.agents);
}

/* A rollout that recreates: the last pods serve yet, and say Idle, while the next ones are to come. */
static void pods_that_do_not_run_yet_or_are_not_ready_are_not_idle(void **state)
{
        static const uint32_t pods[] = { 2, 2 };
        struct evidence_question question = { .policy = "a/b",
                                              .epoch = 7,
                                              .nodes = (char *const *)node_names,
                                              .pods = pods,
                                              .n_nodes = 2,
                                              .wanted = 4,
                                              .n_ready = 1 };
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        for (question.running = 0; question.running < 6; question.running++) {
                evidence_gather(cluster.agents, &question, second, &evidence);
                assert_int_equal(evidence.idle, question.running >= 4);
                assert_int_equal(evidence.pods_are_missing, question.running < 4);
                assert_true(evidence.quiet); /* an operator may put them to sleep for all that */
        }
        question.n_ready = 0; /* they start */
        evidence_gather(cluster.agents, &question, second, &evidence);
        assert_false(evidence.idle);
        assert_true(evidence.none_is_ready && !evidence.pods_are_missing && evidence.quiet);
        agents_free(cluster.agents);
}

static void an_agent_that_has_not_seen_all_pods_cannot_call_them_idle(void **state)
{
        struct cluster cluster;
        struct evidence evidence;

        cluster_make(&cluster);
        cluster.workloads[1].pods = 1;
        evidence = ask(&cluster, second);
        assert_false(evidence.idle || evidence.quiet);
        assert_true(evidence.busy_is_unknown);
        assert_string_equal(evidence.busy_node, "n2");
        cluster.workloads[1].pods = 3; /* one more than slices know */
        evidence = ask(&cluster, second);
        assert_true(evidence.idle && evidence.quiet);
        agents_free(cluster.agents);
}

static void pods_that_no_slice_names_count_where_an_agent_sees_them(void **state)
{
        struct node_workload workload = { .policy = (char *)"a/b", .state = WORKLOAD_ACTIVE, .quiet_epoch = 7, .pods = 1 };
        struct node_activity activity = {
                .workloads = &workload, .n_workloads = 1, .programmed = 50, .instance = (char *)"someone"
        };
        struct kube_lease first = lease("lull-agent-n3", "a", 40), next = lease("lull-agent-n3", "b", 40);
        struct cluster cluster;

        cluster_make(&cluster);
        agents_activity(cluster.agents, "n3", &activity);
        assert_true(ask(&cluster, second).idle); /* it is not alive */
        agents_lease(cluster.agents, &first, 0);
        agents_lease(cluster.agents, &next, 0);
        assert_false(ask(&cluster, second).idle);
        assert_string_equal(ask(&cluster, second).busy_node, "n3");
        assert_true(ask(&cluster, second).quiet);
        workload.state = WORKLOAD_IDLE;
        workload.quiet_epoch = 6;
        assert_true(ask(&cluster, second).idle);
        assert_false(ask(&cluster, second).quiet);
        assert_string_equal(ask(&cluster, second).unquiet_node, "n3");
        agents_free(cluster.agents);
}

static void demand_of_another_epoch_is_old(void **state)
{
        struct cluster cluster;

        cluster_make(&cluster);
        cluster.activities[0].n_demands = cluster.activities[1].n_demands = 1;
        assert_ptr_equal(ask(&cluster, second).demand, &cluster.demands[1]); /* the earlier */
        assert_string_equal(ask(&cluster, second).demand_node, "n2");
        cluster.demands[1].epoch = 6;
        assert_ptr_equal(ask(&cluster, second).demand, &cluster.demands[0]);
        cluster.demands[0].epoch = 8;
        assert_null(ask(&cluster, second).demand);
        agents_free(cluster.agents);
}

static void every_living_agent_has_to_hold_not_only_those_with_pods(void **state)
{
        struct kube_lease unproven = lease("lull-agent-n3", "a", 40);
        struct cluster cluster;

        cluster_make(&cluster);
        assert_true(ask(&cluster, second).programmed);
        agents_lease(cluster.agents, &unproven, second);
        assert_false(ask(&cluster, second).programmed);
        assert_string_equal(ask(&cluster, second).unprogrammed_node, "n3");
        agents_lease_gone(cluster.agents, &unproven);
        cluster.activities[0].programmed = 49;
        assert_string_equal(ask(&cluster, second).unprogrammed_node, "n1");
        agents_free(cluster.agents);
}

static void holds_gpus(struct cluster *cluster, bool would_sleep)
{
        for (int i = 0; i < 2; i++) {
                cluster->workloads[i].state = WORKLOAD_ACTIVE;
                cluster->workloads[i].gpu =
                        (struct node_gpu){ .devices = 1 + (unsigned)i, .state = NODE_GPU_IDLE, .would_sleep = would_sleep };
        }
}

static void what_only_onidle_report_keeps_awake_is_told_apart(void **state)
{
        struct evidence evidence;
        struct cluster cluster;

        cluster_make(&cluster);
        assert_false(ask(&cluster, second).only_gpu_report); /* nobody has one */
        holds_gpus(&cluster, true);
        evidence = ask(&cluster, second);
        assert_false(evidence.idle);
        assert_true(evidence.only_gpu_report);
        assert_int_equal(evidence.gpus, 3);
        cluster.workloads[0].state = WORKLOAD_IDLE;
        assert_true(ask(&cluster, second).only_gpu_report);
        cluster.workloads[0].state = WORKLOAD_ACTIVE;
        cluster.workloads[0].gpu.would_sleep = false;
        assert_false(ask(&cluster, second).only_gpu_report);
        holds_gpus(&cluster, true);
        cluster.workloads[1].state = WORKLOAD_UNKNOWN;
        assert_false(ask(&cluster, second).only_gpu_report);
        holds_gpus(&cluster, true);
        cluster.workloads[1].pods = 1;
        assert_false(ask(&cluster, second).only_gpu_report);
        agents_free(cluster.agents);
}

static void what_an_agent_elsewhere_says_of_gpus_counts_too(void **state)
{
        static const uint32_t pods[] = { 2 };
        const struct evidence_question question = {
                .policy = "a/b", .nodes = (char *const *)node_names, .pods = pods, .n_nodes = 1
        };
        struct evidence evidence;
        struct cluster cluster;

        cluster_make(&cluster);
        holds_gpus(&cluster, true);
        cluster.workloads[0].quiet_epoch = cluster.workloads[1].quiet_epoch = -1;
        evidence_gather(cluster.agents, &question, second, &evidence);
        assert_true(evidence.only_gpu_report);
        cluster.workloads[1].gpu.would_sleep = false;
        evidence_gather(cluster.agents, &question, second, &evidence);
        assert_false(evidence.only_gpu_report);
        agents_free(cluster.agents);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_a_lease_that_was_seen_to_change_is_proof_of_life),
                cmocka_unit_test(a_lease_lasts_as_long_as_it_says_but_not_for_ever),
                cmocka_unit_test(other_leases_are_left_alone),
                cmocka_unit_test(everybody_has_to_say_idle_and_quiet),
                cmocka_unit_test(a_node_that_says_nothing_is_not_idle),
                cmocka_unit_test(what_a_silent_agent_once_said_is_not_believed),
                cmocka_unit_test(what_the_process_before_said_is_not_believed),
                cmocka_unit_test(what_the_process_before_said_elsewhere_is_not_believed),
                cmocka_unit_test(an_unproven_agent_is_neither_believed_nor_missing),
                cmocka_unit_test(after_an_outage_each_agent_has_to_renew_its_lease_first),
                cmocka_unit_test(no_pods_are_no_evidence),
                cmocka_unit_test(pods_that_do_not_run_yet_or_are_not_ready_are_not_idle),
                cmocka_unit_test(an_agent_that_has_not_seen_all_pods_cannot_call_them_idle),
                cmocka_unit_test(pods_that_no_slice_names_count_where_an_agent_sees_them),
                cmocka_unit_test(demand_of_another_epoch_is_old),
                cmocka_unit_test(every_living_agent_has_to_hold_not_only_those_with_pods),
                cmocka_unit_test(what_only_onidle_report_keeps_awake_is_told_apart),
                cmocka_unit_test(what_an_agent_elsewhere_says_of_gpus_counts_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
