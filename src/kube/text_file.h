/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Reads a file that is text, of at most @max bytes; a NUL is put at its end. Returns 0, -EFBIG, -EINVAL for one with a NUL in
 * it, or -errno. */
int kube_text_file_read(const char *path, size_t max, char **ret_text);
