/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of target.h know of each other; nobody else includes this.
 *
 * A kind is watched in all namespaces by one reflector for as long as some target is of it. Objects that are targets have an entry
 * in their kind. Whatever happens marks targets as changed; they are told from an event source of their own, so that callers may
 * make and free targets then.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "controller/target.h"
#include "controller/target_object.h"
#include "kube/reflector.h"
#include "kube/resource.h"

#define TARGET_RETRY_MIN_NS (5 * UINT64_C(1000000000))
#define TARGET_RETRY_MAX_NS (300 * UINT64_C(1000000000))

struct scale_change;

struct target {
        struct targets *targets;
        struct watched_object *object;
        void *userdata;
        bool changed; /* is in targets->changed_targets */
        LIST_ENTRY(target) of_object;
        TAILQ_ENTRY(target) of_changed;
        LIST_HEAD(, scale_change) changes; /* that have not ended */
};

struct watched_object {
        struct watched_kind *kind;
        char *namespace, *name;
        LIST_HEAD(, target) targets;

        /* TARGET_FORM_ANY: what GET …/scale said last */
        struct kube_scale *scale;
        struct kube_request *request;
        bool scale_wanted; /* something has happened since it was asked for, or it could not be had */
        char *scale_problem;
        json_t *scale_labels; /* that its selector says the pods have */

        /* What an answer to a change said: the watch shows it a moment later */
        char *answer_version; /* NULL: there was none */
        uint32_t answer_replicas;
        uint64_t doubt_version; /* of what a change to zero was sent for whose outcome is not known; 0: none */

        UT_hash_handle hh;
        char key[]; /* "namespace/name" */
};

struct watched_kind {
        struct targets *targets;
        char *api_version, *kind;
        enum target_form form;
        char *resource;               /* "deployments"; NULL until it is discovered */
        struct kube_request *request; /* of the discovery */
        struct kube_reflector *reflector;
        sd_event_source *timer; /* what could not be had is asked for again */
        uint64_t retry_ns;      /* the next delay */
        char *problem;          /* why it is not to be scaled, or NULL */
        bool final;             /* ... as far as the server itself says: not for want of an answer */
        struct watched_object *objects;
        LIST_ENTRY(watched_kind) of_all;
};

struct targets {
        struct kube_client *client;
        target_changed changed;
        LIST_HEAD(, watched_kind) kinds;
        TAILQ_HEAD(, target) changed_targets;
        sd_event_source *flush; /* tells of changed targets, and frees kinds without any */
};

void target_mark_changed(struct target *target);
void watched_kind_mark_changed(struct watched_kind *kind); /* all its targets */

/* The kind and the object of a reference, made where they are new. Returns 0 or -errno. */
int watched_kind_get(struct targets *targets, const struct target_reference *reference, struct watched_kind **ret_kind);
struct watched_kind *watched_kind_free(struct watched_kind *kind);
int watched_object_get(struct watched_kind *kind, const char *namespace, const char *name, struct watched_object **ret_object);
struct watched_object *watched_object_free(struct watched_object *object); /* its targets must have gone */

/* Finds the resource of a kind that lull does not know. */
int target_discovery_start(struct watched_kind *kind);
/* The kind's resource is known: watches it. */
int watched_kind_watch(struct watched_kind *kind);
void watched_kind_retry_later(struct watched_kind *kind);
/* Takes @problem over, which may be NULL. */
void watched_kind_set_problem(struct watched_kind *kind, char *problem);

struct seen_scale {
        const char *version;
        uint32_t replicas;
};

/* The newest that the watch or an answer said. Returns false where the watch has not shown the object. */
bool watched_object_seen(const struct watched_object *object, struct seen_scale *ret_seen);
bool watched_object_is_in_doubt(const struct watched_object *object);
void watched_object_forget_answer(struct watched_object *object);

void target_changes_drop(struct target *target); /* their done() does not come */

/* Reads the scale subresource of an object of TARGET_FORM_ANY, once more if that is being done. */
void watched_object_read_scale(struct watched_object *object);
void watched_object_forget_scale(struct watched_object *object);
