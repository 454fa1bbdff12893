/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/stream.h"

#include "kube/buffer.h"
#include "kube/scan.h"

struct kube_stream {
        int (*object)(const json_t *object, void *userdata);
        void *userdata;
        size_t object_max;
        struct kube_scan scan;
        struct kube_buffer buffer; /* the beginning of an object that is not complete */
        int failed;
};

int kube_stream_new(size_t object_max, int (*object)(const json_t *object, void *userdata), void *userdata,
                    struct kube_stream **ret_stream)
{
        struct kube_stream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return -ENOMEM;
        stream->object = object;
        stream->userdata = userdata;
        stream->object_max = object_max;
        *ret_stream = stream;
        return 0;
}

struct kube_stream *kube_stream_free(struct kube_stream *stream)
{
        if (!stream)
                return NULL;
        kube_buffer_done(&stream->buffer);
        free(stream);
        return NULL;
}

static int object_complete(struct kube_stream *stream)
{
        json_t *object = json_loadb(stream->buffer.data, stream->buffer.length, JSON_ALLOW_NUL, NULL);
        int r;

        kube_buffer_clear(&stream->buffer);
        if (!object)
                return -EBADMSG;
        r = stream->object(object, stream->userdata);
        json_decref(object);
        return r < 0 ? r : 0;
}

/* Takes what belongs to the object that is open or begins here. Returns how many bytes that were, or -errno. */
static ssize_t object_take(struct kube_stream *stream, const char *data, size_t length)
{
        size_t taken;
        int r;

        if (stream->scan.depth == 0 && *data != '{')
                return -EBADMSG;

        taken = kube_scan_until(&stream->scan, data, length, 0);
        r = kube_buffer_append(&stream->buffer, data, taken, stream->object_max);
        if (r >= 0 && stream->scan.depth == 0)
                r = object_complete(stream);
        return r < 0 ? r : (ssize_t)taken;
}

int kube_stream_feed(struct kube_stream *stream, const char *data, size_t length)
{
        while (length > 0 && stream->failed == 0) {
                ssize_t taken = 1;

                if (stream->scan.depth > 0 || !kube_scan_is_space(*data))
                        taken = object_take(stream, data, length);
                if (taken < 0) {
                        stream->failed = (int)taken;
                        break;
                }
                data += taken;
                length -= (size_t)taken;
        }
        return stream->failed;
}

int kube_stream_end(const struct kube_stream *stream)
{
        if (stream->failed < 0)
                return stream->failed;
        return stream->scan.depth > 0 ? -EPIPE : 0;
}
