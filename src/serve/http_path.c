/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http_path.h"

#include <string.h>

#include "base/macros.h"

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -EINVAL;
}

int http_percent_decode(char *text)
{
        char *to = text;

        for (const char *from = text; *from; from++) {
                int high, low;

                if (*from != '%') {
                        *to++ = *from;
                        continue;
                }
                high = hex_digit(from[1]);
                low = high < 0 ? high : hex_digit(from[2]);
                if (low < 0 || (high == 0 && low == 0))
                        return -EINVAL;
                *to++ = (char)(high << 4 | low);
                from += 2;
        }
        *to = '\0';
        return 0;
}

static int segment_take(const char **path, char **ret_segment)
{
        _cleanup_(freep) char *segment = NULL;
        size_t length = strcspn(*path, "/");
        int r;

        if (length == 0)
                return -ENOENT;
        segment = strndup(*path, length);
        if (!segment)
                return -ENOMEM;
        r = http_percent_decode(segment);
        if (r < 0)
                return r;

        *path += length;
        *ret_segment = TAKE_PTR(segment);
        return 0;
}

int http_path_match(const char *pattern, const char *path, char *ret_segments[static HTTP_SEGMENTS_MAX])
{
        char *segments[HTTP_SEGMENTS_MAX] = { NULL };
        int n = 0, r = 0;

        while (r == 0 && *pattern) {
                if (strncmp(pattern, "{}", 2) == 0 && n < HTTP_SEGMENTS_MAX) {
                        r = segment_take(&path, &segments[n]);
                        if (r == 0)
                                n++;
                        pattern += 2;
                } else if (*pattern++ != *path++) {
                        r = -ENOENT;
                }
        }
        if (r == 0 && *path)
                r = -ENOENT;

        if (r < 0) {
                while (n > 0)
                        free(segments[--n]);
                return r;
        }
        memcpy(ret_segments, segments, sizeof(segments));
        return n;
}
