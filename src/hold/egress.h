/* SPDX-License-Identifier: Apache-2.0 */
/* The address that this host takes for what it sends somewhere. */
#pragma once

#include "base/address.h"

/* By the routes, as for any socket; nothing is sent. Returns 0, or -errno: -ENETUNREACH without a route. */
int egress_address(const struct address *towards, struct address *ret_address);
/* The address by which others reach this host: the one towards everywhere. Returns 0 or -errno. */
int egress_primary(bool ipv4, struct address *ret_address);
