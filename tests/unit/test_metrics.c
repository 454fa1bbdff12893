/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "serve/metric_table.h"
#include "serve/metrics.h"

static void pclosep(FILE **pipe)
{
        if (*pipe)
                pclose(*pipe);
}

static struct metrics_writer *writer(void)
{
        struct metrics_writer *metrics = NULL;

        assert_int_equal(metrics_writer_new(&metrics), 0);
        return metrics;
}

static void a_family_has_its_help_and_type_before_its_samples(void **state)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *metrics = writer();
        _cleanup_(freep) char *text = NULL;

        metrics_family(metrics, "lull_policies");
        metrics_sample(metrics, (const char *[]){ "phase", "Awake", NULL }, 2);
        metrics_sample(metrics, (const char *[]){ "phase", "Asleep", NULL }, 0);
        metrics_family(metrics, "lull_hold_attached");
        metrics_sample(metrics, NULL, 1);

        assert_int_equal(metrics_writer_finish(metrics, &text), 0);
        assert_string_equal(text, "# HELP lull_policies Policies in each phase.\n"
                                  "# TYPE lull_policies gauge\n"
                                  "lull_policies{phase=\"Awake\"} 2\n"
                                  "lull_policies{phase=\"Asleep\"} 0\n"
                                  "# HELP lull_hold_attached 1 while the holding hooks are attached, else 0.\n"
                                  "# TYPE lull_hold_attached gauge\n"
                                  "lull_hold_attached 1\n");
}

static void label_values_are_escaped_and_numbers_read_back_as_written(void **state)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *metrics = writer();
        _cleanup_(freep) char *text = NULL;

        metrics_family(metrics, "lull_workload_cpu_cores");
        metrics_sample(metrics, (const char *[]){ "policy", "a\\b\"c\nd", NULL }, 0.1);
        metrics_sample(metrics, (const char *[]){ "policy", "b", NULL }, 1.0 / 3);
        metrics_sample(metrics, (const char *[]){ "policy", "c", NULL }, 123456789012345.0);
        metrics_sample(metrics, (const char *[]){ "policy", "d", NULL }, -1.0 / 0.0);

        assert_int_equal(metrics_writer_finish(metrics, &text), 0);
        assert_non_null(strstr(text, "{policy=\"a\\\\b\\\"c\\nd\"} 0.1\n"));
        assert_non_null(strstr(text, "{policy=\"b\"} 0.33333333333333331\n"));
        assert_non_null(strstr(text, "{policy=\"c\"} 123456789012345\n"));
        assert_non_null(strstr(text, "{policy=\"d\"} -Inf\n"));
}

static void a_histogram_is_cumulative_and_ends_with_all(void **state)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *metrics = writer();
        _cleanup_(freep) char *text = NULL;
        struct histogram histogram = { 0 };

        histogram_add(&histogram, 0.001); /* a bound belongs to its own bucket */
        histogram_add(&histogram, 0.2);
        histogram_add(&histogram, 61);
        metrics_family(metrics, "lull_wake_phase_seconds");
        metrics_histogram(metrics, (const char *[]){ "phase", "ready", NULL }, &histogram);

        assert_int_equal(metrics_writer_finish(metrics, &text), 0);
        assert_non_null(strstr(text, "lull_wake_phase_seconds_bucket{phase=\"ready\",le=\"0.001\"} 1\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_bucket{phase=\"ready\",le=\"0.1\"} 1\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_bucket{phase=\"ready\",le=\"0.25\"} 2\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_bucket{phase=\"ready\",le=\"60\"} 2\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_bucket{phase=\"ready\",le=\"+Inf\"} 3\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_sum{phase=\"ready\"} 61.201\n"));
        assert_non_null(strstr(text, "lull_wake_phase_seconds_count{phase=\"ready\"} 3\n"));
}

struct misuse {
        const char *family, *second_family;
        const char *labels[5];
        int error;
};

static void what_is_not_in_the_table_cannot_be_written(void **state)
{
        static const struct misuse misuses[] = {
                { "lull_unheard_of", NULL, { NULL }, -ENOENT },
                { "lull_policies", "lull_policies", { "phase", "Awake", NULL }, -EEXIST },
                { "lull_policies", NULL, { NULL }, -EINVAL },
                { "lull_policies", NULL, { "policy", "web", NULL }, -EINVAL },
                { "lull_policies", NULL, { "phase", "Awake", "policy", "web", NULL }, -EINVAL },
                { "lull_wake_phase_seconds", NULL, { "phase", "ready", NULL }, -EINVAL }, /* a histogram takes no single sample */
        };

        for (size_t i = 0; i < ELEMENTSOF(misuses); i++) {
                _cleanup_(metrics_writer_freep) struct metrics_writer *metrics = writer();
                char *text = NULL;

                metrics_family(metrics, misuses[i].family);
                metrics_sample(metrics, misuses[i].labels, 1);
                if (misuses[i].second_family)
                        metrics_family(metrics, misuses[i].second_family);
                assert_int_equal(metrics_writer_finish(metrics, &text), misuses[i].error);
                assert_null(text);
        }
}

/* Writes every family of the table once. */
static char *everything(void)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *metrics = writer();
        struct histogram histogram = { 0 };
        char *text = NULL;

        histogram_add(&histogram, 0.01);
        for (size_t i = 0; i < metric_table_size; i++) {
                const struct metric *metric = &metric_table[i];
                const char *labels[2 * METRIC_LABELS_MAX + 1] = { NULL };

                for (size_t j = 0; metric->labels[j]; j++) {
                        labels[2 * j] = metric->labels[j];
                        labels[2 * j + 1] = "a \"quoted\\\n value";
                }
                metrics_family(metrics, metric->name);
                if (metric->type == METRIC_HISTOGRAM)
                        metrics_histogram(metrics, labels, &histogram);
                else
                        metrics_sample(metrics, labels, (double)i);
        }
        assert_int_equal(metrics_writer_finish(metrics, &text), 0);
        return text;
}

static void the_prometheus_client_reads_every_family_as_the_table_has_it(void **state)
{
        static const char program[] = "import sys; from prometheus_client.parser import text_string_to_metric_families as parse; "
                                      "families = list(parse(sys.stdin.read())); "
                                      "assert all(s.labels.get(k) in ('a \"quoted\\\\\\n value', None) "
                                      "for f in families for s in f.samples for k in s.labels if k != 'le'); "
                                      "sys.exit(0 if len(families) == int(sys.argv[1]) and all(f.samples and f.documentation "
                                      "and f.type != 'unknown' for f in families) else 1)";
        _cleanup_(freep) char *text = everything();
        _cleanup_(freep) char *command = NULL;
        FILE *python;

        assert_true(asprintf(&command, "exec /usr/bin/python3 -c \"$PROGRAM\" %zu", metric_table_size) > 0);
        assert_int_equal(setenv("PROGRAM", program, 1), 0);
        python = popen(command, "w");
        assert_non_null(python);
        fputs(text, python);
        assert_int_equal(pclose(python), 0);
}

static void names_follow_the_conventions_and_labels_are_bounded(void **state)
{
        static const char *const bounded[] = {
                "version", "phase",    "policy", "type", "from",   "to",    "cause", "verdict",  "reason",
                "program", "step",     "vote",   "verb", "result", "state", "code",  "resource", /* of the API, of which there are few */
                "device",  "workload", /* of a GPU, of which there are few, too */
        };

        for (size_t i = 0; i < metric_table_size; i++) {
                const struct metric *metric = &metric_table[i];
                size_t length = strlen(metric->name);
                bool total = length > 6 && strcmp(metric->name + length - 6, "_total") == 0;

                assert_int_equal(strncmp(metric->name, "lull_", 5), 0);
                assert_int_equal(total, metric->type == METRIC_COUNTER);
                assert_ptr_equal(metric_find(metric->name), metric); /* no name twice */
                assert_null(strchr(metric->help, '\n'));
                for (size_t j = 0; metric->labels[j]; j++) {
                        bool known = false;

                        for (size_t k = 0; k < ELEMENTSOF(bounded); k++)
                                known = known || strcmp(bounded[k], metric->labels[j]) == 0;
                        assert_true(known);
                }
        }
}

static char *slurp(FILE *file)
{
        char *text = NULL;
        size_t size = 0;

        assert_non_null(file);
        assert_true(getdelim(&text, &size, '\0', file) > 0);
        return text;
}

static void the_reference_is_not_stale(void **state)
{
        _cleanup_(pclosep) FILE *generated = popen("tools/generate-metrics-reference", "r");
        _cleanup_(fclosep) FILE *reference = fopen("docs/metrics.md", "re");
        _cleanup_(freep) char *expected = slurp(generated);
        _cleanup_(freep) char *found = slurp(reference);

        assert_string_equal(found, expected);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_family_has_its_help_and_type_before_its_samples),
                cmocka_unit_test(label_values_are_escaped_and_numbers_read_back_as_written),
                cmocka_unit_test(a_histogram_is_cumulative_and_ends_with_all),
                cmocka_unit_test(what_is_not_in_the_table_cannot_be_written),
                cmocka_unit_test(the_prometheus_client_reads_every_family_as_the_table_has_it),
                cmocka_unit_test(names_follow_the_conventions_and_labels_are_bounded),
                cmocka_unit_test(the_reference_is_not_stale),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
