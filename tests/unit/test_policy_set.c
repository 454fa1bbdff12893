/* SPDX-License-Identifier: Apache-2.0 */
/* Several policies together, in one text or in the files of a directory: which of them hold, and what is said of the others. */
#include <sys/stat.h>

#include "unit/policy_text.h"

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
        char directory[] = "/tmp/test_policy_set.XXXXXX", expected[256], nested[256];

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
        char directory[] = "/tmp/test_policy_set.XXXXXX", path[256];
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
        char directory[] = "/tmp/test_policy_set.XXXXXX", path[256];

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
        char directory[] = "/tmp/test_policy_set.XXXXXX", name[32];
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
                cmocka_unit_test(a_bad_document_leaves_the_others_alone),
                cmocka_unit_test(a_syntax_error_ends_its_file_and_keeps_what_came_before),
                cmocka_unit_test(a_name_is_given_once),
                cmocka_unit_test(a_frontend_belongs_to_the_first_policy_that_names_it),
                cmocka_unit_test(an_overlap_names_both_policies),
                cmocka_unit_test(a_policy_left_out_blocks_nobody),
                cmocka_unit_test(a_directory_is_read_in_the_order_of_its_names),
                cmocka_unit_test(an_address_of_another_machine_is_an_error),
                cmocka_unit_test(a_file_that_is_too_large_is_an_error),
                cmocka_unit_test(ten_thousand_policies_on_one_port_load),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
