/* SPDX-License-Identifier: Apache-2.0 */
/* spec.target: what a policy runs. */
#pragma once

#include "policy/reader.h"

/* @userdata is the struct policy. As every reading function: 1, 0 after noting problems, or -ENOMEM. */
int target_spec_read(struct reader *reader, const struct value *value, void *userdata);
