/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf/pins.h"

#include <bpf/bpf.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/directory.h"
#include "base/macros.h"

static int pin_path(const char *directory, const char *name, const char *suffix, char ret_path[static PATH_MAX])
{
        int length = snprintf(ret_path, PATH_MAX, "%s/%s%s", directory, name, suffix);

        return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int pins_prepare(const char *directory)
{
        struct statfs filesystem;
        int r;

        r = directory_make(directory, 0700);
        if (r < 0)
                return r;
        if (statfs(directory, &filesystem) < 0)
                return -errno;
        return filesystem.f_type == BPF_FS_MAGIC ? 0 : -ENOTSUP;
}

int pin_open(const char *directory, const char *name)
{
        char path[PATH_MAX];
        int r, fd;

        r = pin_path(directory, name, "", path);
        if (r < 0)
                return r;

        fd = bpf_obj_get(path);
        return fd < 0 ? -errno : fd;
}

int pin_replace(const char *directory, const char *name, int fd)
{
        char path[PATH_MAX], fresh[PATH_MAX];
        int r;

        r = pin_path(directory, name, "", path);
        if (r < 0)
                return r;
        /* A dot in the name of a pin is refused by the kernel. */
        r = pin_path(directory, name, "_new", fresh);
        if (r < 0)
                return r;

        if (unlink(fresh) < 0 && errno != ENOENT)
                return -errno;
        if (bpf_obj_pin(fd, fresh) < 0)
                return -errno;
        if (rename(fresh, path) < 0) {
                r = -errno;
                unlink(fresh);
                return r;
        }
        return 0;
}

int pin_remove(const char *directory, const char *name)
{
        char path[PATH_MAX];
        int r;

        r = pin_path(directory, name, "", path);
        if (r < 0)
                return r;

        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
