/* SPDX-License-Identifier: Apache-2.0 */
/* AMD's compute driver in sysfs: which compute units a process occupies now, and which render node a device is. Queues of user space
 * bypass the DRM scheduler, so that engine times in fdinfo do not show them. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* @root is /sys/class/kfd/kfd. Adds up the units that @pid occupies on the device of render node @render_minor (128 for renderD128).
 * Returns 0, -ESRCH when the process does not use the driver, -EOPNOTSUPP when the device does not tell, or -errno. */
int kfd_occupancy(const char *root, pid_t pid, unsigned render_minor, uint32_t *ret_units);
