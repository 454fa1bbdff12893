/* SPDX-License-Identifier: Apache-2.0 */
/* ELF functions: where in a shared library's file the functions of interest begin, from its dynamic symbols.
 *
 * The file is anybody's, and may change or shrink while it is read. So it is read and never mapped (a mapped file that shrinks ends
 * its reader), everything in it is checked, and what it can make us allocate and look through is bounded; past a bound nothing is
 * returned, for half of a library's functions would be half a truth.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ELF_FUNCTIONS_MAX = 512,      /* distinct places in one library */
        ELF_SYMBOLS_MAX = 256 * 1024, /* libamdhip64 has 1,500, LLVM itself 40,000 */
        ELF_STRINGS_MAX = 32 * 1024 * 1024,
        ELF_SECTIONS_MAX = 1024,
        ELF_SEGMENTS_MAX = 64,
        ELF_NAME_MAX = 128, /* a longer symbol is none of interest */
};

struct elf_function {
        uint64_t offset; /* in the file, of the instruction to probe */
        uint8_t role;    /* as selected */
        bool slow;       /* a probe there costs ten times as much (see prologue.h) */
};

/* The role of the function @symbol, or -1 when it is of no interest. The name has no version ("cuMemcpyHtoD_v2", "cuInit"). */
typedef int (*elf_role_function)(const char *symbol, const void *userdata);

/* Functions by offset, each once, in ascending order; of one with several roles the lowest counts. The caller owns *ret_functions, which is
 * NULL when there are none. Returns 0, -ENOEXEC for what is no shared library of this machine, -EBADMSG for a malformed one, -E2BIG
 * past a bound, -ENOMEM, or -errno. */
int elf_functions_read(int fd, elf_role_function role_of, const void *userdata, struct elf_function **ret_functions,
                       size_t *ret_n_functions);
