/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps of holding; include/lull_wire.h says what is in them. */
#ifndef MAPS_BPF_H
#define MAPS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "lull_wire.h"

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, LULL_FRONTENDS_MAX);
        __type(key, struct lull_frontend_key);
        __type(value, struct lull_frontend);
} frontends SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, LULL_FRONTENDS_MAX);
        __type(key, __u32);
        __type(value, struct lull_demand);
} demand SEC(".maps");

/* An LRU hash is always preallocated. */
struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, LULL_PASS_MAX);
        __type(key, struct lull_flow);
        __type(value, __u64);
} pass SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, LULL_ANSWERS_MAX);
        __type(key, struct lull_flow);
        __type(value, struct lull_answer);
} answers SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LPM_TRIE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, LULL_RULES_MAX);
        __type(key, struct lull_rule_key);
        __type(value, __u8);
} ignored SEC(".maps"), allowed SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LPM_TRIE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, LULL_LOCAL_MAX);
        __type(key, struct lull_local_key);
        __type(value, __u8);
} local SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct lull_control);
} control SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, LULL_COUNTER_MAX);
        __type(key, __u32);
        __type(value, __u64);
} counters SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, LULL_RING_BYTES);
} events SEC(".maps");

#endif
