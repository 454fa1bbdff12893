/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kfd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

enum { NODES_MAX = 64 };

static int read_text(const char *path, char *text, size_t size)
{
        _cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, text, size - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return 0;
}

static int read_number(const char *path, uint64_t *ret_number)
{
        char text[32], *end;
        uint64_t number;
        int r;

        r = read_text(path, text, sizeof(text));
        if (r < 0)
                return r;
        number = strtoull(text, &end, 10);
        if (end == text)
                return -EINVAL;
        *ret_number = number;
        return 0;
}

/* A line "drm_render_minor 128" among others. */
static bool node_renders_as(const char *properties, unsigned minor)
{
        char wanted[40];
        size_t length = (size_t)snprintf(wanted, sizeof(wanted), "drm_render_minor %u", minor);
        const char *found = strstr(properties, wanted);

        return found && (found == properties || found[-1] == '\n') && (found[length] == '\n' || found[length] == '\0');
}

/* The driver's own number of the device. */
static int find_gpu_id(const char *root, unsigned render_minor, uint64_t *ret_id)
{
        char path[256], properties[4096];

        for (unsigned node = 0; node < NODES_MAX; node++) {
                int r;

                snprintf(path, sizeof(path), "%s/topology/nodes/%u/properties", root, node);
                r = read_text(path, properties, sizeof(properties));
                if (r == -ENOENT)
                        break;
                if (r < 0)
                        return r;
                if (!node_renders_as(properties, render_minor))
                        continue;
                snprintf(path, sizeof(path), "%s/topology/nodes/%u/gpu_id", root, node);
                return read_number(path, ret_id);
        }
        return -EOPNOTSUPP;
}

int kfd_occupancy(const char *root, pid_t pid, unsigned render_minor, uint32_t *ret_units)
{
        char path[256];
        uint64_t id, units;
        int r;

        snprintf(path, sizeof(path), "%s/proc/%d", root, pid);
        if (access(path, F_OK) < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        r = find_gpu_id(root, render_minor, &id);
        if (r < 0)
                return r;
        snprintf(path, sizeof(path), "%s/proc/%d/stats_%" PRIu64 "/cu_occupancy", root, pid, id);
        r = read_number(path, &units);
        if (r < 0)
                return r == -ENOENT || r == -EINVAL ? -EOPNOTSUPP : r;
        *ret_units = (uint32_t)MIN(units, (uint64_t)UINT32_MAX);
        return 0;
}
