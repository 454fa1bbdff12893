/* SPDX-License-Identifier: Apache-2.0 */
/* Directories on the file system. */
#pragma once

#include <sys/types.h>

/* Makes @path and the directories above it, as far as they are missing; @mode is for those it makes. Returns 0, -ENOTDIR when something
 * else stands there, or -errno. */
int directory_make(const char *path, mode_t mode);
