/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "policy/load.h"
#include "policy/suggest.h"

#define HEAD "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: %s}\nspec: "
#define TARGET "target: {kind: Process, command: [a, b], environment: {A: 1}, user: root, workingDirectory: /x}"
#define BASE "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 1}]"

static struct policy_set *load(const char *name, const char *spec)
{
        struct policy_set *set = NULL;
        char text[1024];

        snprintf(text, sizeof(text), HEAD "{%s}\n", name, spec);
        assert_int_equal(policy_set_load_text(text, strlen(text), "t.yaml", &set), 0);
        if (set->n_policies != 1)
                fail_msg("%s", set->errors[0]);
        return set;
}

static void policies_are_equal_when_they_say_the_same_under_any_name(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *a = load("a", BASE);
        _cleanup_(policy_set_freep) struct policy_set *b = load("b", "idle: {after: 300s, cpu: 0.25}, " BASE);

        assert_true(policy_equal(a->policies[0], b->policies[0]));
        assert_true(policy_equal(b->policies[0], a->policies[0]));
}

static void a_change_of_any_field_makes_policies_differ(void **unused)
{
        static const char *const changed[] = {
                "listen: [tcp/0.0.0.0:2], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 1}]",
                "listen: [udp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1, tcp/0.0.0.0:2], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/9]}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8, 11.0.0.0/8]}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8], maxHeld: 1}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8], holdTimeout: 1s}, ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", ignore: [{port: 1}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 2}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8]}, ignore: [{port: 1, cidr: 10.0.0.0/8}]",
                "listen: [tcp/0.0.0.0:1], " TARGET ", wake: {from: [10.0.0.0/8]}",
                "dryRun: true, " BASE,
                "idle: {after: 1s}, " BASE,
                "idle: {requestTimeout: 1s}, " BASE,
                "idle: {minAwake: 1s}, " BASE,
                "idle: {connections: Hold}, " BASE,
                "idle: {outbound: Hold}, " BASE,
                "idle: {cpu: 1}, " BASE,
                "idle: {gpu: {after: 1s}}, " BASE,
                "idle: {gpu: {onIdle: Sleep}}, " BASE,
        };
        static const char *const targets[] = {
                "command: [a], environment: {A: 1}, user: root, workingDirectory: /x",
                "command: [a, b, c], environment: {A: 1}, user: root, workingDirectory: /x",
                "command: [a, c], environment: {A: 1}, user: root, workingDirectory: /x",
                "command: [a, b], environment: {A: 2}, user: root, workingDirectory: /x",
                "command: [a, b], user: root, workingDirectory: /x",
                "command: [a, b], environment: {A: 1}, user: nobody, workingDirectory: /x",
                "command: [a, b], environment: {A: 1}, workingDirectory: /x",
                "command: [a, b], environment: {A: 1}, user: root, workingDirectory: /y",
                "command: [a, b], environment: {A: 1}, user: root",
                "command: [a, b], environment: {A: 1}, user: root, workingDirectory: /x, stopSignal: SIGINT",
                "command: [a, b], environment: {A: 1}, user: root, workingDirectory: /x, stopTimeout: 1s",
        };
        _cleanup_(policy_set_freep) struct policy_set *base = load("a", BASE);
        char spec[512];

        for (size_t i = 0; i < ELEMENTSOF(changed) + ELEMENTSOF(targets); i++) {
                _cleanup_(policy_set_freep) struct policy_set *other = NULL;

                if (i < ELEMENTSOF(changed))
                        snprintf(spec, sizeof(spec), "%s", changed[i]);
                else
                        snprintf(
                                spec, sizeof(spec),
                                "listen: [tcp/0.0.0.0:1], target: {kind: Process, %s}, wake: {from: [10.0.0.0/8]}, ignore: [{port: 1}]",
                                targets[i - ELEMENTSOF(changed)]);
                other = load("a", spec);
                if (policy_equal(base->policies[0], other->policies[0]) || policy_equal(other->policies[0], base->policies[0]))
                        fail_msg("no difference: %s", spec);
        }
}

static void a_peer_is_ignored_when_some_rule_fits_in_all_it_names(void **unused)
{
        static const struct {
                const char *rules, *source;
                uint16_t port;
                bool ignored;
        } table[] = {
                { "[]", "10.0.0.1", 80, false },
                { "[{cidr: 10.0.0.0/8}]", "10.0.0.1", 80, true },
                { "[{cidr: 10.0.0.0/8}]", "11.0.0.1", 80, false },
                { "[{port: 9090}]", "192.0.2.1", 9090, true },
                { "[{port: 9090}]", "2001:db8::1", 9090, true },
                { "[{port: 9090}]", "192.0.2.1", 80, false },
                { "[{cidr: 10.0.0.0/8, port: 9090}]", "10.0.0.1", 9090, true },
                { "[{cidr: 10.0.0.0/8, port: 9090}]", "10.0.0.1", 80, false },
                { "[{cidr: 10.0.0.0/8, port: 9090}]", "192.0.2.1", 9090, false },
                { "[{cidr: 10.0.0.0/8}, {port: 9090}]", "192.0.2.1", 9090, true },
                { "[{cidr: '2001:db8::/32'}]", "2001:db8::1", 80, true },
                { "[{cidr: '2001:db8::/32'}]", "192.0.2.1", 80, false },
        };
        char spec[512];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_set_freep) struct policy_set *set = NULL;
                struct address source;

                snprintf(spec, sizeof(spec), "listen: [tcp/0.0.0.0:80], " TARGET ", ignore: %s", table[i].rules);
                set = load("a", spec);
                assert_int_equal(address_parse(table[i].source, &source), 0);
                if (policy_ignores(set->policies[0], &source, table[i].port) != table[i].ignored)
                        fail_msg("%s and %s port %u", table[i].rules, table[i].source, table[i].port);
        }
}

static void a_mistyped_word_suggests_the_one_it_is_near(void **unused)
{
        static const char *const known[] = { "after", "requestTimeout", "connections", "outbound", "cpu", "minAwake" };
        static const struct {
                const char *word, *nearest;
        } table[] = {
                { "atfer", "after" },
                { "aftr", "after" },
                { "request_timeout", "requestTimeout" },
                { "request-timeout", "requestTimeout" },
                { "reqestTimout", "requestTimeout" },
                { "CPU", "cpu" },
                { "cpus", "cpu" },
                { "connection", "connections" },
                { "gpu", "cpu" },
                { "ab", NULL },
                { "", NULL },
                { "__", NULL },
                { "colour", NULL },
                { "requestTimeoutrequestTimeoutrequestTimeout", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const char *nearest = suggest_nearest(table[i].word, known, ELEMENTSOF(known));

                if (nearest != table[i].nearest && (!nearest || !table[i].nearest || strcmp(nearest, table[i].nearest) != 0))
                        fail_msg("%s: %s", table[i].word, nearest ?: "nothing");
        }
}

static void nothing_is_freed_twice(void **unused)
{
        assert_null(policy_free(NULL));
        assert_null(policy_set_free(NULL));
        assert_null(policy_free(calloc(1, sizeof(struct policy))));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(policies_are_equal_when_they_say_the_same_under_any_name),
                cmocka_unit_test(a_change_of_any_field_makes_policies_differ),
                cmocka_unit_test(a_peer_is_ignored_when_some_rule_fits_in_all_it_names),
                cmocka_unit_test(a_mistyped_word_suggests_the_one_it_is_near),
                cmocka_unit_test(nothing_is_freed_twice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
