/* SPDX-License-Identifier: Apache-2.0 */
/* The query of a URL, put together piece by piece. All zeros is an empty one. */
#pragma once

#include "kube/buffer.h"

struct kube_query {
        struct kube_buffer text;
        int failed;
};

/* Adds name=value, the value percent-encoded; a NULL value adds nothing. A failure is kept for kube_query_text(). */
void kube_query_add(struct kube_query *query, const char *name, const char *value);
/* Returns 0 or -ENOMEM. The text lives as long as @query. */
int kube_query_text(struct kube_query *query, const char **ret_text);
void kube_query_done(struct kube_query *query);
