/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of activity, open to this directory only: activity.c owns programs and maps, workload.c one cgroup's share of them,
 * attach.c its links, rules.c its ports and ignore rules, read.c what is read back,
 * census.c the connections, prober.c the kubelet's program. */
#pragma once

#include <sys/queue.h>

/* A failed allocation in uthash would end the process; this way it leaves the element out and says so in hh.tbl. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "activity/activity.h"
#include "activity/cpu.h"
#include "activity_wire.h"
#include "bpf/activity.skel.h"
#include "bpf/activity_probe.skel.h"

enum { ACTIVITY_PROGRAMS = 5 };

struct activity {
        sd_event *event;
        char *directory; /* of pins */
        struct activity_callbacks callbacks;
        struct activity_bpf *programs;
        struct activity_probe_bpf *prober; /* NULL: nobody is known to probe */
        int prober_link;
        struct ring_buffer *ring;
        sd_event_source *ring_source;
        int n_cpus;
        uint64_t tick_ns; /* how far the programs' clock may be behind */
        bool adopted;     /* the maps are an earlier daemon's */
        LIST_HEAD(workloads, workload) workloads;
        struct workload *by_cgroup;
};

struct census { /* connections found at @ns; 0: not looked for */
        uint64_t ns;
        uint32_t connections, outbound, open_requests;
        uint64_t oldest_request_ns, newest_request_ns;
        uint64_t last_ns; /* payload that the totals may not know of yet */
        struct workload_connection oldest_request;
};

struct keys { /* of ports and ignore rules in their maps */
        struct activity_port_key *ports;
        size_t n_ports;
        struct activity_rule_key *rules;
        size_t n_rules;
};

struct workload {
        struct activity *activity;
        LIST_ENTRY(workload) others;
        UT_hash_handle by_cgroup;
        void *userdata;
        char *pin_name;
        char *directory; /* of pins */
        struct activity_config config;
        int cgroup_fd;
        int links[ACTIVITY_PROGRAMS];
        struct cpu_history cpu;
        struct census census;
        bool earlier;         /* there may be connections from before the programs */
        uint64_t attached_ns; /* to this daemon's knowledge */

        /* of the settings */
        struct keys keys;
        uint64_t after_ns;
        uint64_t request_timeout_ns;
        bool outbound_counts;
};

/* attach.c. Attaches the programs to the workload's cgroup, or puts them in the place of an earlier daemon's. */
int workload_attach(struct workload *workload);
void workload_detach(struct workload *workload); /* unpins; the links end with their fds */
int pins_remove_all(const char *directory);      /* the links of one workload and their directory */
/* pin_name.c. Distinct names become distinct names of directories on a bpffs, of at most 200 characters. The caller owns the result; NULL:
 * out of memory. */
char *pin_name_of(const char *name);

const char *attach_name(size_t program);      /* "cgroup/ingress", ... */
const char *attach_type_name(size_t program); /* "cgroup_skb", ... */
struct bpf_program *attach_program(const struct activity *activity, size_t program);

/* rules.c. Puts ports and rules in force, all at once, and takes the former ones out. */
int workload_apply(struct workload *workload, const struct workload_settings *settings);
void workload_forget_rules(struct workload *workload);
void keys_free(struct keys *keys);
/* The class of a TCP connection by @keys, as the programs find it, but for what they know of its other end. */
uint8_t keys_classify(const struct keys *keys, const struct activity_socket *socket);
/* Deletes what an earlier daemon left for this cgroup. */
void workload_forget_stale(struct workload *workload);

/* census.c. One walk over the maps serves all workloads. Returns 0 or -errno. */
int activity_take_census(struct activity *activity);
/* Those of @cgroup, or for 0 those of no workload: nobody tells any more when they end. */
void activity_forget_connections(struct activity *activity, uint64_t cgroup);
/* Since when a request on the connection is unanswered, and when its last payload came; 0: none is. */
void socket_request(const struct activity_socket *socket, uint64_t *ret_since_ns, uint64_t *ret_last_ns);
struct tuples { /* starts zeroed; sorted */
        struct activity_tuple *tuples;
        size_t n, allocated;
        uint64_t cgroup;
        int error;
};
void tuples_done(struct tuples *tuples);
bool tuples_have(const struct tuples *tuples, const struct activity_tuple *tuple);
int workload_known_tuples(const struct workload *workload, struct tuples *tuples); /* of all its connections in the map */

/* earlier.c */
bool has_processes(const struct workload *workload); /* also when in doubt */
/* How many served connections are open that the programs have not seen. Returns 0 or -errno. */
int workload_count_earlier(const struct workload *workload, uint32_t *ret_count);
/* A line of /proc/net/tcp or tcp6; false when it is no open connection's. */
bool connection_line_parse(const char *line, struct activity_tuple *ret_tuple);

/* prober.c */
void prober_unpin(struct activity *activity);
void prober_done(struct activity *activity);
