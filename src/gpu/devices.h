/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs as device nodes: which open file is one of which device.
 *
 * NVIDIA's nodes have the major number 195 (N is /dev/nvidiaN, 254 and 255 only control), its unified memory and MIG capabilities
 * numbers of the day, DRM's 226, and AMD's compute driver one of the day again: /proc/devices has them all. A DRM card and its render
 * node are one device, named by the render node; one without (a display only) is none, and neither is NVIDIA's, which is /dev/nvidiaN.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum gpu_node_kind {
        GPU_NODE_NONE,
        GPU_NODE_NVIDIA,  /* a device */
        GPU_NODE_DRM,     /* a device */
        GPU_NODE_CONTROL, /* of some driver, for no device in particular */
        GPU_NODE_KFD,     /* likewise, AMD's for compute */
};

struct gpu_majors { /* of drivers that are there; else 0 */
        unsigned nvidia, nvidia_uvm, nvidia_caps, drm, kfd;
};

/* @text is that of /proc/devices. */
struct gpu_majors gpu_majors_parse(const char *text);
/* Those of this machine. Returns 0 or -errno. */
int gpu_majors_read(struct gpu_majors *ret_majors);
bool gpu_majors_any(const struct gpu_majors *majors);

struct gpu_node {
        enum gpu_node_kind kind;
        unsigned minor; /* of a device; a card's is its own */
};

/* What the character device @rdev is. */
struct gpu_node gpu_node_of(const struct gpu_majors *majors, dev_t rdev);

/* A DRM node as the device that it is. @root is /sys. Returns 0, -ENODEV when it is no GPU of interest, or -errno. */
struct gpu_drm_device {
        unsigned render_minor;
        char driver[32]; /* "amdgpu" */
        char bus_id[32]; /* "0000:0b:00.0" */
};
int gpu_drm_find(const char *root, unsigned major, unsigned minor, struct gpu_drm_device *ret_device);

enum { GPU_DEVICE_NAME_MAX = 24 };
/* "nvidia0", "renderD128"; returns @buffer. */
char *gpu_device_name(enum gpu_node_kind kind, unsigned minor, char buffer[static GPU_DEVICE_NAME_MAX]);
