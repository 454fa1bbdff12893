/* SPDX-License-Identifier: Apache-2.0 */
/* A target's own copy of what its policy says, since policies come and go with each reload. */
#pragma once

#include "policy/policy.h"

/* The caller frees what is in *ret_copy with process_settings_done(). Returns 0 or -ENOMEM. */
int process_settings_copy(const struct process_settings *settings, struct process_settings *ret_copy);
void process_settings_done(struct process_settings *settings);
