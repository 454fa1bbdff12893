/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <netinet/in.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"

/* Ports and rules carry a generation. New settings' are written under the next one, then the configuration names it: a packet meets
 * either settings, never half of each. */

void keys_free(struct keys *keys)
{
        free(keys->ports);
        free(keys->rules);
}

static int ports_fd(const struct workload *workload)
{
        return bpf_map__fd(workload->activity->programs->maps.activity_ports);
}

static int rules_fd(const struct workload *workload)
{
        return bpf_map__fd(workload->activity->programs->maps.activity_rules);
}

static struct activity_port_key port_key(const struct activity_config *config, const struct workload_port *port)
{
        return (struct activity_port_key){
                .cgroup = config->cgroup, .generation = config->generation, .port = port->port, .transport = port->protocol
        };
}

static struct activity_rule_key rule_key(const struct activity_config *config, const struct prefix *prefix, uint16_t port)
{
        struct activity_rule_key key = { .prefix_length = ACTIVITY_RULE_PREFIX + prefix->length,
                                         .generation = config->generation,
                                         .cgroup = config->cgroup,
                                         .port = port };

        if (prefix->length)
                memcpy(key.address, prefix->address.bytes, sizeof(key.address));
        return key;
}

static int make_keys(const struct workload_settings *settings, const struct activity_config *config, struct keys *keys)
{
        const struct policy *policy = settings->policy;

        keys->ports = calloc(settings->n_ports + 1, sizeof(*keys->ports));
        keys->rules = calloc(policy->n_ignore + settings->n_ignored + 1, sizeof(*keys->rules));
        if (!keys->ports || !keys->rules)
                return -ENOMEM;

        for (size_t i = 0; i < settings->n_ports; i++)
                keys->ports[keys->n_ports++] = port_key(config, &settings->ports[i]);
        for (size_t i = 0; i < policy->n_ignore; i++)
                keys->rules[keys->n_rules++] = rule_key(config, &policy->ignore[i].prefix, policy->ignore[i].port);
        for (size_t i = 0; i < settings->n_ignored; i++)
                keys->rules[keys->n_rules++] = rule_key(config, &settings->ignored[i], 0);
        return 0;
}

static bool rule_matches(const struct activity_rule_key *rule, const struct activity_tuple *tuple)
{
        struct prefix prefix = { .length = (uint8_t)(rule->prefix_length - ACTIVITY_RULE_PREFIX) };
        struct address remote;

        memcpy(prefix.address.bytes, rule->address, sizeof(prefix.address.bytes));
        memcpy(remote.bytes, tuple->remote, sizeof(remote.bytes));
        return (rule->port == 0 || rule->port == tuple->local_port) && prefix_contains(&prefix, &remote);
}

uint8_t keys_classify(const struct keys *keys, const struct activity_socket *socket)
{
        if (socket->class == ACTIVITY_SELF || socket->class == ACTIVITY_PROBE)
                return socket->class;
        for (size_t i = 0; i < keys->n_rules; i++)
                if (rule_matches(&keys->rules[i], &socket->tuple))
                        return ACTIVITY_IGNORED;
        if (!socket->accepted)
                return ACTIVITY_OUTBOUND;
        for (size_t i = 0; i < keys->n_ports; i++)
                if (keys->ports[i].port == socket->tuple.local_port && keys->ports[i].transport == IPPROTO_TCP)
                        return ACTIVITY_SERVED;
        return ACTIVITY_OTHER;
}

static int write_keys(struct workload *workload, const struct keys *keys)
{
        uint8_t one = 1;

        for (size_t i = 0; i < keys->n_ports; i++)
                if (bpf_map_update_elem(ports_fd(workload), &keys->ports[i], &one, BPF_ANY) < 0)
                        return -errno;
        for (size_t i = 0; i < keys->n_rules; i++)
                if (bpf_map_update_elem(rules_fd(workload), &keys->rules[i], &one, BPF_ANY) < 0)
                        return -errno;
        return 0;
}

static void delete_keys(struct workload *workload, const struct keys *keys)
{
        for (size_t i = 0; i < keys->n_ports; i++)
                bpf_map_delete_elem(ports_fd(workload), &keys->ports[i]);
        for (size_t i = 0; i < keys->n_rules; i++)
                bpf_map_delete_elem(rules_fd(workload), &keys->rules[i]);
}

static int write_config(struct workload *workload, const struct activity_config *config)
{
        struct activity *activity = workload->activity;

        if (bpf_map_update_elem(bpf_map__fd(activity->programs->maps.activity_config), &config->cgroup, config, BPF_EXIST) < 0)
                return -errno;
        __atomic_add_fetch(&activity->programs->bss->epoch, 1, __ATOMIC_RELEASE);
        return 0;
}

void workload_forget_rules(struct workload *workload)
{
        delete_keys(workload, &workload->keys);
        keys_free(&workload->keys);
        workload->keys = (struct keys){ 0 };
}

int workload_apply(struct workload *workload, const struct workload_settings *settings)
{
        const struct policy *policy = settings->policy;
        struct activity_config config = { .cgroup = workload->config.cgroup,
                                          .generation = workload->config.generation + 1,
                                          .has_rules = policy->n_ignore + settings->n_ignored > 0 };
        _cleanup_(keys_free) struct keys keys = { 0 };
        int r;

        r = make_keys(settings, &config, &keys);
        if (r < 0)
                return r;
        r = write_keys(workload, &keys);
        if (r >= 0)
                r = write_config(workload, &config);
        if (r < 0) {
                delete_keys(workload, &keys);
                return r;
        }

        workload_forget_rules(workload);
        workload->config = config;
        workload->keys = keys;
        keys = (struct keys){ 0 };
        workload->after_ns = policy->idle.after_ns;
        workload->request_timeout_ns = policy->idle.request_timeout_ns;
        workload->census.ns = 0;
        workload->outbound_counts = policy->idle.outbound == SILENCE_HOLD;
        return 0;
}

void workload_forget_stale(struct workload *workload)
{
        const struct activity_config *config = &workload->config;
        struct activity_port_key port, last_port;
        struct activity_rule_key rule, last_rule;

        /* A key deleted right after its successor is known does not end the walk. */
        for (int r = bpf_map_get_next_key(ports_fd(workload), NULL, &port); r == 0;) {
                last_port = port;
                r = bpf_map_get_next_key(ports_fd(workload), &last_port, &port);
                if (last_port.cgroup == config->cgroup && last_port.generation != config->generation)
                        bpf_map_delete_elem(ports_fd(workload), &last_port);
        }
        for (int r = bpf_map_get_next_key(rules_fd(workload), NULL, &rule); r == 0;) {
                last_rule = rule;
                r = bpf_map_get_next_key(rules_fd(workload), &last_rule, &rule);
                if (last_rule.cgroup == config->cgroup && last_rule.generation != config->generation)
                        bpf_map_delete_elem(rules_fd(workload), &last_rule);
        }
}
