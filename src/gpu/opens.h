/* SPDX-License-Identifier: Apache-2.0 */
/* Opens: whose processes open a GPU's device node, told as it happens.
 *
 * A cgroup's device program is asked when a process below that cgroup opens a device. Ours notes those of GPU drivers and always
 * allows; other programs there (those of container runtimes and systemd) are asked as before, for links are attached beside them. A
 * link ends with its descriptor, so that nothing is left of it when the daemon dies.
 *
 * Told is the beginning of an open, which takes the driver from microseconds to seconds, and also what only asks whether it might open
 * (access(2)). Descriptors that are passed on to another cgroup's process are not opened there. So this says when to look, not what is
 * to be seen. Needs CAP_BPF and CAP_NET_ADMIN, and 5.8 (ring buffer).
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/macros.h"
#include "gpu/devices.h"
#include "gpu_opens_wire.h"

struct gpu_opens;

/* A process in the cgroup of that id, and not in one below, opens a device. Called once a second a cgroup at most. */
typedef void (*gpu_opened)(uint64_t cgroup, void *userdata);

/* Returns 0 or -errno: -EPERM when not allowed to, -EINVAL on kernels without such programs. */
int gpu_opens_new(sd_event *event, gpu_opened opened, void *userdata, struct gpu_opens **ret_opens);
struct gpu_opens *gpu_opens_free(struct gpu_opens *opens); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct gpu_opens, gpu_opens_free)

/* From now on opens of these drivers' devices are told; before the first call none is. Returns 0 or -errno. */
int gpu_opens_set_majors(struct gpu_opens *opens, const struct gpu_majors *majors);

/* Watches the processes of a cgroup2 directory and all below it. Returns the link, which ends when it is closed; -EPERM also where a
 * program that suffers no others is attached to that cgroup, or to one above; or -errno. */
int gpu_opens_attach(const struct gpu_opens *opens, const char *cgroup);

uint64_t gpu_opens_seen(const struct gpu_opens *opens); /* opens, told or not */
uint64_t gpu_opens_lost(const struct gpu_opens *opens); /* those that should have been told, but there was no room */
