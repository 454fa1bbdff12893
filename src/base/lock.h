/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time: a lock file.
 *
 * The lock is the process's own (fcntl(2), F_SETLK): it ends with the process, and a child that was just made and has not run its
 * command yet does not share it, as it would a socket or an flock(2). Only one descriptor of the file may be open in a process.
 */
#pragma once

/* Takes the lock on @path, a file made if missing. Returns 0, -EBUSY while another process has it, or -errno. Closing *ret_fd gives it
 * back. */
int lock_take(const char *path, int *ret_fd);
