/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the bytes of a watch: the same objects and the same end however they are split, no crash and no leak. */
#include <assert.h>
#include <stdint.h>

#include "kube/status.h"
#include "kube/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OBJECT_MAX = 4096 };

struct seen {
        size_t objects, members;
};

static int count(const json_t *object, void *userdata)
{
        struct seen *seen = userdata;
        struct kube_status status;

        assert(json_is_object(object));
        seen->objects++;
        seen->members += json_object_size(object);
        kube_status_read(json_object_get(object, "object"), &status);
        assert(status.code < 1000 && status.retry_after_ns <= KUBE_RETRY_AFTER_MAX_NS);
        return seen->objects > 100 ? -ECANCELED : 0;
}

/* @step 0: all at once. Returns what feed and end said. */
static int read_in_steps(const char *data, size_t size, size_t step, struct seen *seen)
{
        _cleanup_(kube_stream_freep) struct kube_stream *stream = NULL;
        int r = 0;

        if (kube_stream_new(OBJECT_MAX, count, seen, &stream) < 0)
                abort();
        for (size_t at = 0; at < size && r == 0; at += step ? step : size)
                r = kube_stream_feed(stream, data + at, step ? MIN(step, size - at) : size);
        return r < 0 ? r : kube_stream_end(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct seen whole = { 0 }, bytes = { 0 }, pieces = { 0 };
        int r = read_in_steps((const char *)data, size, 0, &whole);

        assert(r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -EPIPE || r == -ECANCELED);
        assert(read_in_steps((const char *)data, size, 1, &bytes) == r);
        assert(read_in_steps((const char *)data, size, 7, &pieces) == r);
        assert(whole.objects == bytes.objects && whole.members == bytes.members);
        assert(whole.objects == pieces.objects && whole.members == pieces.members);
        return 0;
}
