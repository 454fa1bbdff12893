/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's own cgroup, by the names that kubelets give: podUID, or kubepods-…-podUID.slice with _ for -. */
#pragma once

/* Looks at most four levels below @root. The caller owns *ret_path. Returns 0, -ENOENT, or -errno. */
int pod_cgroup_find(const char *root, const char *uid, char **ret_path);
