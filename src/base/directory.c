/* SPDX-License-Identifier: Apache-2.0 */
#include "base/directory.h"

#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"

static int make_one(const char *path, mode_t mode)
{
        struct stat existing;

        if (mkdir(path, mode) == 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        if (stat(path, &existing) < 0)
                return -errno;
        return S_ISDIR(existing.st_mode) ? 0 : -ENOTDIR;
}

int directory_make(const char *path, mode_t mode)
{
        _cleanup_(freep) char *copy = strdup(path);
        int r;

        if (!copy)
                return -ENOMEM;

        for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                r = make_one(copy, mode);
                if (r < 0)
                        return r;
                *slash = '/';
        }
        return make_one(copy, mode);
}
