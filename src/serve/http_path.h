/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of requests: percent-decoding and the matching of route patterns. Pure. */
#pragma once

#include <stddef.h>

enum { HTTP_SEGMENTS_MAX = 4 };

/* Decodes %XX in place. Returns 0, or -EINVAL for an incomplete or non-hexadecimal escape and for %00: @text is then undefined. */
int http_percent_decode(char *text);

/* Whether @path, still encoded, has the form of @pattern, where {} stands for one segment, which is not empty. The decoded segments go
 * to @ret_segments, which then owns them. Returns their number, -ENOENT for another path, -EINVAL for an escape that is none, or
 * -ENOMEM. A pattern has at most HTTP_SEGMENTS_MAX of them. */
int http_path_match(const char *pattern, const char *path, char *ret_segments[static HTTP_SEGMENTS_MAX]);
