/* SPDX-License-Identifier: Apache-2.0 */
/* A list as the API server sends it, {"kind": …, "metadata": {…}, "items": [{…}, …]}, item by item out of bytes that may be
 * split anywhere.
 *
 * Holds one item at most, and what is around the items (at most KUBE_LIST_FRAME_MAX bytes). An item is handed on as soon as it
 * is complete, so before it is known whether the rest of the list is sound: use them only when kube_list_end() has returned 0.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum { KUBE_LIST_FRAME_MAX = 64 * 1024 };

struct kube_list;

struct kube_list_head {
        const char *resource_version;
        const char *continue_token; /* NULL on the last page */
        int64_t remaining;          /* items after this page; -1 where the server did not say */
};

/* @item borrows; a negative result ends the reading and is returned by feed. Returns 0 or -ENOMEM. */
int kube_list_new(size_t item_max, int (*item)(const json_t *item, void *userdata), void *userdata, struct kube_list **ret_list);
struct kube_list *kube_list_free(struct kube_list *list);
DEFINE_CLEANUP(struct kube_list, kube_list_free)

/* Returns 0, -EBADMSG, -EMSGSIZE, -ENOMEM, or what the callback returned. After a failure everything fails. */
int kube_list_feed(struct kube_list *list, const char *data, size_t length);
/* The bytes are at their end. Returns 0 with a head that lives as long as @list; -EPIPE when there should have been more; or
 * -EBADMSG when it is no list. */
int kube_list_end(struct kube_list *list, struct kube_list_head *ret_head);
