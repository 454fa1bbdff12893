/* SPDX-License-Identifier: Apache-2.0 */
#include "target/output.h"

#include <fcntl.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#include "base/macros.h"

static int open_journal(const char *name)
{
        _cleanup_(freep) char *identifier = NULL;

        if (asprintf(&identifier, "lull-%s", name) < 0) {
                identifier = NULL;
                return -ENOMEM;
        }
        return sd_journal_stream_fd(identifier, LOG_INFO, 1);
}

int output_open(const char *name, const char *log_file, int *ret_fd)
{
        int fd;

        if (log_file) {
                fd = open(log_file, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_CLOEXEC, 0640);
        } else {
                fd = open_journal(name);
                if (fd < 0)
                        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        }
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}
