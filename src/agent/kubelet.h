/* SPDX-License-Identifier: Apache-2.0 */
/* Where the node's kubelet is: its connections to pods are probes, which neither wake nor keep awake. */
#pragma once

/* The cgroup2 directory, below the mount point @root, of a process called "kubelet". The agent has to see the host's processes.
 * The caller owns *ret_cgroup. Returns 0, -ENOENT where there is none or its cgroup is not below @root, or -errno. */
int kubelet_find_cgroup(const char *proc, const char *root, char **ret_cgroup);
