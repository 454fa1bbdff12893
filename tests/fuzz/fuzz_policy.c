/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the bytes of a policy file: an answer, no crash, no leak, and only complete policies that overlap nowhere. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "policy/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_policy(const struct policy *policy)
{
        assert(policy->name && *policy->name && strlen(policy->name) <= POLICY_NAME_MAX);
        assert(policy->n_frontends > 0 && policy->n_frontends <= POLICY_FRONTENDS_MAX);
        assert(policy->process.command && policy->process.command[0] && policy->process.environment);
        assert(policy->idle.after_ns > 0 && policy->wake.max_held > 0);
        assert(policy_equal(policy, policy));
}

static void check_pair(const struct policy *a, const struct policy *b)
{
        assert(strcmp(a->name, b->name) != 0);
        for (size_t i = 0; i < a->n_frontends; i++)
                for (size_t j = 0; j < b->n_frontends; j++)
                        assert(!frontend_overlaps(&a->frontends[i], &b->frontends[j]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;

        if (policy_set_load_text((const char *)data, size, "fuzz.yaml", &set) < 0)
                return 0;

        for (size_t i = 0; i < set->n_policies; i++) {
                check_policy(set->policies[i]);
                for (size_t j = 0; j < i; j++)
                        check_pair(set->policies[i], set->policies[j]);
        }
        for (size_t i = 0; i < set->n_errors; i++)
                assert(strncmp(set->errors[i], "fuzz.yaml:", strlen("fuzz.yaml:")) == 0);
        return 0;
}
