/* SPDX-License-Identifier: Apache-2.0 */
/* What policies scale: objects with a scale subresource, and Jobs by spec.suspend.
 *
 * One watch a kind that some policy names (Deployments, StatefulSets, ReplicaSets and Jobs; any other kind is found through discovery),
 * from which replicas, pod labels and the pods' selector are known without asking. Changes are written through /scale, guarded by the
 * resourceVersion last seen.
 */
#pragma once

#include "kube/client.h"
#include "policy/policy.h"

/* For a change to zero, repetitions counted: by then it is made, or is not. Less than followers wait for their leader. */
#define TARGET_SLEEP_DEADLINE_NS (700 * UINT64_C(1000000))

struct targets;
struct target;

struct target_state {
        bool known; /* its kind has been watched, and its replicas read; else nothing below but the problem means anything */
        bool stale; /* what is below may have changed since: not to be put to sleep */
        bool exists;
        bool in_doubt;            /* it may have been scaled to zero since: the outcome of that change is not known */
        uint32_t replicas;        /* asked for: spec.replicas; a Job: 0 suspended, else 1 */
        uint32_t ready;           /* status.readyReplicas, where the kind has it */
        const json_t *pod_labels; /* of the template; where the kind has none, what its selector says; or NULL */
        bool labels_partial;      /* ... which have others too */
        const char *selector;     /* of its pods, text form, or "" */
        const char *uid;
        const char *failure; /* why it makes no pods, from its conditions ("exceeded quota: …"), or NULL */
        bool final;          /* there is no such kind, or it cannot be scaled: no object of it is asleep */
        const char *problem; /* why the kind cannot be scaled, or is not known, for people; or NULL */
};

/* Something about @target changed, or it is new: from the event loop. May make and free targets. */
typedef void (*target_changed)(struct target *target, void *userdata);

int targets_new(struct kube_client *client, target_changed changed, struct targets **ret_targets);
struct targets *targets_free(struct targets *targets); /* all targets must have been freed */
DEFINE_CLEANUP(struct targets, targets_free)

/* The same reference may be had several times. Returns 0 or -errno; a kind that is not there, or may not be watched, is a problem of
 * the state. */
int target_new(struct targets *targets, const char *namespace, const struct target_reference *reference, void *userdata,
               struct target **ret_target);
struct target *target_free(struct target *target);
DEFINE_CLEANUP(struct target, target_free)

void target_read(const struct target *target, struct target_state *ret_state); /* valid until the event loop runs */
/* Of Kubernetes' own kinds that have been read once: others are told by their own targets' states, for a kind that is new, somebody else's
 * or not to be read must not keep all others awake. */
bool targets_are_stale(const struct targets *targets);

/* Asks for @replicas; a Job: 0 suspends it. Zero only if nobody has changed the target since it was last seen (409 else); more only
 * while it is at zero, which is read again where somebody has written meanwhile: what others have scaled up stays, and is a success.
 * The reply's error is -EAGAIN where it has never been seen, -EOPNOTSUPP where its kind cannot be scaled. done() comes once, from the event
 * loop, unless the target has been freed before; target_read() then shows what the answer said, without waiting for the watch. Where
 * a change to zero has not been answered clearly, the scale is read before done() comes. Returns 0 or -errno. */
int target_scale(struct target *target, uint32_t replicas, void (*done)(const struct kube_reply *reply, void *userdata),
                 void *userdata);
