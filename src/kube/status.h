/* SPDX-License-Identifier: Apache-2.0 */
/* What the API server says when it refuses: a Status object, as the body of an answer or inside a watch. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* No server is believed that wants to be left alone for longer. */
#define KUBE_RETRY_AFTER_MAX_NS (120 * UINT64_C(1000000000))

enum { KUBE_REASON_MAX = 48, KUBE_MESSAGE_MAX = 256 };

struct kube_status {
        unsigned code;                /* of HTTP; 0: there was no answer */
        char reason[KUBE_REASON_MAX]; /* "Expired", "Conflict"; empty where the server gave none */
        char message[KUBE_MESSAGE_MAX];
        uint64_t retry_after_ns; /* details.retryAfterSeconds or the header; 0: none */
        bool too_large;          /* the resourceVersion asked for is newer than what the server knows yet */
};

/* Takes what is there from @object, which may be anything, or NULL. */
void kube_status_read(const json_t *object, struct kube_status *ret_status);

bool kube_status_is_expired(const struct kube_status *status);  /* 410, Expired, Gone */
bool kube_status_is_conflict(const struct kube_status *status); /* 409 with reason Conflict: someone else wrote meanwhile */
