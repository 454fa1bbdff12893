/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/counters.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"

const double kube_latency_bounds[KUBE_LATENCY_BUCKETS] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15, 60 };

static const char *const verbs[] = {
        [KUBE_GET] = "get",       [KUBE_LIST] = "list",   [KUBE_WATCH] = "watch",   [KUBE_CREATE] = "create",
        [KUBE_UPDATE] = "update", [KUBE_PATCH] = "patch", [KUBE_DELETE] = "delete",
};
static_assert(ELEMENTSOF(verbs) == KUBE_VERB_MAX, "a name for each verb");

const char *kube_verb_to_string(enum kube_verb verb)
{
        return verbs[verb];
}

static bool row_is(const struct kube_counter_row *row, enum kube_verb verb, const char *resource, unsigned code)
{
        return row->verb == verb && row->code == code && strncmp(row->resource, resource, sizeof(row->resource) - 1) == 0;
}

static struct kube_counter_row *row_find(struct kube_counters *counters, enum kube_verb verb, const char *resource, unsigned code)
{
        struct kube_counter_row *row;

        for (size_t i = 0; i < counters->n_rows; i++)
                if (row_is(&counters->rows[i], verb, resource, code))
                        return &counters->rows[i];
        if (counters->n_rows == KUBE_COUNTER_ROWS_MAX)
                return &counters->rows[KUBE_COUNTER_ROWS_MAX - 1];

        row = &counters->rows[counters->n_rows++];
        row->verb = verb;
        row->code = code;
        snprintf(row->resource, sizeof(row->resource), "%s", counters->n_rows == KUBE_COUNTER_ROWS_MAX ? "other" : resource);
        return row;
}

void kube_counters_request(struct kube_counters *counters, enum kube_verb verb, const char *resource, unsigned code,
                           uint64_t latency_ns)
{
        struct kube_counter_row *row = row_find(counters, verb, resource, code);

        row->requests++;
        row->latency_ns += latency_ns;
        for (size_t i = 0; i < KUBE_LATENCY_BUCKETS; i++)
                if ((double)latency_ns <= kube_latency_bounds[i] * (double)NSEC_PER_SEC) {
                        row->buckets[i]++;
                        break;
                }
}
