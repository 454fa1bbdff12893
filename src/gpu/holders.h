/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which GPU open: the descriptors of processes, looked through.
 *
 * Costs a system call a descriptor, some 2 µs each. A process that ends meanwhile is passed over; one that may not be looked at makes
 * the whole answer unknown. Nothing is kept.
 */
#pragma once

#include "gpu/devices.h"

/* Called for each descriptor that is a node of a GPU's driver. */
typedef void (*gpu_holder_found)(pid_t pid, int fd, const struct gpu_node *node, void *userdata);

enum { GPU_HOLDERS_PROCESSES_MAX = 32768 };

/* @proc is /proc. Returns 0, -ESRCH when the process is gone, or -errno. */
int gpu_holders_of_process(const char *proc, const struct gpu_majors *majors, pid_t pid, gpu_holder_found found, void *userdata);

/* The processes of the cgroup2 directory @cgroup, with @below those of all below it too, sorted. The caller owns *ret_pids. Returns how many; -E2BIG past
 * GPU_HOLDERS_PROCESSES_MAX, or -errno. */
int gpu_cgroup_processes(const char *cgroup, bool below, pid_t **ret_pids);
/* All processes but the kernel's own, which have no files, sorted. */
int gpu_all_processes(const char *proc, pid_t **ret_pids);

/* The cgroup2 path of a process, as in /proc/PID/cgroup: "/user.slice". The caller owns *ret_path. Returns 0, -ESRCH or -errno. */
int gpu_process_cgroup(const char *proc, pid_t pid, char **ret_path);
