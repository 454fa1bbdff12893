/* SPDX-License-Identifier: Apache-2.0 */
/* Why a policy is in its phase, told to people. Pure. */
#pragma once

#include <jansson.h>

/* Makes one paragraph, without line breaks, of a *policy* object of docs/control-api.md: since when it is in its phase, because of
 * what, how long each phase of the wake took, what keeps it awake or why it went to sleep, its conditions, and what happens next. What
 * the object does not say is left out. Returns 0, -EINVAL for an object without name, phase, since and since_seconds, or -ENOMEM. The
 * caller owns *ret_text. */
int why_text(const json_t *policy, char **ret_text);
