/* SPDX-License-Identifier: Apache-2.0 */
/* What lull needs of an object that makes pods, read from its JSON. Pure. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/macros.h"

enum target_form {
        TARGET_FORM_APPS, /* Deployment, StatefulSet, ReplicaSet: spec.replicas, absent means 1 */
        TARGET_FORM_JOB,  /* spec.suspend */
        TARGET_FORM_ANY,  /* only its scale subresource says how many replicas it has */
};

struct target_object {
        char *uid, *resource_version;
        uint32_t replicas;  /* asked for; not of TARGET_FORM_ANY */
        uint32_t ready;     /* status.readyReplicas, of a Job status.ready; 0 where the kind has none */
        json_t *pod_labels; /* spec.template.metadata.labels where spec.template is one of pods (empty without labels), else NULL */
        char *selector;     /* spec.selector in text form, "" where there is none; not of TARGET_FORM_ANY */
        char *failure;      /* why it makes no pods, by its conditions, or NULL */
};

/* Returns 0, -EBADMSG when it is not as the API promises, or -ENOMEM. */
int target_object_read(const json_t *source, enum target_form form, struct target_object **ret_object);
struct target_object *target_object_free(struct target_object *object); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct target_object, target_object_free)

/* A LabelSelector ({"matchLabels": …, "matchExpressions": …}, or NULL) in text form: "app=web,tier in (a,b),!old". "" selects
 * everything, as {} does. Returns 0, -EBADMSG for an unknown operator or a missing part, or -ENOMEM. */
int label_selector_text(const json_t *selector, char **ret_text);
/* The labels that everything selected by @text has: those with "=" or "==". Returns a new object, or NULL: out of memory. */
json_t *label_selector_labels(const char *text);
