/* SPDX-License-Identifier: Apache-2.0 */
/* Which port each backend of a policy is parked on: one number on all nodes, never two backends with the same one.
 *
 * A backend without a port gets the first free one from a place on that depends on its name alone, so that it mostly gets the same
 * again. What the statuses say already counts first: let parking_ports_learn() see every policy before anything is assigned.
 */
#pragma once

#include <stdint.h>

#include "kube/scale_to_zero.h"

struct parking_ports;

/* Returns 0, -EINVAL where @first is 0 or above @last, or -ENOMEM. */
int parking_ports_new(uint16_t first, uint16_t last, struct parking_ports **ret_ports);
struct parking_ports *parking_ports_free(struct parking_ports *ports);
DEFINE_CLEANUP(struct parking_ports, parking_ports_free)

/* The ports that the status of @policy ("namespace/name") has are its own, but for those that another has taken before, and those out
 * of range. Returns 0 or -ENOMEM. */
int parking_ports_learn(struct parking_ports *ports, const char *policy, const struct scale_to_zero_status *status);
/* Returns 0, -ENOSPC when all are taken, or -ENOMEM. */
int parking_ports_assign(struct parking_ports *ports, const char *policy, const char *backend, uint16_t *ret_port);
/* All that the policy has; it is awake, or gone. */
void parking_ports_release(struct parking_ports *ports, const char *policy);
