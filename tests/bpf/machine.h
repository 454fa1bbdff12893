/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of its own for a test program: a network namespace and a bpffs that end with it. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#define MACHINE_BPFFS "/tmp/pins/lull"

/* Runs a command of the shell, which must succeed. */
static inline void shell(const char *format, ...)
{
        char command[512];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(command, sizeof(command), format, arguments);
        va_end(arguments);
        if (system(command) != 0)
                fail_msg("failed: %s", command);
}

static inline void machine_enter(void)
{
        assert_int_equal(unshare(CLONE_NEWNET | CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), 0);
        shell("mkdir /tmp/pins && mount -t bpf bpf /tmp/pins && ip link set lo up");
}
