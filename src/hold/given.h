/* SPDX-License-Identifier: Apache-2.0 */
/* UDP flows that were given to an endpoint: a data plane that does not know the endpoint yet may remove their entries when it cleans up
 * after old ones (kube-proxy does), and then they are made again.
 *
 * At most GIVEN_MAX are remembered; past that the oldest is forgotten, and its next datagram is held again.
 */
#pragma once

#include <stddef.h>

#include "hold/conntrack.h"

enum { GIVEN_MAX = 4096 };

struct given;
struct held_frontend;

int given_new(struct given **ret_given);
struct given *given_free(struct given *given);
DEFINE_CLEANUP(struct given, given_free)

/* @flow of @frontend has an entry to (@endpoint, @port), which sees it come from @masquerade, or from itself where that is NULL.
 * Returns 0 or -ENOMEM. */
int given_add(struct given *given, const struct held_frontend *frontend, const struct flow *flow,
              const struct conntrack_translation *translation);
/* Makes the entry of @flow again, if it is remembered and does not exist. Returns 1 if it did, 0, or -errno. */
int given_restore(struct given *given, struct conntrack *conntrack, const struct flow *flow);
void given_forget(struct given *given, const struct flow *flow);
void given_forget_frontend(struct given *given, const struct held_frontend *frontend);
/* Those given to an endpoint that is gone; @conntrack loses their entries where nobody has answered. */
void given_forget_endpoint(struct given *given, struct conntrack *conntrack, const struct held_frontend *frontend,
                           const struct address *endpoint, uint16_t port);
