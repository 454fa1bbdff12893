/* SPDX-License-Identifier: Apache-2.0 */
/* Finding cgroup2: where it is mounted, and which cgroup an id from the kernel names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The cgroup2 mount point of this mount namespace: one that shows the whole hierarchy if there is one, else the first. The caller
 * owns *ret_path. Returns 0, -ENOENT when none is mounted, or -errno. */
int cgroup_find_root(char **ret_path);
int cgroup_find_root_in(FILE *mountinfo, char **ret_path); /* the same, from text in the form of proc_pid_mountinfo(5) */

/* The path of cgroup @id (as bpf_get_current_cgroup_id() gives it) below the mount point @root, as /proc/PID/cgroup shows it: "/" or
 * "/user.slice". Without the right to open by handle it walks at most 16 levels and 65536 cgroups. Returns 0, -ENOENT for a cgroup
 * that is gone or not below @root, or -errno. */
int cgroup_path_by_id(const char *root, uint64_t id, char **ret_path);

/* Makes the cgroup @path and the ones above it, as far as they are missing. Returns 0, -EINVAL when @path is not on a cgroup2 mount,
 * or -errno. */
int cgroup_make(const char *path);

/* Whether the path @inner is @outer or below it, by their names alone. */
bool cgroup_is_inside(const char *inner, const char *outer);

/* The id of the cgroup2 directory @cgroup: kernfs numbers inodes by cgroup ids on 64-bit machines. Returns 0, -ENOTDIR or -errno. */
int cgroup_id(const char *cgroup, uint64_t *ret_id);
