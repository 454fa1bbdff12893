/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet of this node: the cgroup that its probes come from. */
#pragma once

/* The cgroup below the cgroup2 directory @root of a process of root's that is called "kubelet" and is in no pod. @proc is a mount of
 * procfs that shows the host's processes. The caller owns *ret_cgroup. Reads the names of all processes and the lists of processes in
 * all cgroups but the pods': some milliseconds, so once a start, and again when it is not found or its directory is gone.
 *
 * Returns 0; -ENOENT when there is none; -EBUSY when pods or everybody else share its cgroup, whose connections then say nothing; or
 * -errno. */
int kubelet_cgroup_find(const char *proc, const char *root, char **ret_cgroup);
