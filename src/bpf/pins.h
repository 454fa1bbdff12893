/* SPDX-License-Identifier: Apache-2.0 */
/* Pins: names on a bpffs that keep maps and links alive without a process. */
#pragma once

/* Makes @directory, its parents too, and sees to it that it is on a bpffs. Returns 0, -ENOTSUP where it is not, or -errno. */
int pins_prepare(const char *directory);

/* The new fd of what is pinned under @name, or -ENOENT, or -errno. */
int pin_open(const char *directory, const char *name);

/* Pins the map or link @fd under @name. What was pinned there before is replaced in one step: nobody sees the name missing. */
int pin_replace(const char *directory, const char *name, int fd);

/* Returns 0, also where nothing was pinned, or -errno. */
int pin_remove(const char *directory, const char *name);
