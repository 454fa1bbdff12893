/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/buffer.h"

#include <string.h>

#include "base/macros.h"

enum { SIZE_MIN = 4096, SIZE_KEPT = 64 * 1024 };

static int buffer_grow(struct kube_buffer *buffer, size_t wanted)
{
        size_t size = MAX(buffer->size, (size_t)SIZE_MIN);
        char *data;

        while (size < wanted)
                size *= 2;
        data = realloc(buffer->data, size);
        if (!data)
                return -ENOMEM;
        buffer->data = data;
        buffer->size = size;
        return 0;
}

int kube_buffer_append(struct kube_buffer *buffer, const char *data, size_t length, size_t max)
{
        int r;

        if (length == 0)
                return 0;
        if (length > max || buffer->length > max - length)
                return -EMSGSIZE;
        if (buffer->length + length > buffer->size) {
                r = buffer_grow(buffer, buffer->length + length);
                if (r < 0)
                        return r;
        }
        memcpy(buffer->data + buffer->length, data, length);
        buffer->length += length;
        return 0;
}

void kube_buffer_clear(struct kube_buffer *buffer)
{
        buffer->length = 0;
        if (buffer->size > SIZE_KEPT)
                kube_buffer_done(buffer);
}

void kube_buffer_done(struct kube_buffer *buffer)
{
        free(buffer->data);
        *buffer = (struct kube_buffer){ 0 };
}
