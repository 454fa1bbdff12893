/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: attaches a program to functions of a library's file, for one process or for all.
 *
 * One link for all functions where the kernel has it (uprobe_multi, 6.6; values by hand: libbpf 1.1 does not know it yet), else a perf
 * event and a link for each. Kernels 6.6 to 6.9 had uprobe_multi see only the calls of a process's first thread; such a one is found
 * out by trying, and perf links are used. Needs CAP_BPF and CAP_PERFMON, and 5.15 (cookies).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum hook_method { HOOK_METHOD_MULTI, HOOK_METHOD_PERF, HOOK_METHOD_MAX };

enum { HOOK_ATTACH_MULTI = 48 }; /* BPF_TRACE_UPROBE_MULTI: a program's expected attach type for HOOK_METHOD_MULTI */

/* Returns 1 where it works, 0 where it does not, or -errno when that could not be found out (-EPERM: not allowed to). */
int hook_method_probe(enum hook_method method);
const char *hook_method_to_string(enum hook_method method); /* "uprobe-multi", "perf" */

struct hook {
        int program_fd;          /* loaded for the method */
        bool returns;            /* when the functions return, not when they are called */
        int library_fd;          /* the file, open for reading */
        const uint64_t *offsets; /* in it, of the instructions; the first of a function when @returns */
        size_t n_offsets;
        pid_t pid;       /* of the process, 0: all */
        uint64_t cookie; /* for the program */
};

struct hook_links { /* descriptors: closing them detaches, which may take long (see detacher.h). Starts zeroed */
        int *fds;
        size_t n;
};

/* Adds to @links. Returns 0, -EINVAL or -EOPNOTSUPP when an instruction can't be probed, -EMFILE, or -errno; some links may have been
 * added all the same. */
int hook_attach(enum hook_method method, const struct hook *hook, struct hook_links *links);
