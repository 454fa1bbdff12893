/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <string.h>

static void strings_free(char **strings)
{
        for (size_t i = 0; strings && strings[i]; i++)
                free(strings[i]);
        free(strings);
}

static void cluster_done(struct cluster_settings *cluster)
{
        free(cluster->reference.api_version);
        free(cluster->reference.kind);
        free(cluster->reference.name);
        strings_free(cluster->services);
        for (size_t i = 0; i < cluster->n_ignore; i++) {
                free(cluster->ignore[i].pods);
                free(cluster->ignore[i].namespaces);
        }
        free(cluster->ignore);
}

struct policy *policy_free(struct policy *policy)
{
        if (!policy)
                return NULL;

        free(policy->name);
        free(policy->file);
        free(policy->frontends);
        strings_free(policy->process.command);
        free(policy->process.working_directory);
        strings_free(policy->process.environment);
        free(policy->process.user);
        cluster_done(&policy->cluster);
        free(policy->wake.from);
        free(policy->ignore);
        free(policy);
        return NULL;
}

static bool text_equal(const char *a, const char *b)
{
        if (!a || !b)
                return a == b;
        return strcmp(a, b) == 0;
}

static bool strings_equal(char *const *a, char *const *b)
{
        if (!a || !b)
                return a == b;
        for (; *a && *b; a++, b++)
                if (strcmp(*a, *b) != 0)
                        return false;
        return *a == *b;
}

static bool prefix_equal(const struct prefix *a, const struct prefix *b)
{
        return a->length == b->length && address_equal(&a->address, &b->address);
}

static bool process_equal(const struct process_settings *a, const struct process_settings *b)
{
        return strings_equal(a->command, b->command) && text_equal(a->working_directory, b->working_directory) &&
               strings_equal(a->environment, b->environment) && text_equal(a->user, b->user) && a->stop_signal == b->stop_signal &&
               a->stop_timeout_ns == b->stop_timeout_ns;
}

static bool reference_equal(const struct target_reference *a, const struct target_reference *b)
{
        return text_equal(a->api_version, b->api_version) && text_equal(a->kind, b->kind) && text_equal(a->name, b->name);
}

static bool cluster_equal(const struct cluster_settings *a, const struct cluster_settings *b)
{
        if (!reference_equal(&a->reference, &b->reference) || !strings_equal(a->services, b->services) ||
            a->replicas != b->replicas || a->parking != b->parking || a->readiness != b->readiness ||
            a->scaled_by != b->scaled_by || a->n_ignore != b->n_ignore)
                return false;
        for (size_t i = 0; i < a->n_ignore; i++)
                if (!text_equal(a->ignore[i].pods, b->ignore[i].pods) ||
                    !text_equal(a->ignore[i].namespaces, b->ignore[i].namespaces))
                        return false;
        return true;
}

static bool idle_equal(const struct idle_settings *a, const struct idle_settings *b)
{
        return a->after_ns == b->after_ns && a->request_timeout_ns == b->request_timeout_ns && a->min_awake_ns == b->min_awake_ns &&
               a->connections == b->connections && a->outbound == b->outbound && a->cpu_millicores == b->cpu_millicores &&
               a->gpu.after_ns == b->gpu.after_ns && a->gpu.on_idle == b->gpu.on_idle;
}

static bool wake_equal(const struct wake_settings *a, const struct wake_settings *b)
{
        if (a->hold_timeout_ns != b->hold_timeout_ns || a->max_held != b->max_held || a->n_from != b->n_from)
                return false;
        for (size_t i = 0; i < a->n_from; i++)
                if (!prefix_equal(&a->from[i], &b->from[i]))
                        return false;
        return true;
}

static bool frontends_equal(const struct policy *a, const struct policy *b)
{
        if (a->n_frontends != b->n_frontends)
                return false;
        for (size_t i = 0; i < a->n_frontends; i++)
                if (!frontend_equal(&a->frontends[i], &b->frontends[i]))
                        return false;
        return true;
}

static bool ignore_equal(const struct policy *a, const struct policy *b)
{
        if (a->n_ignore != b->n_ignore)
                return false;
        for (size_t i = 0; i < a->n_ignore; i++)
                if (a->ignore[i].port != b->ignore[i].port || !prefix_equal(&a->ignore[i].prefix, &b->ignore[i].prefix))
                        return false;
        return true;
}

bool policy_equal(const struct policy *a, const struct policy *b)
{
        return a->target == b->target && frontends_equal(a, b) && process_equal(&a->process, &b->process) &&
               cluster_equal(&a->cluster, &b->cluster) && idle_equal(&a->idle, &b->idle) && wake_equal(&a->wake, &b->wake) &&
               ignore_equal(a, b) && a->dry_run == b->dry_run;
}

bool policy_ignores(const struct policy *policy, const struct address *source, uint16_t port)
{
        for (size_t i = 0; i < policy->n_ignore; i++) {
                const struct ignore_rule *rule = &policy->ignore[i];

                if ((rule->port == 0 || rule->port == port) && prefix_contains(&rule->prefix, source))
                        return true;
        }
        return false;
}
