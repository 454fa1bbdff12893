/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects one after the other, as a watch sends them, out of bytes that may be split anywhere.
 *
 * Holds the bytes of one object at most, and that object once it is complete. Between objects only white space is accepted.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/macros.h"

struct kube_stream;

/* @object borrows; a negative result ends the reading and is returned by feed. Returns 0 or -ENOMEM. */
int kube_stream_new(size_t object_max, int (*object)(const json_t *object, void *userdata), void *userdata,
                    struct kube_stream **ret_stream);
struct kube_stream *kube_stream_free(struct kube_stream *stream);
DEFINE_CLEANUP(struct kube_stream, kube_stream_free)

/* Returns 0, -EBADMSG for what is no JSON object, -EMSGSIZE for one longer than @object_max, -ENOMEM, or what the callback
 * returned. After a failure everything fails. */
int kube_stream_feed(struct kube_stream *stream, const char *data, size_t length);
/* The bytes are at their end. Returns 0, or -EPIPE inside of an object. */
int kube_stream_end(const struct kube_stream *stream);
