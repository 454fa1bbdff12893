/* SPDX-License-Identifier: Apache-2.0 */
/* Writes this node's NodeActivity: the whole status by one merge patch, made anew from what is true when it is sent.
 *
 * At most one write every REPORT_INTERVAL_NS and one at a time; what is equal to what was written last is not written again. The object
 * is made when it is missing. While the API server does not take it, it is tried again after 100 ms, doubled to 2 s, half of it chance.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

#define REPORT_INTERVAL_NS (20 * UINT64_C(1000000))

struct report;

struct report_callbacks {
        /* The status as it is now, new JSON, or NULL without memory. */
        json_t *(*status)(void *userdata);
        /* That status is in the API server. */
        void (*written)(void *userdata);
};

struct report_counters {
        uint64_t writes, failures; /* requests that were done, and that were not */
};

int report_new(struct kube_client *client, const char *node, const struct report_callbacks *callbacks, void *userdata,
               struct report **ret_report);
struct report *report_free(struct report *report);
DEFINE_CLEANUP(struct report, report_free)

/* The status may have changed: it is written now, or as soon as the rules above allow; @urgent before everything else that waits for
 * the API server. */
void report_changed(struct report *report, bool urgent);
/* The same, at @at_ns (monotonic) at the latest. */
void report_changed_at(struct report *report, uint64_t at_ns);

const struct report_counters *report_counters(const struct report *report);
const char *report_problem(const struct report *report); /* why the last write failed, for people; "" if it did not */
