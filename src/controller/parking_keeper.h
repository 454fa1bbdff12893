/* SPDX-License-Identifier: Apache-2.0 */
/* Parking for all policies: the ports, the nodes, and what is being written. parking.h says what it is for.
 *
 * One request a policy runs at a time, and PARKING_REQUESTS_MAX of all: a thousand would wait in line in front of what clients wait for, and
 * for longer than a request may take. Who has to wait is looked at again in turn. What has been written is not written again before the watch shows it, or a second has passed; a
 * failure is tried again, ever later up to PARKING_RETRY_MAX_NS.
 */
#pragma once

#include "controller/parking.h"
#include "kube/client.h"

enum { PARKING_REQUESTS_MAX = 8 };

#define PARKING_RETRY_MIN_NS (UINT64_C(1000000000))
#define PARKING_RETRY_MAX_NS (UINT64_C(30000000000))

struct parking_keeper;
struct kube_reflector;

struct parking_keeper_settings {
        const char *namespace; /* lull's own: the agents' pods are there */
        uint16_t first, last;  /* ports */
        bool (*is_fresh)(const char *node, void *userdata);
        void (*nodes_changed)(void *userdata); /* plans may be others now; also to be told when an agent's freshness changes */
        void (*again)(const char *policy, void *userdata); /* look at this policy's slices again */
};

int parking_keeper_new(struct kube_client *client, const struct parking_keeper_settings *settings, void *userdata,
                       struct parking_keeper **ret_keeper);
struct parking_keeper *parking_keeper_free(struct parking_keeper *keeper);
DEFINE_CLEANUP(struct parking_keeper, parking_keeper_free)

/* @policy is "namespace/name" everywhere. Every status that is seen, first of all those that are there: see parking_ports_learn(). */
int parking_keeper_learn(struct parking_keeper *keeper, const char *policy, const struct scale_to_zero_status *status);
/* For a policy that is not awake, or whose status has endpoints still. To be done with before the event loop runs. */
int parking_keeper_plan(struct parking_keeper *keeper, const char *policy, const struct parking_services *services,
                        struct parking_plan *ret_plan);
/* Makes the policy's slices as planned, one after the other; @plan NULL: there are to be none. Only the leader calls it. */
void parking_keeper_write(struct parking_keeper *keeper, const char *policy, const struct scale_to_zero *object,
                          const struct parking_services *services, const struct parking_plan *plan,
                          const struct kube_endpoint_slice *const *slices, size_t n_slices);
/* Something is being written, or was and the watch may not have shown it yet. */
bool parking_keeper_is_busy(const struct parking_keeper *keeper, const char *policy);
/* Its ports are free again: it is awake, its status has no endpoints any more, and there are no slices of it. */
void parking_keeper_release(struct parking_keeper *keeper, const char *policy);
/* It is gone; its slices go with it, for it owns them. */
void parking_keeper_forget(struct parking_keeper *keeper, const char *policy);

const char *parking_keeper_problem(const struct parking_keeper *keeper, const char *policy); /* of its last write; or NULL */
const struct kube_reflector *parking_keeper_view(const struct parking_keeper *keeper);       /* for the metrics */
