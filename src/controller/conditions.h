/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions that a status is to have: a bounded list, made anew at each look. Pure. */
#pragma once

#include "base/macros.h"
#include "kube/scale_to_zero.h"

enum { CONDITION_MESSAGE_MAX = 512 };

struct condition_entry {
        const char *type, *reason; /* static, or of the status that they were kept from */
        char message[CONDITION_MESSAGE_MAX];
};

struct conditions {
        struct condition_entry entries[STATUS_CONDITIONS_MAX];
        size_t n;
};

/* The first of a type counts; past the bound nothing is added. A message is cut at a character. */
void conditions_add(struct conditions *conditions, const char *type, const char *reason, const char *format, ...) _printf_(4, 5);
/* As it stands in @status, if it holds there. Returns whether it does. */
bool conditions_keep(struct conditions *conditions, const struct scale_to_zero_status *status, const char *type);
/* Bit i: entry i does not hold in @status. */
uint32_t conditions_news(const struct conditions *conditions, const struct scale_to_zero_status *status);
const struct condition_entry *conditions_find(const struct conditions *conditions, const char *type); /* or NULL */

/* Fills @ret with the list as a status has it; what held before keeps its time. Strings are borrowed. */
void conditions_to_status(const struct conditions *conditions, const struct scale_to_zero *object, uint64_t now_realtime_ns,
                          struct status_condition ret[static STATUS_CONDITIONS_MAX]);
