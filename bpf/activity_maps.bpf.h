/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps of activity; include/activity_wire.h says what is in them.
 *
 * Configuration and totals are cgroup storage: the kernel hands a program the entry of the cgroup it is attached to without a lookup,
 * and sock_ops programs, which cannot ask for their cgroup, need it to know whom they work for.
 */
#ifndef ACTIVITY_MAPS_BPF_H
#define ACTIVITY_MAPS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "activity_wire.h"

struct {
        __uint(type, BPF_MAP_TYPE_CGROUP_STORAGE);
        __type(key, __u64); /* a 64-bit key: one entry for all programs on a cgroup */
        __type(value, struct activity_config);
} activity_config SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE);
        __type(key, __u64);
        __type(value, struct activity_totals);
} activity_totals SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, ACTIVITY_PORTS_MAX);
        __type(key, struct activity_port_key);
        __type(value, __u8);
} activity_ports SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LPM_TRIE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, ACTIVITY_RULES_MAX);
        __type(key, struct activity_rule_key);
        __type(value, __u8);
} activity_rules SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, ACTIVITY_CONNECTS_MAX);
        __type(key, struct activity_connect_key);
        __type(value, __u8);
} activity_connects SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, ACTIVITY_PROBES_MAX);
        __type(key, struct activity_connect_key);
        __type(value, __u8);
} activity_probes SEC(".maps");

/* The daemon counts what is in these two: they can be read from every network namespace, which socket storage can not be, and an entry
 * lives as long as its connection, which no counter would be sure of. Cookies are given out in sequence, so that few share a slot. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, ACTIVITY_SLOTS);
        __type(key, __u32);
        __type(value, struct activity_socket);
} activity_slots SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __uint(max_entries, ACTIVITY_CONNECTIONS_MAX);
        __type(key, __u64);
        __type(value, struct activity_socket);
} activity_connections SEC(".maps");

/* UDP sockets: nothing tells when one closes, and they are not counted. */
struct {
        __uint(type, BPF_MAP_TYPE_SK_STORAGE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, int);
        __type(value, struct activity_socket);
} activity_sockets SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, ACTIVITY_RING_BYTES);
} activity_events SEC(".maps");

#endif
