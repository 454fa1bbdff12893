/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What a server asks for with Retry-After, and a little more: it adds no jitter of its own, and all its clients would come back at once.
 * @chance is in [0, 1). The more grows with the outage, as what the server asks for does, and makes no client
 * visibly late. */
static inline uint64_t kube_retry_after(uint64_t retry_after_ns, double chance)
{
        return retry_after_ns + (uint64_t)((double)retry_after_ns * chance / 50);
}

double kube_chance(void); /* uniform in [0, 1), of the kernel's random numbers */
