/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong in a policy is named with its place and what would be right, however hostile the text is. */
#include "unit/policy_text.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_mistake_is_named_with_its_place_and_what_would_be_right),
                cmocka_unit_test(all_mistakes_of_a_document_are_named_at_once),
                cmocka_unit_test(an_alias_bomb_is_an_error),
                cmocka_unit_test(a_value_that_contains_itself_is_an_error),
                cmocka_unit_test(too_many_anchors_are_an_error),
                cmocka_unit_test(too_deep_a_document_is_an_error),
                cmocka_unit_test(messages_are_bounded),
                cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
