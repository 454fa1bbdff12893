/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/driver_library.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

struct function { /* a pattern: "*" at its end stands for anything, the variants of a function among it (_v2, _ptsz, Async) */
        const char *pattern;
        enum driver_role role;
};

/* The choke point of everything above it: cudart, also where it is linked statically, asks cuGetProcAddress for these. cuLaunch* are
 * kernels, cooperative ones and host functions. */
static const struct function nvidia[] = {
        { "cuLaunch*", DRIVER_ROLE_SUBMIT },
        { "cuGraphLaunch*", DRIVER_ROLE_SUBMIT },
        { "cuMemcpy*", DRIVER_ROLE_SUBMIT },
        { "cuMemset*", DRIVER_ROLE_SUBMIT },
        { "cuMemPrefetchAsync*", DRIVER_ROLE_SUBMIT },
        { "cuMemPrefetchBatchAsync*", DRIVER_ROLE_SUBMIT },
        { "cuStreamSynchronize*", DRIVER_ROLE_WAIT },
        { "cuCtxSynchronize*", DRIVER_ROLE_WAIT },
        { "cuEventSynchronize*", DRIVER_ROLE_WAIT },
        { "cuInit", DRIVER_ROLE_INITIALISE },
        { "cuDevicePrimaryCtxRetain*", DRIVER_ROLE_INITIALISE },
        { "cuCtxCreate*", DRIVER_ROLE_INITIALISE },
        {},
};

/* Programs seldom call hipInit; __hipRegisterFatBinary runs before the main() of each that has kernels. */
static const struct function amd[] = {
        { "hipLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipModuleLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipExtLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipExtModuleLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipHccModuleLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipDrvLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipGraphLaunch*", DRIVER_ROLE_SUBMIT },
        { "hipMemcpy*", DRIVER_ROLE_SUBMIT },
        { "hipDrvMemcpy*", DRIVER_ROLE_SUBMIT },
        { "hipMemset*", DRIVER_ROLE_SUBMIT },
        { "hipMemPrefetchAsync*", DRIVER_ROLE_SUBMIT },
        { "hipStreamSynchronize*", DRIVER_ROLE_WAIT },
        { "hipDeviceSynchronize*", DRIVER_ROLE_WAIT },
        { "hipCtxSynchronize*", DRIVER_ROLE_WAIT },
        { "hipEventSynchronize*", DRIVER_ROLE_WAIT },
        { "hipInit", DRIVER_ROLE_INITIALISE },
        { "hipCtxCreate*", DRIVER_ROLE_INITIALISE },
        { "__hipRegisterFatBinary", DRIVER_ROLE_INITIALISE },
        {},
};

/* Appending to an immediate command list submits; to another list it only records, which is taken for a submission too. */
static const struct function intel[] = {
        { "zeCommandQueueExecuteCommandLists*", DRIVER_ROLE_SUBMIT },
        { "zeCommandListImmediateAppendCommandLists*", DRIVER_ROLE_SUBMIT },
        { "zeCommandListAppendLaunch*", DRIVER_ROLE_SUBMIT },
        { "zeCommandListAppendMemory*", DRIVER_ROLE_SUBMIT },
        { "zeCommandListAppendImage*", DRIVER_ROLE_SUBMIT },
        { "zeCommandQueueSynchronize", DRIVER_ROLE_WAIT },
        { "zeCommandListHostSynchronize", DRIVER_ROLE_WAIT },
        { "zeFenceHostSynchronize", DRIVER_ROLE_WAIT },
        { "zeEventHostSynchronize", DRIVER_ROLE_WAIT },
        { "zeInit*", DRIVER_ROLE_INITIALISE },
        { "zeContextCreate*", DRIVER_ROLE_INITIALISE },
        {},
};

static const struct vendor {
        const char *name;
        const char *library; /* its file's name, a version may follow */
        const struct function *functions;
} vendors[] = {
        [GPU_VENDOR_NVIDIA] = { "nvidia", "libcuda.so", nvidia },
        [GPU_VENDOR_AMD] = { "amd", "libamdhip64.so", amd },
        [GPU_VENDOR_INTEL] = { "intel", "libze_loader.so", intel },
};
static_assert(ELEMENTSOF(vendors) == GPU_VENDOR_MAX, "every vendor has a row");

int driver_library_vendor(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        for (int i = 0; i < GPU_VENDOR_MAX; i++) {
                size_t length = strlen(vendors[i].library);

                if (strncmp(name, vendors[i].library, length) == 0 && (name[length] == '\0' || name[length] == '.'))
                        return i;
        }
        return -1;
}

static bool matches(const char *pattern, const char *symbol)
{
        size_t length = strcspn(pattern, "*");

        return strncmp(pattern, symbol, length) == 0 && (pattern[length] == '*' || symbol[length] == '\0');
}

int driver_function_role(enum gpu_vendor vendor, const char *symbol)
{
        for (const struct function *function = vendors[vendor].functions; function->pattern; function++)
                if (matches(function->pattern, symbol))
                        return (int)function->role;
        return -1;
}

const char *gpu_vendor_to_string(enum gpu_vendor vendor)
{
        return vendors[vendor].name;
}
