/* SPDX-License-Identifier: Apache-2.0 */
/* Where lull would probe a driver library: probes LIBRARY prints a line of JSON with how many functions of each role it has, and how many
 * of them are slow. */
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include "base/macros.h"
#include "gpu/driver_library.h"
#include "gpu/elf_functions.h"

static int role_of(const char *symbol, const void *userdata)
{
        return driver_function_role(*(const enum gpu_vendor *)userdata, symbol);
}

static json_t *count(const struct elf_function *functions, size_t n, enum driver_role role)
{
        int n_role = 0, n_slow = 0;

        for (size_t i = 0; i < n; i++) {
                n_role += functions[i].role == role;
                n_slow += functions[i].role == role && functions[i].slow;
        }
        return json_pack("{si, si}", "functions", n_role, "slow", n_slow);
}

int main(int argc, char **argv)
{
        static const char *const roles[] = { "submit", "wait", "initialise" };
        _cleanup_(freep) struct elf_function *functions = NULL;
        _cleanup_(close_fdp) int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
        int vendor = argc == 2 ? driver_library_vendor(argv[1]) : -1, r;
        json_t *json = json_object();
        size_t n;

        if (fd < 0 || vendor < 0) {
                fputs("Usage: probes LIBRARY, which is a GPU's driver library\n", stderr);
                return 2;
        }
        r = elf_functions_read(fd, role_of, &vendor, &functions, &n);
        if (r < 0) {
                fprintf(stderr, "probes: %s: %s\n", argv[1], strerror(-r));
                return 1;
        }
        for (int role = 0; role < DRIVER_ROLE_MAX; role++)
                json_object_set_new(json, roles[role], count(functions, n, role));
        json_dumpf(json, stdout, 0);
        putchar('\n');
        json_decref(json);
        return 0;
}
