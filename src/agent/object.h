/* SPDX-License-Identifier: Apache-2.0 */
/* A ScaleToZero object as this agent's view keeps it: the last of it that could be read.
 *
 * What cannot be read (a field of a newer controller, or a broken one) changes nothing: what was in force for it stays so. But the node
 * is then not up to date, which its NodeActivity says.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kube/scale_to_zero.h"

struct node;

struct object {
        LIST_ENTRY(object) unreadable;
        char *name;                 /* "namespace/name" */
        struct scale_to_zero *read; /* NULL: it never could be */
        uint64_t unread_version;    /* the first since then that could not; 0: the newest could */
        const char *unread_field;   /* what is wrong */
        int unread_error;           /* -EBADMSG or -E2BIG */
        bool listed;                /* in the node's list */
};

/* Returns 0 also for what cannot be read, or -ENOMEM. */
int object_new(const char *name, const json_t *json, struct object **ret_object);
struct object *object_free(struct object *object);
DEFINE_CLEANUP(struct object, object_free)

/* @object has taken the place of @old, or of nothing (NULL), in the view. Where it cannot be read it gets what @old was, and the log says
 * why, once. */
void object_follow(struct node *node, struct object *old, struct object *object);
/* @object is about to leave the view. */
void object_forget(struct node *node, struct object *object);
