/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/macros.h"

enum {
        NVIDIA_DEVICES = 254,    /* minor numbers below that are devices */
        DRM_RENDER_MINORS = 128, /* from there to 191 */
        DRM_MINORS_END = 192,
};

struct gpu_majors gpu_majors_parse(const char *text)
{
        struct gpu_majors majors = { 0 };
        const char *line = strstr(text, "Character devices");

        for (; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                unsigned major;
                char name[64];

                if (strncmp(line, "Block devices", 13) == 0)
                        break;
                if (sscanf(line, " %u %63[^\n]", &major, name) != 2)
                        continue;
                /* Drivers since 550 list "nvidia", "nvidiactl" and "nvidia-modeset" on one number, older ones "nvidia-frontend". */
                if (strcmp(name, "nvidia") == 0 || strcmp(name, "nvidia-frontend") == 0)
                        majors.nvidia = major;
                else if (strcmp(name, "nvidia-uvm") == 0)
                        majors.nvidia_uvm = major;
                else if (strcmp(name, "nvidia-caps") == 0)
                        majors.nvidia_caps = major;
                else if (strcmp(name, "drm") == 0)
                        majors.drm = major;
                else if (strcmp(name, "kfd") == 0)
                        majors.kfd = major;
        }
        return majors;
}

int gpu_majors_read(struct gpu_majors *ret_majors)
{
        _cleanup_(close_fdp) int fd = open("/proc/devices", O_RDONLY | O_CLOEXEC);
        char text[16384];
        size_t length = 0;
        ssize_t n;

        if (fd < 0)
                return -errno;
        while ((n = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
                length += (size_t)n;
        if (n < 0)
                return -errno;
        text[length] = '\0';
        *ret_majors = gpu_majors_parse(text);
        return 0;
}

bool gpu_majors_any(const struct gpu_majors *majors)
{
        return majors->nvidia || majors->drm || majors->kfd;
}

struct gpu_node gpu_node_of(const struct gpu_majors *majors, dev_t rdev)
{
        unsigned major = major(rdev), minor = minor(rdev);

        if (major == 0)
                return (struct gpu_node){ 0 };
        if (major == majors->nvidia)
                return (struct gpu_node){ minor < NVIDIA_DEVICES ? GPU_NODE_NVIDIA : GPU_NODE_CONTROL, minor };
        if (major == majors->drm)
                return (struct gpu_node){ minor < DRM_MINORS_END ? GPU_NODE_DRM : GPU_NODE_NONE, minor };
        if (major == majors->nvidia_uvm || major == majors->nvidia_caps)
                return (struct gpu_node){ GPU_NODE_CONTROL, minor };
        if (major == majors->kfd)
                return (struct gpu_node){ GPU_NODE_KFD, minor };
        return (struct gpu_node){ 0 };
}

static int link_name(const char *path, char *name, size_t size)
{
        char target[PATH_MAX];
        ssize_t n = readlink(path, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        snprintf(name, size, "%.31s", basename(target));
        return 0;
}

/* The render node beside the card, among "card0", "renderD128", "version". */
static int find_render_node(const char *device, unsigned *ret_minor)
{
        char path[PATH_MAX];
        struct dirent *entry;
        int r = -ENODEV;
        DIR *directory;

        snprintf(path, sizeof(path), "%s/drm", device);
        directory = opendir(path);
        if (!directory)
                return errno == ENOENT ? -ENODEV : -errno;
        while (r < 0 && (entry = readdir(directory)))
                if (sscanf(entry->d_name, "renderD%u", ret_minor) == 1)
                        r = 0;
        closedir(directory);
        return r;
}

int gpu_drm_find(const char *root, unsigned major, unsigned minor, struct gpu_drm_device *ret_device)
{
        struct gpu_drm_device found = { .render_minor = minor };
        char device[PATH_MAX / 2], path[PATH_MAX];
        int r;

        snprintf(device, sizeof(device), "%s/dev/char/%u:%u/device", root, major, minor);
        snprintf(path, sizeof(path), "%s/driver", device);
        r = link_name(path, found.driver, sizeof(found.driver));
        if (r < 0)
                return r == -ENOENT ? -ENODEV : r;
        if (strcmp(found.driver, "nvidia") == 0)
                return -ENODEV;
        if (minor < DRM_RENDER_MINORS && (r = find_render_node(device, &found.render_minor)) < 0)
                return r;
        r = link_name(device, found.bus_id, sizeof(found.bus_id));
        if (r < 0)
                return r;
        *ret_device = found;
        return 0;
}

char *gpu_device_name(enum gpu_node_kind kind, unsigned minor, char buffer[static GPU_DEVICE_NAME_MAX])
{
        snprintf(buffer, GPU_DEVICE_NAME_MAX, kind == GPU_NODE_DRM ? "renderD%u" : "nvidia%u", minor);
        return buffer;
}
