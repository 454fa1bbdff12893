/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as the API has them: the same fields as in a file on one machine, those of a cluster beside them, and what is wrong named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "policy/load.h"
#include "policy/object.h"
#include "unit/quoted_json.h"

static int read_spec(const char *text, struct policy **ret_policy, char **ret_problem)
{
        json_t *spec = json(text);
        int r = policy_from_object("shop/web", spec, ret_policy, ret_problem);

        json_decref(spec);
        return r;
}

static struct policy *good(const char *text)
{
        _cleanup_(freep) char *problem = NULL;
        struct policy *policy = NULL;

        if (read_spec(text, &policy, &problem) != 1)
                fail_msg("%s: %s", text, problem);
        return policy;
}

#define MINIMAL "'target':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'}"
#define WITH(fields) "{" MINIMAL "," fields "}"

static void everything_left_out_has_its_default(void **state)
{
        _cleanup_(policy_freep) struct policy *policy = good("{" MINIMAL "}");

        assert_string_equal(policy->name, "shop/web");
        assert_null(policy->file);
        assert_int_equal(policy->n_frontends, 0);
        assert_int_equal(policy->target, TARGET_SCALE);
        assert_string_equal(policy->cluster.reference.api_version, "apps/v1");
        assert_string_equal(policy->cluster.reference.kind, "Deployment");
        assert_string_equal(policy->cluster.reference.name, "web");
        assert_null(policy->cluster.services);
        assert_int_equal(policy->cluster.replicas, 0);
        assert_true(policy->cluster.parking);
        assert_int_equal(policy->cluster.readiness, READINESS_PROBE);
        assert_int_equal(policy->cluster.scaled_by, SCALED_BY_LULL);
        assert_int_equal(policy->cluster.n_ignore + policy->n_ignore, 0);
        assert_null(policy->process.command);
        assert_int_equal(policy->idle.after_ns, 300 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.request_timeout_ns, 1800 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.min_awake_ns, 60 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.cpu_millicores, 250);
        assert_int_equal(policy->wake.hold_timeout_ns, 60 * NSEC_PER_SEC);
        assert_int_equal(policy->wake.max_held, 1024);
        assert_false(policy->dry_run);
}

static void every_field_is_read(void **state)
{
        _cleanup_(policy_freep) struct policy *policy = good(
                "{'target':{'apiVersion':'example.com/v1','kind':'Game','name':'chess.eu'},'services':['web','api-2'],"
                "'idle':{'after':'1.5s','requestTimeout':'1h','connections':'Hold','outbound':'Hold','cpu':'0.5','minAwake':'0'},"
                "'wake':{'replicas':2,'holdTimeout':'1s','maxHeld':16,'from':['10.0.0.0/8','fd00::/8'],'parking':false,"
                "'readiness':'Ready'},"
                "'ignore':[{'podSelector':{}},{'cidr':'10.0.0.0/8','port':9090},{'namespaceSelector':{'matchLabels':{'a':'b'}}},"
                "{'podSelector':{'matchLabels':{'app':'prometheus'}},'namespaceSelector':{}}],"
                "'scaledBy':'HorizontalPodAutoscaler','dryRun':true}");

        assert_int_equal(policy->target, TARGET_SCALE);
        assert_string_equal(policy->cluster.reference.name, "chess.eu");
        assert_string_equal(policy->cluster.services[0], "web");
        assert_string_equal(policy->cluster.services[1], "api-2");
        assert_null(policy->cluster.services[2]);
        assert_int_equal(policy->idle.after_ns, 1500 * NSEC_PER_MSEC);
        assert_int_equal(policy->idle.connections, SILENCE_HOLD);
        assert_int_equal(policy->idle.outbound, SILENCE_HOLD);
        assert_int_equal(policy->idle.cpu_millicores, 500);
        assert_int_equal(policy->idle.min_awake_ns, 0);
        assert_int_equal(policy->cluster.replicas, 2);
        assert_int_equal(policy->wake.max_held, 16);
        assert_int_equal(policy->wake.n_from, 2);
        assert_false(policy->cluster.parking);
        assert_int_equal(policy->cluster.readiness, READINESS_READY);
        assert_int_equal(policy->n_ignore, 1);
        assert_int_equal(policy->ignore[0].port, 9090);
        assert_int_equal(policy->cluster.n_ignore, 3);
        assert_string_equal(policy->cluster.ignore[0].pods, "");
        assert_null(policy->cluster.ignore[0].namespaces);
        assert_string_equal(policy->cluster.ignore[1].pods, "");
        assert_string_equal(policy->cluster.ignore[1].namespaces, "a=b");
        assert_string_equal(policy->cluster.ignore[2].pods, "app=prometheus");
        assert_string_equal(policy->cluster.ignore[2].namespaces, "");
        assert_int_equal(policy->cluster.scaled_by, SCALED_BY_AUTOSCALER);
        assert_true(policy->dry_run);
}

static void a_job_is_a_target_of_its_own_kind(void **state)
{
        _cleanup_(policy_freep) struct policy *policy =
                good("{'target':{'apiVersion':'batch/v1','kind':'Job','name':'train'},'idle':{'cpu':2}}");

        assert_int_equal(policy->target, TARGET_JOB);
        assert_int_equal(policy->idle.cpu_millicores, 2000);
}

static void a_selector_is_kept_in_its_text_form(void **state)
{
        static const struct {
                const char *selector, *text;
        } table[] = {
                { "{}", "" },
                { "{'matchLabels':{'a':'b'}}", "a=b" },
                { "{'matchLabels':{'a':'b','example.com/c':''}}", "a=b,example.com/c=" },
                { "{'matchExpressions':[{'key':'c','operator':'In','values':['d','e']}]}", "c in (d,e)" },
                { "{'matchExpressions':[{'key':'c','operator':'NotIn','values':['d']}]}", "c notin (d)" },
                { "{'matchExpressions':[{'key':'f','operator':'Exists'},{'key':'g','operator':'DoesNotExist','values':[]}]}",
                  "f,!g" },
                { "{'matchLabels':{'a':'b'},'matchExpressions':[{'key':'c','operator':'In','values':['d','e']},"
                  "{'key':'f','operator':'Exists'},{'key':'g','operator':'DoesNotExist'}]}",
                  "a=b,c in (d,e),f,!g" },
                { "{'matchLabels':null,'matchExpressions':null}", "" },
        };
        char text[1024];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_freep) struct policy *policy = NULL;

                snprintf(text, sizeof(text), WITH("'ignore':[{'podSelector':%s}]"), table[i].selector);
                policy = good(text);
                assert_string_equal(policy->cluster.ignore[0].pods, table[i].text);
        }
}

static void every_mistake_is_named_with_what_would_be_right(void **state)
{
        static const struct {
                const char *spec, *problem;
        } table[] = {
                { "null", "spec: missing; say what to put to sleep" },
                { "[]", "spec: a list is not a mapping; write fields as NAME: VALUE" },
                { "{}", "spec.target: missing; say what to put to sleep, like {apiVersion: apps/v1, kind: Deployment, name: web}" },
                { WITH("'listen':['tcp/0.0.0.0:80']"),
                  "spec.listen: only on one machine; here its Services say what clients connect to: name them in spec.services" },
                { WITH("'idel':{}"), "spec.idel: unknown field; did you mean \"idle\"?" },
                { WITH("'idle':{'gpus':{}}"), "spec.idle.gpus: unknown field; did you mean \"gpu\"?" },
                { WITH("'idle':{'gpu':30}"), "spec.idle.gpu: \"30\" is not a mapping; write fields as NAME: VALUE" },
                { WITH("'idle':{'gpu':{'after':'0.5s'}}"),
                  "spec.idle.gpu.after: \"0.5s\" is out of range; write a duration from 1s to 8760h" },
                { WITH("'idle':{'gpu':{'onIdle':'sleep'}}"), "spec.idle.gpu.onIdle: \"sleep\" is neither Report nor Sleep" },
                /* target */
                { "{'target':{'kind':'Process','command':['x']}}",
                  "spec.target.command: only on one machine; here a target is given by its apiVersion, kind and name; "
                  "spec.target.apiVersion: missing; write it like apps/v1; spec.target.name: missing; name what is to be put to sleep" },
                { "{'target':{'apiVersion':'apps','kind':'Deployment','name':'web'}}",
                  "spec.target.apiVersion: \"apps\" has no Deployment; write apps/v1" },
                { "{'target':{'apiVersion':'apps/','kind':'Deployment','name':'web'}}",
                  "spec.target.apiVersion: \"apps/\" is not an API version; write it like apps/v1" },
                { "{'target':{'apiVersion':'/v1','kind':'Deployment','name':'web'}}",
                  "spec.target.apiVersion: \"/v1\" is not an API version; write it like apps/v1" },
                { "{'target':{'apiVersion':'apps/v1','kind':'deployment','name':'web'}}",
                  "spec.target.kind: \"deployment\" is not a kind of object; write it like Deployment" },
                { "{'target':{'apiVersion':'apps/v1','kind':'Deployment','name':'Web'}}",
                  "spec.target.name: \"Web\" is not the name of an object; use lower-case letters, digits, \"-\" and \".\", 253 at most" },
                { "{'target':{'apiVersion':'apps/v1','kind':'Job','name':'web'}}",
                  "spec.target.apiVersion: \"apps/v1\" has no Job; write batch/v1" },
                { "{'target':{'apiVersion':'apps/v1','kind':'DaemonSet','name':'web'}}",
                  "spec.target.kind: \"DaemonSet\" cannot be put to sleep: it has a pod on every node" },
                { "{'target':{'apiVersion':'batch/v1','kind':'Job','name':'x'},'wake':{'replicas':2}}",
                  "spec.wake.replicas: cannot be given for a Job, which is resumed as it was; leave it out" },
                { "{'target':{'apiVersion':'batch/v1','kind':'Job','name':'x'},'scaledBy':'HorizontalPodAutoscaler'}",
                  "spec.scaledBy: \"HorizontalPodAutoscaler\" does not scale Jobs; leave it out" },
                /* services */
                { WITH("'services':[]"),
                  "spec.services: is empty; name a Service, or leave the field out for all that select the target's pods" },
                { WITH("'services':['web','web']"), "spec.services[1]: \"web\" is given twice; remove one of the two" },
                { WITH("'services':['web.shop']"), "spec.services[0]: \"web.shop\" is not the name of a Service" },
                /* durations, words, numbers */
                { WITH("'idle':{'after':'5 minutes'}"),
                  "spec.idle.after: \"5 minutes\" is not a duration; write it like \"5m\" or \"1m30s\"" },
                { WITH("'idle':{'after':'0'}"), "spec.idle.after: \"0\" is out of range; write a duration from 1ms to 8760h" },
                { WITH("'wake':{'holdTimeout':'11m'}"),
                  "spec.wake.holdTimeout: \"11m\" is out of range; write a duration from 1s to 10m" },
                { WITH("'wake':{'maxHeld':4097}"), "spec.wake.maxHeld: \"4097\" is not a whole number from 1 to 4096" },
                { WITH("'wake':{'maxHeld':'16'}"),
                  "spec.wake.maxHeld: \"16\" is not a whole number from 1 to 4096 (in quotes it is text)" },
                { WITH("'wake':{'maxHeld':1.5}"), "spec.wake.maxHeld: \"1.5\" is not a whole number from 1 to 4096" },
                { WITH("'wake':{'replicas':0}"), "spec.wake.replicas: \"0\" is not a whole number from 1 to 100000" },
                { WITH("'wake':{'readiness':'probe'}"), "spec.wake.readiness: \"probe\" is neither Probe nor Ready" },
                { WITH("'scaledBy':'Keda'"), "spec.scaledBy: \"Keda\" is neither Lull nor HorizontalPodAutoscaler" },
                { WITH("'dryRun':'true'"), "spec.dryRun: \"true\" in quotes is text, not a boolean; write true" },
                { WITH("'idle':{'cpu':'1e3'}"),
                  "spec.idle.cpu: \"1e3\" is not an amount of CPU; write it like 250m or 0.25, and 0 for no limit" },
                /* ignore */
                { WITH("'ignore':[{}]"),
                  "spec.ignore[0]: would ignore everybody; give podSelector, namespaceSelector, cidr or port" },
                { WITH("'ignore':[{'port':1},{'podSelector':{},'port':1}]"),
                  "spec.ignore[1]: has selectors beside cidr or port; make two entries of it" },
                { WITH("'ignore':[{'podSelector':{'matchLabels':{'a b':'c'}}}]"),
                  "spec.ignore[0].podSelector.matchLabels.a b: \"a b\" is not the key of a label; write it like app or example.com/app" },
                { WITH("'ignore':[{'podSelector':{'matchLabels':{'a':'b,c=d'}}}]"),
                  "spec.ignore[0].podSelector.matchLabels.a: \"b,c=d\" is not the value of a label; use letters, digits, \"-\", \"_\" and "
                  "\".\", 63 at most" },
                { WITH("'ignore':[{'podSelector':{'matchExpressions':[{'key':'a','operator':'Is'}]}}]"),
                  "spec.ignore[0].podSelector.matchExpressions[0].operator: \"Is\" is none of In, NotIn, Exists, DoesNotExist" },
                { WITH("'ignore':[{'podSelector':{'matchExpressions':[{'key':'a','operator':'In'}]}}]"),
                  "spec.ignore[0].podSelector.matchExpressions[0]: has no values; In needs at least one" },
                { WITH("'ignore':[{'podSelector':{'matchExpressions':[{'key':'a','operator':'Exists','values':['b']}]}}]"),
                  "spec.ignore[0].podSelector.matchExpressions[0]: has values; Exists takes none" },
                { WITH("'wake':{'from':['10.0.0.1/8']}"),
                  "spec.wake.from[0]: \"10.0.0.1/8\" has bits set past its prefix length; write the network's own address, like "
                  "10.0.0.0/8" },
                { WITH("'x':[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]"),
                  "spec: has more than 16 lists and mappings within each other" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_freep) struct policy *policy = NULL;
                _cleanup_(freep) char *problem = NULL;

                assert_int_equal(read_spec(table[i].spec, &policy, &problem), 0);
                assert_null(policy);
                assert_string_equal(problem, table[i].problem);
        }
}

static void of_many_mistakes_the_first_are_named_and_the_rest_counted(void **state)
{
        _cleanup_(policy_freep) struct policy *policy = NULL;
        _cleanup_(freep) char *problem = NULL;

        assert_int_equal(read_spec(WITH("'a':1,'b':1,'c':1,'d':1,'e':1,'f':1,'g':1,'h':1,'i':1,'j':1"), &policy, &problem), 0);
        assert_non_null(strstr(problem, "spec.a: unknown field; spec.b: unknown field; "));
        assert_non_null(strstr(problem, "spec.h: unknown field; and 2 more"));
}

static void a_selector_has_a_bounded_number_of_requirements(void **state)
{
        _cleanup_(freep) char *problem = NULL;
        json_t *labels = json_object(), *spec;
        struct policy *policy = NULL;
        char key[16];

        for (int i = 0; i < 65; i++) {
                snprintf(key, sizeof(key), "k%d", i);
                json_object_set_new(labels, key, json_string(""));
        }
        spec = json_pack("{s:{s:s, s:s, s:s}, s:[{s:{s:o}}]}", "target", "apiVersion", "apps/v1", "kind", "Deployment", "name", "w",
                         "ignore", "podSelector", "matchLabels", labels);
        assert_int_equal(policy_from_object("a/b", spec, &policy, &problem), 0);
        json_decref(spec);
        assert_string_equal(problem,
                            "spec.ignore[0].podSelector.matchLabels.k64: is one requirement too many; at most 64 are possible");
}

/* Differences in each field of a cluster's make two policies different, and nothing else does. */
static void policies_differ_where_their_fields_differ(void **state)
{
        static const char *const specs[] = {
                "{" MINIMAL "}",
                "{'target':{'apiVersion':'apps/v1','kind':'StatefulSet','name':'web'}}",
                "{'target':{'apiVersion':'apps/v1','kind':'Deployment','name':'api'}}",
                "{'target':{'apiVersion':'batch/v1','kind':'Job','name':'web'}}",
                WITH("'services':['web']"),
                WITH("'services':['web','api']"),
                WITH("'wake':{'replicas':2}"),
                WITH("'wake':{'parking':false}"),
                WITH("'wake':{'readiness':'Ready'}"),
                WITH("'scaledBy':'HorizontalPodAutoscaler'"),
                WITH("'ignore':[{'podSelector':{}}]"),
                WITH("'ignore':[{'podSelector':{},'namespaceSelector':{}}]"),
                WITH("'ignore':[{'podSelector':{'matchLabels':{'a':'b'}}}]"),
                WITH("'ignore':[{'cidr':'10.0.0.0/8'}]"),
                WITH("'idle':{'after':'6m'}"),
        };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++)
                for (size_t j = 0; j < ELEMENTSOF(specs); j++) {
                        _cleanup_(policy_freep) struct policy *a = good(specs[i]), *b = good(specs[j]);

                        if (policy_equal(a, b) != (i == j))
                                fail_msg("%s and %s", specs[i], specs[j]);
                }
}

static void a_policy_of_one_machine_differs_from_one_of_a_cluster(void **state)
{
        static const char text[] = "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: web}\nspec:\n"
                                   "  listen: [tcp/0.0.0.0:80]\n  target: {kind: Process, command: [server]}\n";
        _cleanup_(policy_freep) struct policy *policy = good("{" MINIMAL "}");
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;

        assert_int_equal(policy_set_load_text(text, strlen(text), "t.yaml", &set), 0);
        assert_int_equal(set->n_policies, 1);
        assert_false(policy_equal(policy, set->policies[0]));
        assert_false(policy_equal(set->policies[0], policy));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_left_out_has_its_default),
                cmocka_unit_test(every_field_is_read),
                cmocka_unit_test(a_job_is_a_target_of_its_own_kind),
                cmocka_unit_test(a_selector_is_kept_in_its_text_form),
                cmocka_unit_test(every_mistake_is_named_with_what_would_be_right),
                cmocka_unit_test(of_many_mistakes_the_first_are_named_and_the_rest_counted),
                cmocka_unit_test(a_selector_has_a_bounded_number_of_requirements),
                cmocka_unit_test(policies_differ_where_their_fields_differ),
                cmocka_unit_test(a_policy_of_one_machine_differs_from_one_of_a_cluster),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
