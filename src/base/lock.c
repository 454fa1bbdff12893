/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <fcntl.h>

#include "base/macros.h"

int lock_take(const char *path, int *ret_fd)
{
        _cleanup_(close_fdp) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct flock whole_file = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fd < 0)
                return -errno;
        if (fcntl(fd, F_SETLK, &whole_file) < 0)
                return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;

        *ret_fd = TAKE_FD(fd);
        return 0;
}
