/* SPDX-License-Identifier: Apache-2.0 */
/* Pods by their cgroups and cgroups by their pods, as kubelets and container runtimes name them:
 *
 *   systemd   kubepods.slice/[kubepods-QOS.slice/]kubepods-[QOS-]podUID.slice/[cri-containerd-|crio-|docker-]ID.scope
 *   cgroupfs  kubepods/[QOS/]podUID/[crio-]ID
 *
 * QOS is burstable or besteffort, and left out for Guaranteed; a kubelet with a cgroup root has its slices called ROOT.slice/
 * ROOT-kubepods.slice, or ROOT/kubepods. A static pod's UID is the hash of its configuration, 32 hexadecimal digits (the annotation
 * kubernetes.io/config.hash). Below its container a workload names cgroups as it likes, so only the outermost match is believed.
 */
#pragma once

#include <stddef.h>

enum {
        POD_UID_MAX = 37, /* texts with their end */
        CONTAINER_ID_MAX = 65,
};

struct pod_cgroup {
        char uid[POD_UID_MAX];            /* as the API writes it */
        char container[CONTAINER_ID_MAX]; /* "" for the pod's own cgroup, and for one in it that is no container's */
        size_t length;                    /* of the path of the pod's own cgroup, the beginning of what was given */
};

/* Whose cgroup @path is: a path below a cgroup2 mount, with or without the mount point. Returns 0, or -ENOENT for no pod's. Pure. */
int pod_cgroup_parse(const char *path, struct pod_cgroup *ret_pod);

/* The directory of the pod @uid below the cgroup2 directory @root, which need not be a mount point. The caller owns *ret_path. Lists
 * @root and tries a handful of names in each of its directories: some 40 system calls, so that a look for each pod that comes is
 * cheaper than watching the hierarchy. Returns 0, -EINVAL when @uid is none, -ENOENT when there is no such pod (yet), or -errno. */
int pod_cgroup_find(const char *root, const char *uid, char **ret_path);
