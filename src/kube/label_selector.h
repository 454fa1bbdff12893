/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors in the API's text form: "app=web,tier in (a,b),!canary,zone!=x,zone notin (y)".
 *
 * As the server understands them (k8s.io/apimachinery/pkg/labels): requirements are joined by "and"; != and notin also match where the
 * label is missing; the empty selector matches everything.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/macros.h"

enum { LABEL_REQUIREMENTS_MAX = 64, LABEL_VALUES_MAX = 256 };

struct label_selector;

/* Returns 0, -EINVAL for text that is none, -E2BIG past the bounds, or -ENOMEM. */
int label_selector_parse(const char *text, struct label_selector **ret_selector);
struct label_selector *label_selector_free(struct label_selector *selector);
DEFINE_CLEANUP(struct label_selector, label_selector_free)

bool label_selector_matches(const struct label_selector *selector, const json_t *labels); /* @labels: an object, or NULL for none */
