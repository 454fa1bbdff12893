/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are gathered until they are complete, up to a bound. All zeros is an empty buffer. */
#pragma once

#include <stddef.h>

struct kube_buffer {
        char *data;
        size_t length;
        size_t size;
};

/* Returns 0, -EMSGSIZE when there would be more than @max bytes, or -ENOMEM; the buffer is as before then. */
int kube_buffer_append(struct kube_buffer *buffer, const char *data, size_t length, size_t max);
void kube_buffer_clear(struct kube_buffer *buffer); /* empty; what a large object needed is given back */
void kube_buffer_done(struct kube_buffer *buffer);
