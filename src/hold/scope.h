/* SPDX-License-Identifier: Apache-2.0 */
/* Which interface an IPv6 link-local address of this host belongs to. */
#pragma once

#include <stdint.h>

#include "base/address.h"

/* The interface's index, or 0 for any other address. A packet to a host's own link-local address comes in on lo and no longer says. */
uint32_t scope_of(const struct address *address);
