/* SPDX-License-Identifier: Apache-2.0 */
/* The text of policy files. */
#pragma once

#include <stddef.h>

#include "base/macros.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

struct file_list {
        char **paths;
        size_t n_paths;
};

void file_list_done(struct file_list *list);
/* @path alone, or, where it is a directory, the *.yaml and *.yml in it, sorted by name; other directories and hidden files are left
 * out. Returns 0 or -errno. */
int file_list_read(const char *path, struct file_list *ret_list);

/* Reads a whole file. Returns 0, -EFBIG past FILE_BYTES_MAX, or -errno. The caller owns *ret_text. */
int file_read(const char *path, char **ret_text, size_t *ret_length);
