/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>

#include "base/time.h"
#include "policy/load.h"

#define HEAD "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: web}\nspec:\n"
#define LISTEN "  listen: [tcp/0.0.0.0:8080]\n"
#define TARGET "  target: {kind: Process, command: [server]}\n"
#define POLICY(name, listen)                                                                                                       \
        "---\napiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: " name "}\nspec:\n  listen: [" listen "]\n" TARGET

static struct policy_set *load_length(const char *text, size_t length)
{
        struct policy_set *set = NULL;

        assert_int_equal(policy_set_load_text(text, length, "t.yaml", &set), 0);
        return set;
}

static struct policy_set *load(const char *text)
{
        return load_length(text, strlen(text));
}

static void assert_errors(const struct policy_set *set, size_t n, const char *first)
{
        if (set->n_errors != n || (n && strcmp(set->errors[0], first) != 0)) {
                for (size_t i = 0; i < set->n_errors; i++)
                        print_error("%s\n", set->errors[i]);
                fail_msg("expected %zu errors, first \"%s\"", n, first);
        }
}

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

static void every_mistake_is_named_with_its_place_and_what_would_be_right(void **unused)
{
        static const char long_name[] =
                HEAD LISTEN "  target: {kind: Process, command: [x], user: "
                            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n";
        static const struct {
                const char *text;
                const char *error;
        } table[] = {
                /* The document */
                { "- a\n", "t.yaml:1: a list is not a policy; begin with apiVersion: lull.dev/v1alpha1" },
                { "foo\n", "t.yaml:1: \"foo\" is not a policy; begin with apiVersion: lull.dev/v1alpha1" },
                { "kind: ScaleToZero\n", "t.yaml:1: apiVersion: missing; write apiVersion: lull.dev/v1alpha1" },
                { "apiVersion: v1\nkind: Pod\n",
                  "t.yaml:1: apiVersion: \"v1\" is not known here; write apiVersion: lull.dev/v1alpha1" },
                { "apiVersion: lull.dev/v1alpha1\nkind: Pod\n",
                  "t.yaml:2: kind: \"Pod\" is not known here; write kind: ScaleToZero" },
                { HEAD LISTEN TARGET "status: {}\n",
                  "t.yaml:7: status: only on Kubernetes; here \"lull policy show\" tells the status: leave it out" },
                { "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nspec:\n" LISTEN TARGET,
                  "t.yaml:1: metadata: missing; write metadata: {name: NAME}" },
                { "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {}\nspec:\n" LISTEN TARGET,
                  "t.yaml:3: metadata.name: missing; every policy needs a name of its own" },
                { "apiVersion: lull.dev/v1alpha1\nkind: ScaleToZero\nmetadata: {name: Web}\nspec:\n" LISTEN TARGET,
                  "t.yaml:3: metadata.name: \"Web\" is not a name for a policy; use lower-case letters, digits and \"-\" between them, 63 "
                  "at most" },
                /* Fields */
                { HEAD LISTEN TARGET "  idel: {}\n", "t.yaml:7: spec.idel: unknown field; did you mean \"idle\"?" },
                { HEAD LISTEN TARGET "  dry_run: true\n", "t.yaml:7: spec.dry_run: unknown field; did you mean \"dryRun\"?" },
                { HEAD LISTEN TARGET "  colour: red\n", "t.yaml:7: spec.colour: unknown field" },
                { HEAD LISTEN TARGET "  [a]: red\n", "t.yaml:7: spec.?: a list is not the name of a field" },
                { HEAD LISTEN TARGET "  idle: {}\n  idle: {}\n",
                  "t.yaml:8: spec.idle: given before in line 7; remove one of the two" },
                { HEAD TARGET, "t.yaml:5: spec.listen: missing; name what clients connect to, like [tcp/0.0.0.0:8080]" },
                { HEAD TARGET "  listen:\n",
                  "t.yaml:5: spec.listen: missing; name what clients connect to, like [tcp/0.0.0.0:8080]" },
                { HEAD LISTEN TARGET "  idle: 5m\n", "t.yaml:7: spec.idle: \"5m\" is not a mapping; write fields as NAME: VALUE" },
                { HEAD LISTEN TARGET "  services: [web]\n",
                  "t.yaml:7: spec.services: only on Kubernetes; here name the addresses in spec.listen" },
                { HEAD LISTEN TARGET "  wake: {replicas: 2}\n",
                  "t.yaml:7: spec.wake.replicas: only on Kubernetes; here a target is one process: leave it out" },
                { HEAD LISTEN TARGET "  ignore: [{podSelector: {}}]\n",
                  "t.yaml:7: spec.ignore[0].podSelector: only on Kubernetes; here name the peers by cidr" },
                /* listen */
                { HEAD TARGET "  listen: []\n",
                  "t.yaml:6: spec.listen: is empty; name at least one frontend, like [tcp/0.0.0.0:8080]" },
                { HEAD TARGET "  listen: tcp/0.0.0.0:80\n",
                  "t.yaml:6: spec.listen: \"tcp/0.0.0.0:80\" is not a list; write it like [A, B], or one entry a line after \"- \"" },
                { HEAD TARGET "  listen:\n  - tcp/0.0.0.0:80\n  - 8080\n",
                  "t.yaml:8: spec.listen[1]: \"8080\" is not a frontend; write it like \"tcp/0.0.0.0:8080\" or \"udp/[::]:5353\"" },
                { HEAD TARGET "  listen: [sctp/0.0.0.0:80]\n",
                  "t.yaml:6: spec.listen[0]: \"sctp/0.0.0.0:80\" has no protocol that can be held; write tcp/ADDRESS:PORT or "
                  "udp/ADDRESS:PORT" },
                { HEAD TARGET "  listen: [tcp/0.0.0.0:80, tcp/0.0.0.0:80]\n",
                  "t.yaml:6: spec.listen[1]: \"tcp/0.0.0.0:80\" is given twice; remove one of the two" },
                /* target */
                { HEAD LISTEN "  target: {kind: Deployment, command: [x]}\n",
                  "t.yaml:6: spec.target.kind: \"Deployment\" is not a kind of target here; write Process (other kinds are only on "
                  "Kubernetes)" },
                { HEAD LISTEN "  target: {kind: Process, command: []}\n",
                  "t.yaml:6: spec.target.command: is empty; write the program and its arguments, like [/usr/bin/server, --port, 8080]" },
                { HEAD LISTEN "  target: {kind: Process, command: [a, {b: c}]}\n",
                  "t.yaml:6: spec.target.command[1]: a mapping is not text; where it is meant to be empty or \"null\", put it in quotes" },
                { HEAD LISTEN "  target: {kind: Process, command: ['']}\n",
                  "t.yaml:6: spec.target.command[0]: \"\" is not a program to run" },
                { HEAD LISTEN "  target: {kind: Process, command: [\"a\\0b\"]}\n",
                  "t.yaml:6: spec.target.command[0]: \"a\\x00b\" has a NUL character in it" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], workingDirectory: srv}\n",
                  "t.yaml:6: spec.target.workingDirectory: \"srv\" is not an absolute path; begin it with /" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], environment: [A=1]}\n",
                  "t.yaml:6: spec.target.environment: a list is not a mapping; write each variable as NAME: VALUE" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], environment: {A: 1, A: 2}}\n",
                  "t.yaml:6: spec.target.environment.A: given twice; remove one of the two" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], environment: {A=B: 1}}\n",
                  "t.yaml:6: spec.target.environment.A=B: \"A=B\" is not the name of a variable; it must not be empty or have a \"=\" in it" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], environment: {A: }}\n",
                  "t.yaml:6: spec.target.environment.A: an empty value is not text; where it is meant to be empty or \"null\", put it in "
                  "quotes" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], user: no-such-user}\n",
                  "t.yaml:6: spec.target.user: \"no-such-user\" is not a user of this machine; write the name of one, like nobody" },
                { long_name,
                  "t.yaml:6: spec.target.user: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is not a "
                  "user of this machine; write the name of one, like nobody" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], stopSignal: 15}\n",
                  "t.yaml:6: spec.target.stopSignal: \"15\" is not the name of a signal; write it like SIGTERM or SIGINT" },
                { HEAD LISTEN "  target: {kind: Process, command: [x], stopSignal: SIGRTMIN+99}\n",
                  "t.yaml:6: spec.target.stopSignal: \"SIGRTMIN+99\" is not the name of a signal; write it like SIGTERM or SIGINT" },
                /* Durations, amounts, numbers, booleans */
                { HEAD LISTEN TARGET "  idle: {after: 5 minutes}\n",
                  "t.yaml:7: spec.idle.after: \"5 minutes\" is not a duration; write it like \"5m\" or \"1m30s\"" },
                { HEAD LISTEN TARGET "  idle: {after: 5}\n",
                  "t.yaml:7: spec.idle.after: \"5\" is not a duration; write it like \"5m\" or \"1m30s\"" },
                { HEAD LISTEN TARGET "  idle: {after: 0}\n",
                  "t.yaml:7: spec.idle.after: \"0\" is out of range; write a duration from 1ms to 8760h" },
                { HEAD LISTEN TARGET "  idle: {after: 18446744073709551616h}\n",
                  "t.yaml:7: spec.idle.after: \"18446744073709551616h\" is out of range; write a duration from 1ms to 8760h" },
                { HEAD LISTEN TARGET "  wake: {holdTimeout: 999ms}\n",
                  "t.yaml:7: spec.wake.holdTimeout: \"999ms\" is out of range; write a duration from 1s to 10m" },
                { HEAD LISTEN TARGET "  idle: {cpu: 0.0001}\n",
                  "t.yaml:7: spec.idle.cpu: \"0.0001\" is not an amount of CPU; write it like 250m or 0.25, and 0 for no limit" },
                { HEAD LISTEN TARGET "  idle: {cpu: 250mm}\n",
                  "t.yaml:7: spec.idle.cpu: \"250mm\" is not an amount of CPU; write it like 250m or 0.25, and 0 for no limit" },
                { HEAD LISTEN TARGET "  idle: {connections: hold}\n",
                  "t.yaml:7: spec.idle.connections: \"hold\" is neither Ignore nor Hold" },
                { HEAD LISTEN TARGET "  wake: {maxHeld: 4097}\n",
                  "t.yaml:7: spec.wake.maxHeld: \"4097\" is not a whole number from 1 to 4096" },
                { HEAD LISTEN TARGET "  wake: {maxHeld: -1}\n",
                  "t.yaml:7: spec.wake.maxHeld: \"-1\" is not a whole number from 1 to 4096" },
                { HEAD LISTEN TARGET "  wake: {maxHeld: '10'}\n",
                  "t.yaml:7: spec.wake.maxHeld: \"10\" is not a whole number from 1 to 4096 (in quotes it is text)" },
                { HEAD LISTEN TARGET "  dryRun: yes\n", "t.yaml:7: spec.dryRun: \"yes\" is not a boolean; write true or false" },
                { HEAD LISTEN TARGET "  dryRun: 'true'\n",
                  "t.yaml:7: spec.dryRun: \"true\" in quotes is text, not a boolean; write true" },
                /* Peers */
                { HEAD LISTEN TARGET "  wake: {from: []}\n",
                  "t.yaml:7: spec.wake.from: is empty; name who may wake it, or leave the field out for everybody" },
                { HEAD LISTEN TARGET "  wake: {from: [10.0.0.1/8]}\n",
                  "t.yaml:7: spec.wake.from[0]: \"10.0.0.1/8\" has bits set past its prefix length; write the network's own address, like "
                  "10.0.0.0/8" },
                { HEAD LISTEN TARGET "  ignore: [{cidr: localhost}]\n",
                  "t.yaml:7: spec.ignore[0].cidr: \"localhost\" is not a network; write it like 10.0.0.0/8 or \"2001:db8::/32\"" },
                { HEAD LISTEN TARGET "  ignore: [{}]\n",
                  "t.yaml:7: spec.ignore[0]: would ignore everybody; give cidr, port or both" },
                /* YAML itself */
                { HEAD "  listen: [udp/[::]:5353]\n",
                  "t.yaml:5: not valid YAML: did not find expected ',' or ']'; put an address in brackets "
                  "in quotes, like \"udp/[::]:5353\"" },
                { HEAD "\tlisten: 1\n",
                  "t.yaml:5: not valid YAML: found character that cannot start any token; indent with spaces, not with tabs" },
                { HEAD LISTEN TARGET "  dryRun: \"\xff\"\n",
                  "t.yaml:7: not valid YAML: invalid leading UTF-8 octet; the file is left out: write it in UTF-8" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_set_freep) struct policy_set *set = load(table[i].text);

                assert_errors(set, 1, table[i].error);
                assert_int_equal(set->n_policies, 0);
        }
}

static void all_mistakes_of_a_document_are_named_at_once(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(HEAD "  listen: [80]\n  target: {command: x}\n  idle: {after: never}\n  dryRun: no\n");

        assert_errors(
                set, 5,
                "t.yaml:5: spec.listen[0]: \"80\" is not a frontend; write it like \"tcp/0.0.0.0:8080\" or \"udp/[::]:5353\"");
        assert_string_equal(set->errors[2], "t.yaml:6: spec.target.kind: missing; write kind: Process");
}

static void a_bad_document_leaves_the_others_alone(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = load(
                POLICY("a", "tcp/0.0.0.0:1") POLICY("B", "tcp/0.0.0.0:2") "---\n# nothing\n---\n~\n" POLICY("c", "tcp/0.0.0.0:3"));

        assert_int_equal(set->n_errors, 1);
        assert_int_equal(set->n_policies, 2);
        assert_string_equal(set->policies[0]->name, "a");
        assert_string_equal(set->policies[1]->name, "c");
}

static void a_syntax_error_ends_its_file_and_keeps_what_came_before(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(POLICY("a", "tcp/0.0.0.0:1") "---\n{\n" POLICY("b", "tcp/0.0.0.0:2"));

        assert_int_equal(set->n_errors, 1);
        assert_int_equal(set->n_policies, 1);
        assert_string_equal(set->policies[0]->name, "a");
}

static void a_name_is_given_once(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = load(POLICY("a", "tcp/0.0.0.0:1") POLICY("a", "tcp/0.0.0.0:2"));

        assert_errors(set, 1,
                      "t.yaml:9: metadata.name: \"a\" is already the name of the policy in t.yaml:2; give one of them another");
        assert_int_equal(set->n_policies, 1);
        assert_int_equal(set->policies[0]->frontends[0].port, 1);
}

static void a_frontend_belongs_to_the_first_policy_that_names_it(void **unused)
{
        static const struct {
                const char *first, *second;
                bool overlaps;
        } table[] = {
                { "tcp/127.0.0.1:80", "tcp/127.0.0.1:80", true },
                { "tcp/0.0.0.0:80", "tcp/127.0.0.1:80", true },
                { "tcp/127.0.0.1:80", "tcp/0.0.0.0:80", true },
                { "'tcp/[::]:80'", "tcp/127.0.0.1:80", true },
                { "tcp/127.0.0.1:80", "'tcp/[::]:80'", true },
                { "'tcp/[::]:80'", "tcp/0.0.0.0:80", true },
                { "tcp/0.0.0.0:80", "'tcp/[::]:80'", true },
                { "'tcp/[::1]:80'", "'tcp/[::]:80'", true },
                { "'tcp/[::]:80'", "'tcp/[::1]:80'", true },
                { "tcp/192.0.2.1:80, tcp/127.0.0.1:80", "tcp/192.0.2.2:80, tcp/0.0.0.0:80", true },
                { "tcp/127.0.0.1:80", "tcp/127.0.0.2:80", false },
                { "tcp/127.0.0.1:80", "udp/127.0.0.1:80", false },
                { "tcp/127.0.0.1:80", "tcp/127.0.0.1:81", false },
                { "tcp/0.0.0.0:80", "'tcp/[::1]:80'", false },
                { "'tcp/[::1]:80'", "tcp/0.0.0.0:80", false },
                { "tcp/0.0.0.0:80, 'tcp/[::]:80'", "tcp/0.0.0.0:81", false },
        };
        char text[1024];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_set_freep) struct policy_set *set = NULL;

                snprintf(text, sizeof(text), POLICY("a", "%s") POLICY("b", "%s"), table[i].first, table[i].second);
                set = load(text);
                if (set->n_policies != (table[i].overlaps ? 1 : 2) || set->n_errors != (table[i].overlaps ? 1 : 0))
                        fail_msg("%s and %s: %zu policies", table[i].first, table[i].second, set->n_policies);
        }
}

static void an_overlap_names_both_policies(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(POLICY("blog", "tcp/0.0.0.0:80") POLICY("web", "tcp/127.0.0.1:80"));

        assert_errors(set, 1,
                      "t.yaml:13: spec.listen[0]: policy \"web\": tcp/127.0.0.1:80 is already held for policy \"blog\" (t.yaml:2); "
                      "remove one of the two listen entries");
        assert_string_equal(set->policies[0]->name, "blog");
}

static void a_policy_left_out_blocks_nobody(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(POLICY("a", "tcp/0.0.0.0:80") POLICY("b", "tcp/0.0.0.0:80, tcp/0.0.0.0:81") POLICY("c", "tcp/0.0.0.0:81"));

        assert_int_equal(set->n_policies, 2);
        assert_string_equal(set->policies[1]->name, "c");
}

static void an_alias_stands_for_its_value(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(HEAD LISTEN "  target: {kind: Process, command: [&a server, *a]}\n  idle: {after: &d 7s, minAwake: *d}\n");

        assert_errors(set, 0, "");
        assert_string_equal(set->policies[0]->process.command[1], "server");
        assert_int_equal(set->policies[0]->idle.min_awake_ns, 7 * NSEC_PER_SEC);
}

static void an_alias_bomb_is_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);

        /* 1000 times 1000 bytes out of 5 kB. */
        fprintf(file, HEAD LISTEN "  target: {kind: Process, command: [&a %01000d", 1);
        for (int i = 0; i < 1000; i++)
                fprintf(file, ", *a");
        fprintf(file, "]}\n");
        fclose(file);

        set = load_length(text, length);
        assert_errors(set, 1, "t.yaml:6: spec.target.command: is too long; at most 131072 bytes in all are possible");
}

static void a_value_that_contains_itself_is_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(HEAD LISTEN "  target: &t {kind: Process, command: [x], environment: *t}\n");

        assert_int_equal(set->n_policies, 0);
        assert_true(set->n_errors >= 1);
}

static void too_many_anchors_are_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);

        fprintf(file, "[");
        for (int i = 0; i < 257; i++)
                fprintf(file, "&a%d x,", i);
        fprintf(file, "]\n");
        fclose(file);

        set = load_length(text, length);
        assert_errors(set, 1, "t.yaml:1: more than 256 anchors in a document; the file is left out");
}

/* Without the bound this takes minutes. */
static void too_deep_a_document_is_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        _cleanup_(freep) char *text = malloc(1024 * 1024);

        assert_non_null(text);
        memset(text, '[', 1024 * 1024);
        set = load_length(text, 1024 * 1024);
        assert_errors(set, 1, "t.yaml:1: more than 64 lists and mappings within each other; the file is left out");
}

static void messages_are_bounded(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);

        for (int i = 0; i < 5000; i++)
                fprintf(file, "--- x\n");
        fclose(file);

        set = load_length(text, length);
        assert_int_equal(set->n_errors, 101);
        assert_string_equal(set->errors[100], "t.yaml:101: more problems from here on are not shown");
}

static void control_characters_do_not_reach_the_terminal(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set =
                load(HEAD LISTEN TARGET "  \"\\e[31m\": \"\\n\"\n  dryRun: \"a\\nb\"\n");

        assert_int_equal(set->n_errors, 2);
        assert_string_equal(set->errors[0], "t.yaml:7: spec.\\x1b[31m: unknown field");
        assert_string_equal(set->errors[1], "t.yaml:8: spec.dryRun: \"a\\x0ab\" is not a boolean; write true or false");
}

/* Files */

static void write_file(const char *directory, const char *name, const char *text)
{
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", directory, name);
        file = fopen(path, "we");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static void remove_directory(const char *directory)
{
        char command[256];

        snprintf(command, sizeof(command), "rm -r '%s'", directory);
        assert_int_equal(system(command), 0);
}

static bool only_192_0_2_1(const struct address *address, void *userdata)
{
        struct address local;

        ++*(unsigned *)userdata;
        address_parse("192.0.2.1", &local);
        return address_equal(&local, address);
}

static void a_directory_is_read_in_the_order_of_its_names(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        char directory[] = "/tmp/test_policy_load.XXXXXX", expected[256], nested[256];

        assert_non_null(mkdtemp(directory));
        write_file(directory, "b.yaml", POLICY("b", "tcp/0.0.0.0:2"));
        write_file(directory, "a.yml", POLICY("a", "tcp/0.0.0.0:1"));
        write_file(directory, "c.yaml", POLICY("c", "tcp/0.0.0.0:2"));
        write_file(directory, ".hidden.yaml", "{");
        write_file(directory, "README", "{");
        write_file(directory, "d.yaml.orig", "{");
        snprintf(nested, sizeof(nested), "%s/e.yaml", directory);
        assert_int_equal(mkdir(nested, 0700), 0);

        assert_int_equal(policy_set_load((const char *[]){ directory, "/nonexistent/x.yaml" }, 2, NULL, NULL, &set), 0);
        remove_directory(directory);

        assert_int_equal(set->n_policies, 2);
        assert_string_equal(set->policies[0]->name, "a");
        assert_string_equal(set->policies[1]->name, "b");
        assert_int_equal(set->n_errors, 2);
        snprintf(
                expected, sizeof(expected),
                "%s/c.yaml:6: spec.listen[0]: policy \"c\": tcp/0.0.0.0:2 is already held for policy \"b\" (%s/b.yaml:2); remove one of "
                "the two listen entries",
                directory, directory);
        assert_string_equal(set->errors[0], expected);
        assert_string_equal(set->errors[1], "/nonexistent/x.yaml: cannot be read: No such file or directory");
}

static void an_address_of_another_machine_is_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        char directory[] = "/tmp/test_policy_load.XXXXXX", path[256];
        unsigned asked = 0;

        assert_non_null(mkdtemp(directory));
        write_file(directory, "p.yaml", POLICY("a", "tcp/192.0.2.1:1, tcp/0.0.0.0:2, 'tcp/[::]:3'") POLICY("b", "tcp/192.0.2.2:1"));
        snprintf(path, sizeof(path), "%s/p.yaml", directory);
        assert_int_equal(policy_set_load((const char *[]){ path }, 1, only_192_0_2_1, &asked, &set), 0);
        remove_directory(directory);

        assert_int_equal(asked, 2);
        assert_int_equal(set->n_policies, 1);
        assert_int_equal(set->n_errors, 1);
        assert_non_null(strstr(
                set->errors[0],
                "p.yaml:13: spec.listen[0]: 192.0.2.2 is not an address of this machine; listen on one of its own, or on 0.0.0.0"));
}

static void a_file_that_is_too_large_is_an_error(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        char directory[] = "/tmp/test_policy_load.XXXXXX", path[256];

        assert_non_null(mkdtemp(directory));
        write_file(directory, "p.yaml", POLICY("a", "tcp/0.0.0.0:1"));
        snprintf(path, sizeof(path), "%s/p.yaml", directory);
        assert_int_equal(truncate(path, 1024 * 1024 + 1), 0);
        assert_int_equal(policy_set_load((const char *[]){ path }, 1, NULL, NULL, &set), 0);
        remove_directory(directory);

        assert_int_equal(set->n_policies, 0);
        assert_int_equal(set->n_errors, 1);
        assert_non_null(strstr(set->errors[0], "p.yaml: larger than 1024 KiB; split it into several files"));
}

static void ten_thousand_policies_on_one_port_load(void **unused)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        char directory[] = "/tmp/test_policy_load.XXXXXX", name[32];
        uint64_t begin_ns;

        assert_non_null(mkdtemp(directory));
        for (int i = 0; i < 10; i++) {
                _cleanup_(freep) char *text = NULL;
                size_t length;
                FILE *file = open_memstream(&text, &length);

                for (int j = 0; j < 1000; j++)
                        fprintf(file, POLICY("p%d-%d", "tcp/127.1.%d.%d:80"), i, j, i * 4 + j / 256, j % 256);
                fclose(file);
                snprintf(name, sizeof(name), "%d.yaml", i);
                write_file(directory, name, text);
        }

        begin_ns = now_monotonic_ns();
        assert_int_equal(policy_set_load((const char *[]){ directory }, 1, NULL, NULL, &set), 0);
        print_message("10,000 policies: %llu ms\n", (unsigned long long)((now_monotonic_ns() - begin_ns) / NSEC_PER_MSEC));
        remove_directory(directory);

        assert_errors(set, 0, "");
        assert_int_equal(set->n_policies, 10000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_left_out_has_its_default),
                cmocka_unit_test(every_field_is_read),
                cmocka_unit_test(the_example_in_the_reference_is_a_policy),
                cmocka_unit_test(amounts_of_cpu_are_read_in_cores_and_thousandths),
                cmocka_unit_test(every_mistake_is_named_with_its_place_and_what_would_be_right),
                cmocka_unit_test(all_mistakes_of_a_document_are_named_at_once),
                cmocka_unit_test(a_bad_document_leaves_the_others_alone),
                cmocka_unit_test(a_syntax_error_ends_its_file_and_keeps_what_came_before),
                cmocka_unit_test(a_name_is_given_once),
                cmocka_unit_test(a_frontend_belongs_to_the_first_policy_that_names_it),
                cmocka_unit_test(an_overlap_names_both_policies),
                cmocka_unit_test(a_policy_left_out_blocks_nobody),
                cmocka_unit_test(an_alias_stands_for_its_value),
                cmocka_unit_test(an_alias_bomb_is_an_error),
                cmocka_unit_test(a_value_that_contains_itself_is_an_error),
                cmocka_unit_test(too_many_anchors_are_an_error),
                cmocka_unit_test(too_deep_a_document_is_an_error),
                cmocka_unit_test(messages_are_bounded),
                cmocka_unit_test(control_characters_do_not_reach_the_terminal),
                cmocka_unit_test(a_directory_is_read_in_the_order_of_its_names),
                cmocka_unit_test(an_address_of_another_machine_is_an_error),
                cmocka_unit_test(a_file_that_is_too_large_is_an_error),
                cmocka_unit_test(ten_thousand_policies_on_one_port_load),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
