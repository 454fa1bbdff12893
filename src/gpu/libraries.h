/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: each driver library that processes have mapped, once, by inode: containers mostly share the host's, but may bring copies
 * of their own, and an update leaves a deleted one in use.
 *
 * A library stays open while somebody uses it, so that its inode's number means nothing else. As long, its initialisation functions
 * are probed for every process, whose first use is thereby told at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "gpu/driver_library.h"
#include "gpu/hooks.h"

struct detacher;
struct libraries;
struct mapping;

struct library_id {
        uint64_t device, inode;
};

struct library {
        LIST_ENTRY(library) others;
        struct library_id id;
        char *path; /* as the process that was first found has it */
        bool deleted;
        enum gpu_vendor vendor;
        int fd;
        uint64_t *offsets[DRIVER_ROLE_MAX]; /* of the functions to probe */
        size_t n_offsets[DRIVER_ROLE_MAX];
        size_t n_slow;
        const char *reason;      /* why it can't be probed; NULL */
        struct hook_links links; /* of initialisation */
        unsigned uses;
};

/* @program_fd is the program for initialisations. */
int libraries_new(enum hook_method method, int program_fd, struct detacher *detacher, struct libraries **ret_libraries);
struct libraries *libraries_free(struct libraries *libraries); /* all uses must have ended; accepts NULL, returns NULL */

/* The library behind @mapping, whose use libraries_drop() ends. One that can't be read or probed has a reason. Returns 0, -ESRCH when
 * the process or the mapping is gone, or -ENOMEM. */
int libraries_use(struct libraries *libraries, pid_t pid, const struct mapping *mapping, struct library **ret_library);
void libraries_drop(struct libraries *libraries, struct library *library);

const char *probe_reason(int error); /* for people: why -errno keeps something from being probed */
