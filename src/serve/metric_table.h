/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric of lulld: the one place that says its name, type, labels and meaning. docs/metrics.md is generated from it
 * (tools/generate-metrics-reference). */
#pragma once

#include <stddef.h>

enum { METRIC_LABELS_MAX = 3 };

enum metric_type {
        METRIC_COUNTER,
        METRIC_GAUGE,
        METRIC_HISTOGRAM,
};

struct metric {
        const char *name;
        enum metric_type type;
        const char *labels[METRIC_LABELS_MAX + 1]; /* NULL after the last */
        const char *help;                          /* one line */
};

extern const struct metric metric_table[];
extern const size_t metric_table_size;

const struct metric *metric_find(const char *name);       /* or NULL */
const char *metric_type_to_string(enum metric_type type); /* "counter", "gauge", "histogram" */
