/* SPDX-License-Identifier: Apache-2.0 */
/* How deep inside of objects, lists and strings a byte of JSON is. Knows no more than that: whether it is JSON at all is for the
 * parser to say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kube_scan {
        unsigned depth;
        bool in_string;
        bool escaped; /* the last byte was a backslash */
};

static inline bool kube_scan_is_space(char byte)
{
        return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline void kube_scan_byte(struct kube_scan *scan, char byte)
{
        if (scan->in_string) {
                if (scan->escaped)
                        scan->escaped = false;
                else if (byte == '\\')
                        scan->escaped = true;
                else if (byte == '"')
                        scan->in_string = false;
                return;
        }
        if (byte == '"')
                scan->in_string = true;
        else if (byte == '{' || byte == '[')
                scan->depth++;
        else if ((byte == '}' || byte == ']') && scan->depth > 0)
                scan->depth--;
}

/* Goes on until the depth is @depth again or the bytes are at their end. Returns how many it took. */
static inline size_t kube_scan_until(struct kube_scan *scan, const char *data, size_t length, unsigned depth)
{
        for (size_t i = 0; i < length; i++) {
                kube_scan_byte(scan, data[i]);
                if (scan->depth == depth && !scan->in_string)
                        return i + 1;
        }
        return length;
}
