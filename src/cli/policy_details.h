/* SPDX-License-Identifier: Apache-2.0 */
/* One policy for people, a line a fact. */
#pragma once

#include <jansson.h>

struct cli;

int policy_print_details(struct cli *cli, const json_t *policy);
