/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of a policy come to, given and left out. */
#include <netinet/in.h>

#include "unit/policy_text.h"

static void everything_left_out_has_its_default(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = load(HEAD LISTEN TARGET);
        const struct policy *policy;

        assert_errors(set, 0, "");
        assert_int_equal(set->n_policies, 1);
        policy = set->policies[0];
        assert_string_equal(policy->name, "web");
        assert_string_equal(policy->file, "t.yaml");
        assert_int_equal(policy->line, 1);
        assert_string_equal(policy->process.command[0], "server");
        assert_null(policy->process.command[1]);
        assert_null(policy->process.working_directory);
        assert_null(policy->process.user);
        assert_non_null(policy->process.environment);
        assert_null(policy->process.environment[0]);
        assert_int_equal(policy->process.stop_signal, SIGTERM);
        assert_int_equal(policy->process.stop_timeout_ns, 10 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.after_ns, 300 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.request_timeout_ns, 1800 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.min_awake_ns, 60 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.connections, SILENCE_IGNORE);
        assert_int_equal(policy->idle.outbound, SILENCE_IGNORE);
        assert_int_equal(policy->idle.cpu_millicores, 250);
        assert_int_equal(policy->idle.gpu.after_ns, 1800 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.gpu.on_idle, GPU_ON_IDLE_REPORT);
        assert_int_equal(policy->wake.hold_timeout_ns, 60 * NSEC_PER_SEC);
        assert_int_equal(policy->wake.max_held, 1024);
        assert_int_equal(policy->wake.n_from, 0);
        assert_int_equal(policy->n_ignore, 0);
        assert_false(policy->dry_run);
}

static void every_field_is_read(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load("\n---\napiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\n"
                     "metadata: {name: web-1, labels: {a: b}, annotations: {c: d}}\n"
                     "spec:\n"
                     "  listen:\n"
                     "  - tcp/192.0.2.1:80\n"
                     "  - udp/[::]:5353\n"
                     "  target:\n"
                     "    kind: Process\n"
                     "    command: [/bin/sh, -c, 'a && b', 8080, true]\n"
                     "    workingDirectory: /srv\n"
                     "    environment: {A: 1, B: '', C: x=y}\n"
                     "    user: root\n"
                     "    stopSignal: SIGRTMIN+3\n"
                     "    stopTimeout: 0\n"
                     "  idle: {after: 1.5s, requestTimeout: 1h, connections: Hold, outbound: Hold, cpu: 0.5, minAwake: 0,\n"
                     "    gpu: {after: 2h, onIdle: Sleep}}\n"
                     "  wake: {holdTimeout: 1s, maxHeld: 0x10, from: [10.0.0.0/8, '2001:db8::/32', 192.0.2.7]}\n"
                     "  ignore: [{cidr: 10.0.0.0/8}, {port: 9090}, {cidr: 192.0.2.0/24, port: 1}]\n"
                     "  dryRun: true\n");
        const struct policy *policy;

        assert_errors(set, 0, "");
        assert_int_equal(set->n_policies, 1);
        policy = set->policies[0];
        assert_string_equal(policy->name, "web-1");
        assert_int_equal(policy->line, 3);
        assert_int_equal(policy->n_frontends, 2);
        assert_int_equal(policy->frontends[0].port, 80);
        assert_int_equal(policy->frontends[0].protocol, IPPROTO_TCP);
        assert_int_equal(policy->frontends[1].port, 5353);
        assert_int_equal(policy->frontends[1].protocol, IPPROTO_UDP);
        assert_string_equal(policy->process.command[2], "a && b");
        assert_string_equal(policy->process.command[3], "8080");
        assert_string_equal(policy->process.command[4], "true");
        assert_null(policy->process.command[5]);
        assert_string_equal(policy->process.working_directory, "/srv");
        assert_string_equal(policy->process.environment[0], "A=1");
        assert_string_equal(policy->process.environment[1], "B=");
        assert_string_equal(policy->process.environment[2], "C=x=y");
        assert_null(policy->process.environment[3]);
        assert_string_equal(policy->process.user, "root");
        assert_int_equal(policy->process.stop_signal, SIGRTMIN + 3);
        assert_int_equal(policy->process.stop_timeout_ns, 0);
        assert_int_equal(policy->idle.after_ns, 1500 * NSEC_PER_MSEC);
        assert_int_equal(policy->idle.request_timeout_ns, 3600 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.connections, SILENCE_HOLD);
        assert_int_equal(policy->idle.outbound, SILENCE_HOLD);
        assert_int_equal(policy->idle.cpu_millicores, 500);
        assert_int_equal(policy->idle.gpu.after_ns, 7200 * NSEC_PER_SEC);
        assert_int_equal(policy->idle.gpu.on_idle, GPU_ON_IDLE_SLEEP);
        assert_int_equal(policy->idle.min_awake_ns, 0);
        assert_int_equal(policy->wake.hold_timeout_ns, NSEC_PER_SEC);
        assert_int_equal(policy->wake.max_held, 16);
        assert_int_equal(policy->wake.n_from, 3);
        assert_int_equal(policy->wake.from[0].length, 104);
        assert_int_equal(policy->wake.from[1].length, 32);
        assert_int_equal(policy->wake.from[2].length, 128);
        assert_int_equal(policy->n_ignore, 3);
        assert_int_equal(policy->ignore[0].port, 0);
        assert_int_equal(policy->ignore[1].prefix.length, 0);
        assert_int_equal(policy->ignore[1].port, 9090);
        assert_int_equal(policy->ignore[2].port, 1);
        assert_true(policy->dry_run);
}

/* Run from the root of the sources, as make does. */
static void the_example_in_the_reference_is_a_policy(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        _cleanup_(fclosep) FILE *file = fopen("docs/policy.md", "re");
        char text[64 * 1024];
        char *begin, *end;
        size_t length;

        assert_non_null(file);
        length = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        begin = strstr(text, "```yaml\n");
        assert_non_null(begin);
        begin += strlen("```yaml\n");
        end = strstr(begin, "```");
        assert_non_null(end);

        set = load_length(begin, (size_t)(end - begin));
        assert_errors(set, 0, "");
        assert_int_equal(set->n_policies, 1);
}

static void amounts_of_cpu_are_read_in_cores_and_thousandths(void **unused)
{
        static const struct {
                const char *text;
                unsigned millicores;
        } table[] = {
                { "250m", 250 }, { "0.25", 250 }, { "'0.5'", 500 }, { "2", 2000 },
                { "0", 0 },      { "0.001", 1 },  { "1.5", 1500 },  { "999999", 999999000 },
        };
        char text[512];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_set_freep) struct policy_set *set = NULL;

                snprintf(text, sizeof(text), HEAD LISTEN TARGET "  idle: {cpu: %s}\n", table[i].text);
                set = load(text);
                assert_errors(set, 0, "");
                assert_int_equal(set->policies[0]->idle.cpu_millicores, table[i].millicores);
        }
}

static void an_alias_stands_for_its_value(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(HEAD LISTEN "  target: {kind: Process, command: [&a server, *a]}\n  idle: {after: &d 7s, minAwake: *d}\n");

        assert_errors(set, 0, "");
        assert_string_equal(set->policies[0]->process.command[1], "server");
        assert_int_equal(set->policies[0]->idle.min_awake_ns, 7 * NSEC_PER_SEC);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_left_out_has_its_default),
                cmocka_unit_test(every_field_is_read),
                cmocka_unit_test(the_example_in_the_reference_is_a_policy),
                cmocka_unit_test(amounts_of_cpu_are_read_in_cores_and_thousandths),
                cmocka_unit_test(an_alias_stands_for_its_value),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
