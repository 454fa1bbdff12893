/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum { PIECE_BYTES = 16 * 1024, WINDOW_BITS_GZIP_ONLY = 16 + MAX_WBITS /* zlib.h, inflateInit2() */ };

struct kube_gunzip {
        z_stream zlib;
        bool within; /* a member */
};

static int error_of(int status)
{
        return status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int kube_gunzip_new(struct kube_gunzip **ret_gunzip)
{
        struct kube_gunzip *gunzip = calloc(1, sizeof(*gunzip));

        if (!gunzip)
                return -ENOMEM;
        if (inflateInit2(&gunzip->zlib, WINDOW_BITS_GZIP_ONLY) != Z_OK) {
                free(gunzip);
                return -ENOMEM;
        }
        *ret_gunzip = gunzip;
        return 0;
}

struct kube_gunzip *kube_gunzip_free(struct kube_gunzip *gunzip)
{
        if (!gunzip)
                return NULL;
        inflateEnd(&gunzip->zlib);
        free(gunzip);
        return NULL;
}

/* One piece. Returns whether there may be more without further input, or -errno. */
static int inflate_piece(struct kube_gunzip *gunzip, int (*output)(const char *data, size_t length, void *userdata), void *userdata)
{
        unsigned char piece[PIECE_BYTES];
        z_stream *zlib = &gunzip->zlib;
        size_t length;
        int status, r;

        zlib->next_out = piece;
        zlib->avail_out = sizeof(piece);
        gunzip->within = true;
        status = inflate(zlib, Z_NO_FLUSH);
        /* Z_BUF_ERROR: it needs more input, and is none of zlib's errors that last */
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
                return error_of(status);

        length = sizeof(piece) - zlib->avail_out;
        r = length > 0 ? output((const char *)piece, length, userdata) : 0;
        if (r < 0)
                return r;
        if (status == Z_STREAM_END) {
                gunzip->within = false;
                inflateReset(zlib);
                return zlib->avail_in > 0;
        }
        return status == Z_OK && (zlib->avail_in > 0 || zlib->avail_out == 0);
}

int kube_gunzip_feed(struct kube_gunzip *gunzip, const char *data, size_t length,
                     int (*output)(const char *data, size_t length, void *userdata), void *userdata)
{
        int more = length > 0;

        gunzip->zlib.next_in = (unsigned char *)data;
        gunzip->zlib.avail_in = (unsigned)length;
        while (more > 0)
                more = inflate_piece(gunzip, output, userdata);
        return more;
}

bool kube_gunzip_is_whole(const struct kube_gunzip *gunzip)
{
        return !gunzip->within;
}
