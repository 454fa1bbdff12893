/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that every candidate of the tests goes by. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/election_policy.h"

#define LEASE_NS (15 * NSEC_PER_SEC)
#define RENEW_NS (10 * NSEC_PER_SEC)
#define RETRY_NS (2 * NSEC_PER_SEC)

static inline struct election_policy policy_of(const char *identity)
{
        struct election_rules rules = { .lease_ns = LEASE_NS, .renew_ns = RENEW_NS, .retry_ns = RETRY_NS };
        struct election_policy policy;

        snprintf(rules.identity, sizeof(rules.identity), "%s", identity);
        election_policy_init(&policy, &rules);
        return policy;
}
