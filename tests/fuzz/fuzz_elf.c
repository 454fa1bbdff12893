/* SPDX-License-Identifier: Apache-2.0 */
/* What any file with the name of a driver library makes of the ELF reader: it must end soon, with an error or with functions that are
 * in order and within the file's bounds. */
#include <assert.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "gpu/elf_functions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Roles by the first letter, so that the fuzzer need not find names. */
static int role_of(const char *symbol, const void *userdata)
{
        return symbol[0] ? symbol[0] % 4 - 1 : -1;
}

static void check(const struct elf_function *functions, size_t n)
{
        assert(n <= ELF_FUNCTIONS_MAX && (n > 0) == (functions != NULL));
        for (size_t i = 0; i < n; i++) {
                assert(functions[i].offset <= (uint64_t)INT64_MAX + 64 && functions[i].role < 3);
                assert(i == 0 || functions[i - 1].offset < functions[i].offset);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(close_fdp) int fd = memfd_create("fuzz", MFD_CLOEXEC);
        _cleanup_(freep) struct elf_function *functions = NULL;
        size_t n;

        assert(fd >= 0);
        if (write(fd, data, size) != (ssize_t)size)
                return 0;
        if (elf_functions_read(fd, role_of, NULL, &functions, &n) == 0)
                check(functions, n);
        return 0;
}
