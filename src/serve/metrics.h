/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text exposition (format 0.0.4), written family by family into memory.
 *
 * Every metric has an entry in the table of src/serve/metric_table.h, from which the reference in docs/metrics.md is generated; a
 * writer refuses to begin a family that is not in it.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/macros.h"

struct metrics_writer;

int metrics_writer_new(struct metrics_writer **ret_writer);
struct metrics_writer *metrics_writer_free(struct metrics_writer *writer);
DEFINE_CLEANUP(struct metrics_writer, metrics_writer_free)

/* HELP and TYPE lines of @name; the samples follow. */
void metrics_family(struct metrics_writer *writer, const char *name);
/* One sample of the family begun last. @labels is {name, value, name, value, …, NULL} or NULL; values are escaped. */
void metrics_sample(struct metrics_writer *writer, const char *const *labels, double value);

enum { HISTOGRAM_BUCKETS = 14 };
/* 1 ms to 60 s; a value type that its owner keeps. */
struct histogram {
        uint64_t buckets[HISTOGRAM_BUCKETS]; /* not cumulative */
        uint64_t count;
        double sum; /* seconds */
};
void histogram_add(struct histogram *histogram, double seconds);
void metrics_histogram(struct metrics_writer *writer, const char *const *labels, const struct histogram *histogram);

/* Ends the text; the caller owns it. Returns 0, or -errno of the first failure since the writer was made. */
int metrics_writer_finish(struct metrics_writer *writer, char **ret_text);
