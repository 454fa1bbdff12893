/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a socket is to its workload: served, self, outbound, ignored or none of these. */
#ifndef ACTIVITY_CLASS_BPF_H
#define ACTIVITY_CLASS_BPF_H

#include "activity_maps.bpf.h"

static __always_inline bool is_policy_port(const struct activity_config *config, __u16 port, __u8 transport)
{
        struct activity_port_key key = {
                .cgroup = config->cgroup, .generation = config->generation, .port = port, .transport = transport
        };

        return bpf_map_lookup_elem(&activity_ports, &key);
}

static __always_inline bool is_ignored(const struct activity_config *config, const struct activity_tuple *tuple)
{
        struct activity_rule_key key = { .prefix_length = (sizeof(key) - 2 * sizeof(__u32)) * 8,
                                         .generation = config->generation,
                                         .cgroup = config->cgroup,
                                         .port = tuple->local_port };

        if (!config->has_rules)
                return false;
        __builtin_memcpy(key.address, tuple->remote, sizeof(key.address));
        if (bpf_map_lookup_elem(&activity_rules, &key))
                return true;
        key.port = 0;
        return bpf_map_lookup_elem(&activity_rules, &key);
}

static __always_inline void connect_key(struct activity_connect_key *key, __u64 cgroup, const struct activity_tuple *tuple)
{
        key->cgroup = cgroup;
        key->tuple = *tuple;
}

/* The same connection's, as the other end sees it. */
static __always_inline void other_end_key(struct activity_connect_key *key, __u64 cgroup, const struct activity_tuple *tuple)
{
        key->cgroup = cgroup;
        __builtin_memcpy(key->tuple.local, tuple->remote, 16);
        __builtin_memcpy(key->tuple.remote, tuple->local, 16);
        key->tuple.local_port = tuple->remote_port;
        key->tuple.remote_port = tuple->local_port;
        key->tuple.transport = tuple->transport;
}

static __always_inline bool is_probe(const struct activity_tuple *tuple)
{
        struct activity_connect_key key;

        other_end_key(&key, 0, tuple);
        return bpf_map_lookup_elem(&activity_probes, &key);
}

/* Whether the other end of an accepted connection, or the sender of a datagram, is the workload itself; tells that end so. */
static __always_inline bool accepts_from_itself(__u64 cgroup, const struct activity_tuple *tuple)
{
        struct activity_connect_key key;
        __u8 *own;

        other_end_key(&key, cgroup, tuple);
        own = bpf_map_lookup_elem(&activity_connects, &key);
        if (!own)
                return false;
        *own = 1;
        return true;
}

static __always_inline bool connects_to_itself(__u64 cgroup, const struct activity_tuple *tuple)
{
        struct activity_connect_key key;
        __u8 *own;

        connect_key(&key, cgroup, tuple);
        own = bpf_map_lookup_elem(&activity_connects, &key);
        return own && *own;
}

static __always_inline __u8 classify(const struct activity_config *config, const struct activity_tuple *tuple, bool accepted)
{
        bool served = is_policy_port(config, tuple->local_port, tuple->transport);

        if (tuple->transport == IPPROTO_UDP)
                return served ? ACTIVITY_SERVED : ACTIVITY_OUTBOUND;
        if (accepted ? accepts_from_itself(config->cgroup, tuple) : connects_to_itself(config->cgroup, tuple))
                return ACTIVITY_SELF;
        if (accepted && is_probe(tuple))
                return ACTIVITY_PROBE;
        if (is_ignored(config, tuple))
                return ACTIVITY_IGNORED;
        if (!accepted)
                return ACTIVITY_OUTBOUND;
        return served ? ACTIVITY_SERVED : ACTIVITY_OTHER;
}

/* What the kubelet has made stays its own, though it may have closed its end by now. */
static __always_inline void socket_class(struct activity_socket *socket, const struct activity_config *config)
{
        if (socket->class != ACTIVITY_PROBE)
                socket->class = classify(config, &socket->tuple, socket->accepted);
        socket->generation = config->generation;
}

#endif
