/* SPDX-License-Identifier: Apache-2.0 */
/* Where a target's standard output and error go. */
#pragma once

/* Opens @log_file for appending, made with mode 0640; or, when it is NULL, a stream to the journal under the identifier "lull-NAME",
 * or where there is no journal the daemon's own standard error. Returns 0 and the caller closes *ret_fd, or -errno. */
int output_open(const char *name, const char *log_file, int *ret_fd);
