/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "serve/metric_table.h"

enum { NUMBER_TEXT_MAX = 32 };

struct metrics_writer {
        FILE *file;
        char *text;
        size_t length;
        const struct metric *family; /* begun last, or NULL */
        uint64_t written;            /* one bit for each entry of the table */
        int error;                   /* the first, or 0 */
};

static const double bucket_bounds[HISTOGRAM_BUCKETS] = {
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 60,
};

int metrics_writer_new(struct metrics_writer **ret_writer)
{
        _cleanup_(metrics_writer_freep) struct metrics_writer *writer = calloc(1, sizeof(*writer));

        if (!writer)
                return -ENOMEM;
        writer->file = open_memstream(&writer->text, &writer->length);
        if (!writer->file)
                return -errno;

        *ret_writer = TAKE_PTR(writer);
        return 0;
}

struct metrics_writer *metrics_writer_free(struct metrics_writer *writer)
{
        if (!writer)
                return NULL;
        if (writer->file)
                fclose(writer->file);
        free(writer->text);
        free(writer);
        return NULL;
}

static void fail(struct metrics_writer *writer, int error)
{
        if (writer->error == 0)
                writer->error = error;
}

void metrics_family(struct metrics_writer *writer, const char *name)
{
        const struct metric *metric = metric_find(name);
        uint64_t bit;

        writer->family = NULL;
        if (!metric) {
                fail(writer, -ENOENT);
                return;
        }
        bit = UINT64_C(1) << (metric - metric_table);
        if (writer->written & bit) {
                fail(writer, -EEXIST); /* the samples of one family belong together */
                return;
        }

        writer->written |= bit;
        writer->family = metric;
        fprintf(writer->file, "# HELP %s %s\n# TYPE %s %s\n", name, metric->help, name, metric_type_to_string(metric->type));
}

/* Whether the labels are those of the table, in its order. */
static bool labels_fit(const struct metric *metric, const char *const *labels)
{
        size_t n = 0;

        for (; labels && labels[2 * n]; n++)
                if (n == METRIC_LABELS_MAX || !metric->labels[n] || strcmp(metric->labels[n], labels[2 * n]) != 0)
                        return false;
        return !metric->labels[n];
}

static void write_label(FILE *file, const char *separator, const char *name, const char *value)
{
        fprintf(file, "%s%s=\"", separator, name);
        for (; *value; value++) {
                if (*value == '\n') {
                        fputs("\\n", file);
                        continue;
                }
                if (*value == '\\' || *value == '"')
                        fputc('\\', file);
                fputc(*value, file);
        }
        fputc('"', file);
}

/* The shortest of the usual forms that reads back as the same number. */
static void format_value(double value, char buffer[static NUMBER_TEXT_MAX])
{
        if (isnan(value))
                snprintf(buffer, NUMBER_TEXT_MAX, "NaN");
        else if (isinf(value))
                snprintf(buffer, NUMBER_TEXT_MAX, value > 0 ? "+Inf" : "-Inf");
        else if (snprintf(buffer, NUMBER_TEXT_MAX, "%.15g", value) > 0 && strtod(buffer, NULL) != value)
                snprintf(buffer, NUMBER_TEXT_MAX, "%.17g", value);
}

/* @bound, or NULL, is the value of a bucket's label "le". */
static void write_sample(struct metrics_writer *writer, const char *suffix, const char *const *labels, const char *bound,
                         double value)
{
        const char *separator = "{";
        char number[NUMBER_TEXT_MAX];

        format_value(value, number);
        fprintf(writer->file, "%s%s", writer->family->name, suffix);
        for (; labels && *labels; labels += 2, separator = ",")
                write_label(writer->file, separator, labels[0], labels[1]);
        if (bound) {
                write_label(writer->file, separator, "le", bound);
                separator = ",";
        }
        fprintf(writer->file, "%s %s\n", *separator == ',' ? "}" : "", number);
}

static bool sample_is_allowed(struct metrics_writer *writer, bool histogram, const char *const *labels)
{
        if (!writer->family) {
                fail(writer, -EINVAL);
                return false;
        }
        if ((writer->family->type == METRIC_HISTOGRAM) != histogram || !labels_fit(writer->family, labels)) {
                fail(writer, -EINVAL);
                return false;
        }
        return true;
}

void metrics_sample(struct metrics_writer *writer, const char *const *labels, double value)
{
        if (sample_is_allowed(writer, false, labels))
                write_sample(writer, "", labels, NULL, value);
}

void histogram_add(struct histogram *histogram, double seconds)
{
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                if (seconds <= bucket_bounds[i]) {
                        histogram->buckets[i]++;
                        break;
                }
        histogram->count++;
        histogram->sum += seconds;
}

void metrics_histogram(struct metrics_writer *writer, const char *const *labels, const struct histogram *histogram)
{
        uint64_t below = 0;

        if (!sample_is_allowed(writer, true, labels))
                return;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                char bound[NUMBER_TEXT_MAX];

                below += histogram->buckets[i];
                format_value(bucket_bounds[i], bound);
                write_sample(writer, "_bucket", labels, bound, (double)below);
        }
        write_sample(writer, "_bucket", labels, "+Inf", (double)histogram->count);
        write_sample(writer, "_sum", labels, NULL, histogram->sum);
        write_sample(writer, "_count", labels, NULL, (double)histogram->count);
}

int metrics_writer_finish(struct metrics_writer *writer, char **ret_text)
{
        bool failed = ferror(writer->file) != 0;

        failed = fclose(writer->file) == EOF || failed;
        writer->file = NULL;
        writer->family = NULL;
        if (writer->error < 0)
                return writer->error;
        if (failed)
                return -ENOMEM;

        *ret_text = TAKE_PTR(writer->text);
        return 0;
}
