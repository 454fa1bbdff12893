/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <string.h>

#include "base/log.h"
#include "hold/local.h"
#include "serve/event_log.h"
#include "standalone/manager.h"

static int by_name(const void *a, const void *b)
{
        const struct managed *const *left = a, *const *right = b;

        return strcmp((*left)->policy->name, (*right)->policy->name);
}

static int load(const struct options *options, struct policy_set **ret_set)
{
        _cleanup_(local_prefixes_freep) struct local_prefixes *local = NULL;
        int r;

        r = local_prefixes_read(&local);
        if (r < 0)
                return r;
        return policy_set_load(options->paths, options->n_paths, local_prefixes_contain, local, ret_set);
}

int manager_check(const struct options *options)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        int r;

        r = load(options, &set);
        if (r < 0)
                return r;

        for (size_t i = 0; i < set->n_errors; i++)
                fprintf(stderr, "lulld: %s\n", set->errors[i]);
        if (set->n_errors > 0)
                return -EINVAL;

        printf("%zu %s valid\n", set->n_policies, set->n_policies == 1 ? "policy is" : "policies are");
        return 0;
}

static void take_errors(struct manager *manager, struct policy_set *set)
{
        for (size_t i = 0; i < manager->n_configuration_errors; i++)
                free(manager->configuration_errors[i]);
        free(manager->configuration_errors);

        manager->configuration_errors = TAKE_PTR(set->errors);
        manager->n_configuration_errors = set->n_errors;
        set->n_errors = 0;

        for (size_t i = 0; i < manager->n_configuration_errors; i++) {
                log_error("%s", manager->configuration_errors[i]);
                event_log_add(manager->context.events, NULL, "ConfigurationError", "%s", manager->configuration_errors[i]);
        }
}

static bool claims_frontend_of(const struct policy *policy, const struct policy *other)
{
        for (size_t i = 0; i < policy->n_frontends; i++)
                for (size_t j = 0; j < other->n_frontends; j++)
                        if (frontend_overlaps(&policy->frontends[i], &other->frontends[j]))
                                return true;
        return false;
}

static int policy_by_name(const void *name, const void *element)
{
        const struct policy *const *policy = element;

        return strcmp(name, (*policy)->name);
}

static int policy_order(const void *a, const void *b)
{
        const struct policy *const *left = a, *const *right = b;

        return strcmp((*left)->name, (*right)->name);
}

static struct policy **find_policy(const struct policy_set *set, const char *name)
{
        if (set->n_policies == 0)
                return NULL;
        return bsearch(name, set->policies, set->n_policies, sizeof(*set->policies), policy_by_name);
}

static bool is_claimed(const struct policy *policy, const struct policy_set *set)
{
        for (size_t i = 0; i < set->n_policies; i++)
                if (claims_frontend_of(set->policies[i], policy))
                        return true;
        return false;
}

/* Errors begin with where they are: "FILE:LINE: ..." or "FILE: ...". */
static bool has_error(const char *file, const struct policy_set *set)
{
        size_t length = strlen(file);

        for (size_t i = 0; i < set->n_errors; i++)
                if (strncmp(set->errors[i], file, length) == 0 && set->errors[i][length] == ':')
                        return true;
        return false;
}

/* A removed policy whose frontends another one now claims cannot be woken first: it is let go as it is. One whose file has become wrong
 * was not removed, and goes on as before. */
static void remove_policy(struct manager *manager, struct managed *managed, const struct policy_set *set)
{
        if (is_claimed(managed->policy, set)) {
                managed->retiring = true;
                managed->context->retired(managed, manager);
        } else if (!managed->retiring && !has_error(managed->policy->file, set)) {
                managed_retire(managed);
        }
}

static void remove_missing(struct manager *manager, const struct policy_set *set)
{
        for (size_t i = 0; i < manager->n_policies; i++) {
                struct managed *managed = manager->policies[i];

                if (!find_policy(set, managed->policy->name))
                        remove_policy(manager, managed, set);
        }
        manager_reap(manager);
}

static void change(struct manager *manager, struct managed *managed, struct policy **policy)
{
        int r;

        if (!managed->retiring && policy_equal(managed->policy, *policy)) {
                /* Only where it stands may have moved. */
                free(managed->policy->file);
                managed->policy->file = TAKE_PTR((*policy)->file);
                managed->policy->line = (*policy)->line;
                return;
        }

        r = managed_update(managed, *policy);
        if (r < 0) {
                log_error("policy \"%s\": cannot be changed: %s; it goes on as before", managed->policy->name, strerror(-r));
                return;
        }
        event_log_add(manager->context.events, (*policy)->name, "PolicyChanged", "read from %s:%u", (*policy)->file,
                      (*policy)->line);
        *policy = NULL; /* taken over */
}

static void add(struct manager *manager, struct policy **policy)
{
        struct managed *managed;
        int r;

        r = managed_new(&manager->context, *policy, &managed);
        if (r < 0) {
                log_error("policy \"%s\": cannot be set up: %s", (*policy)->name, strerror(-r));
                event_log_add(manager->context.events, (*policy)->name, "PolicyFailed", "cannot be set up: %s", strerror(-r));
                return;
        }
        event_log_add(manager->context.events, (*policy)->name, "PolicyAdded", "read from %s:%u; it is %s", (*policy)->file,
                      (*policy)->line, phase_to_string(managed->machine.phase));
        *policy = NULL; /* taken over */
        manager->policies[manager->n_policies++] = managed;
}

static int grow(struct manager *manager, size_t more)
{
        struct managed **policies;

        policies = reallocarray(manager->policies, manager->n_policies + more, sizeof(*policies));
        if (!policies)
                return -ENOMEM;
        manager->policies = policies;
        return 0;
}

int manager_load(struct manager *manager)
{
        _cleanup_(policy_set_freep) struct policy_set *set = NULL;
        size_t known;
        int r;

        r = load(manager->options, &set);
        if (r < 0)
                return r;
        qsort(set->policies, set->n_policies, sizeof(*set->policies), policy_order);

        remove_missing(manager, set);
        take_errors(manager, set);
        r = grow(manager, set->n_policies + 1);
        if (r < 0)
                return r;

        known = manager->n_policies;
        for (size_t i = 0; i < set->n_policies; i++) {
                struct managed *found = managed_find(manager->policies, known, set->policies[i]->name);

                if (found)
                        change(manager, found, &set->policies[i]);
                else
                        add(manager, &set->policies[i]);
        }
        qsort(manager->policies, manager->n_policies, sizeof(*manager->policies), by_name);
        malloc_trim(0); /* the documents took far more than what stays of them */
        return 0;
}
