/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/text_file.h"

#include <fcntl.h>
#include <string.h>

#include "base/macros.h"

int kube_text_file_read(const char *path, size_t max, char **ret_text)
{
        _cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_(freep) char *text = malloc(max + 2);
        size_t length = 0;
        ssize_t got;
        char *fitted;

        if (fd < 0)
                return -errno;
        if (!text)
                return -ENOMEM;
        while ((got = read(fd, text + length, max + 1 - length)) != 0) {
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                length += (size_t)got;
                if (length > max)
                        return -EFBIG;
        }
        if (memchr(text, '\0', length))
                return -EINVAL;
        text[length] = '\0';
        fitted = realloc(text, length + 1);
        if (fitted)
                text = fitted;
        *ret_text = TAKE_PTR(text);
        return 0;
}
