/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses a GPU by CUDA's driver API alone, without the toolkit: it finds libcuda.so.1 as cudart does, and brings its kernel
 * as PTX. One command a line on stdin, each answered by a line.
 *
 *   facts              what the library and the device are, as JSON
 *   symbols            its functions: name, first bytes, and which export cuGetProcAddress returns for it, as JSON
 *   launch N           launches the kernel N times and waits
 *   pace cuLaunchKernel RATE MS   RATE times a second; the answer: launches, and nanoseconds of CPU
 *   block SECONDS      the device works that long, and a thread waits for it          join  waits for that thread
 *   spin               a thread uses the CPU and nothing else                          stop  ends it
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult, CUdevice;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream;

/* Runs for so many nanoseconds. */
#define KERNEL(version, target)                                                                                                    \
        ".version " version "\n.target " target "\n.address_size 64\n"                                                             \
        ".visible .entry work(.param .u64 nanoseconds)\n{\n"                                                                       \
        " .reg .pred %p; .reg .u64 %begin, %now, %wanted;\n"                                                                       \
        " ld.param.u64 %wanted, [nanoseconds];\n"                                                                                  \
        " setp.eq.u64 %p, %wanted, 0;\n"                                                                                           \
        " @%p bra done;\n"                                                                                                         \
        " mov.u64 %begin, %globaltimer;\n"                                                                                         \
        "again:\n"                                                                                                                 \
        " mov.u64 %now, %globaltimer;\n"                                                                                           \
        " sub.u64 %now, %now, %begin;\n"                                                                                           \
        " setp.lt.u64 %p, %now, %wanted;\n"                                                                                        \
        " @%p bra again;\n"                                                                                                        \
        "done:\n"                                                                                                                  \
        " ret;\n}\n"

/* Old drivers do not know new versions of PTX, and new ones drop old devices. */
static const char *const kernels[] = { KERNEL("6.0", "sm_30"), KERNEL("6.0", "sm_50"), KERNEL("6.3", "sm_75"),
                                       KERNEL("7.0", "sm_80"), KERNEL("7.8", "sm_90"), KERNEL("8.6", "sm_100") };

struct driver {
        void *library;
        CUcontext context;
        CUfunction kernel;
        CUstream stream;
        CUdevice device;
        int version;
        pthread_t waiting, spinning;
        atomic_bool spins;

        CUresult (*launch)(CUfunction kernel, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                           unsigned block_z, unsigned shared, CUstream stream, void **parameters, void **extra);
        CUresult (*synchronise)(CUstream stream);
        CUresult (*set_context)(CUcontext context);
};

static void *find(const struct driver *driver, const char *symbol)
{
        void *function = dlsym(driver->library, symbol);

        if (!function) {
                fprintf(stderr, "driver_api: libcuda.so.1 has no %s\n", symbol);
                exit(1);
        }
        return function;
}

static void require(CUresult result, const char *what)
{
        if (result == 0)
                return;
        fprintf(stderr, "driver_api: %s: CUDA error %d\n", what, result);
        exit(1);
}

#define CALL(driver, symbol, types, ...) require(((CUresult(*) types)find(driver, symbol))(__VA_ARGS__), symbol)

static void load_kernel(struct driver *driver)
{
        CUresult (*load)(CUmodule *module, const void *image) =
                (CUresult(*)(CUmodule *, const void *))find(driver, "cuModuleLoadData");
        CUmodule module = NULL;
        CUresult r = 1;

        for (size_t i = 0; r != 0 && i < sizeof(kernels) / sizeof(kernels[0]); i++)
                r = load(&module, kernels[i]);
        require(r, "cuModuleLoadData");
        CALL(driver, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *), &driver->kernel, module, "work");
}

static void start(struct driver *driver)
{
        driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!driver->library) {
                fprintf(stderr, "driver_api: %s\n", dlerror());
                exit(1);
        }
        CALL(driver, "cuInit", (unsigned), 0);
        CALL(driver, "cuDriverGetVersion", (int *), &driver->version);
        CALL(driver, "cuDeviceGet", (CUdevice *, int), &driver->device, 0);
        CALL(driver, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice), &driver->context, driver->device);
        CALL(driver, "cuCtxSetCurrent", (CUcontext), driver->context);
        load_kernel(driver);
        CALL(driver, "cuStreamCreate", (CUstream *, unsigned), &driver->stream, 0);
        *(void **)&driver->launch = find(driver, "cuLaunchKernel");
        *(void **)&driver->synchronise = find(driver, "cuStreamSynchronize");
        *(void **)&driver->set_context = find(driver, "cuCtxSetCurrent");
}

static void launch(struct driver *driver, uint64_t nanoseconds)
{
        void *parameters[] = { &nanoseconds };

        require(driver->launch(driver->kernel, 1, 1, 1, 1, 1, 1, 0, driver->stream, parameters, NULL), "cuLaunchKernel");
}

static void tell_facts(const struct driver *driver)
{
        char name[128] = "", path[PATH_MAX] = "";
        Dl_info info;
        int n = 0;

        CALL(driver, "cuDeviceGetCount", (int *), &n);
        CALL(driver, "cuDeviceGetName", (char *, int, CUdevice), name, (int)sizeof(name) - 1, driver->device);
        if (dladdr(find(driver, "cuInit"), &info))
                (void)!realpath(info.dli_fname, path);
        printf("{\"library\": \"%s\", \"cuda\": \"%d.%d\", \"devices\": %d, \"device\": \"%s\"}\n", path, driver->version / 1000,
               driver->version % 1000 / 10, n, name);
}

/* What is asked for by the first name; an application gets one of the exports that begin with it, or none of them. */
static const char *const functions[] = {
        "cuInit",        "cuLaunchKernel",      "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
        "cuGraphLaunch", "cuMemcpyHtoD",        "cuMemcpyDtoH",     "cuMemcpyHtoDAsync",
        "cuMemcpyAsync", "cuMemsetD8",          "cuMemsetD8Async",  "cuMemsetD32",
        "cuMemAlloc",    "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize",
        "cuMemFree",     "cuCtxCreate",
};
static const char *const suffixes[] = { "", "_v2", "_v3", "_v4", "_ptsz", "_v2_ptsz", "_ptds", "_v2_ptds" };

typedef CUresult (*get_proc_address)(const char *symbol, void **ret_function, int version, uint64_t flags, int *ret_status);

static void *ask(const struct driver *driver, const char *name, uint64_t flags)
{
        get_proc_address get = (get_proc_address)dlsym(driver->library, "cuGetProcAddress_v2");
        void *function = NULL;

        if (!get) /* before CUDA 12; it takes no status, and an argument too many does no harm */
                get = (get_proc_address)dlsym(driver->library, "cuGetProcAddress");
        if (!get || get(name, &function, driver->version, flags, NULL) != 0)
                return NULL;
        return function;
}

static const char *export_of(const struct driver *driver, const char *name, const void *function, char buffer[static 64])
{
        if (!function)
                return "";
        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                snprintf(buffer, 64, "%s%s", name, suffixes[i]);
                if (dlsym(driver->library, buffer) == function)
                        return buffer;
        }
        return "none";
}

static void tell_symbol(const struct driver *driver, const char *name, const char *suffix, const char **separator)
{
        char symbol[64], legacy[64], per_thread[64];
        const unsigned char *code;

        snprintf(symbol, sizeof(symbol), "%s%s", name, suffix);
        code = dlsym(driver->library, symbol);
        if (!code)
                return;
        printf("%s{\"name\": \"%s\", \"bytes\": \"", *separator, symbol);
        for (int i = 0; i < 16; i++)
                printf("%02x", code[i]);
        printf("\", \"asked\": \"%s\", \"export\": \"%s\", \"per_thread_export\": \"%s\"}", name,
               export_of(driver, name, ask(driver, name, 0), legacy), export_of(driver, name, ask(driver, name, 2), per_thread));
        *separator = ", ";
}

static void tell_symbols(const struct driver *driver)
{
        const char *separator = "";

        printf("[");
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                for (size_t j = 0; j < sizeof(suffixes) / sizeof(suffixes[0]); j++)
                        tell_symbol(driver, functions[i], suffixes[j], &separator);
        puts("]");
}

static uint64_t now_ns(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* In bursts of a millisecond. */
static void pace(struct driver *driver, long rate, long milliseconds)
{
        uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), began = now_ns(CLOCK_MONOTONIC);
        long calls = 0;

        for (long tick = 1; tick <= milliseconds; tick++) {
                uint64_t end = began + (uint64_t)tick * 1000000;
                struct timespec until = { (time_t)(end / 1000000000), (long)(end % 1000000000) };

                for (; calls < rate * tick / 1000; calls++)
                        launch(driver, 0);
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        require(driver->synchronise(driver->stream), "cuStreamSynchronize");
        printf("%ld %llu\n", calls, (unsigned long long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu));
}

static void *wait_for_device(void *userdata)
{
        struct driver *driver = userdata;

        require(driver->set_context(driver->context), "cuCtxSetCurrent");
        require(driver->synchronise(driver->stream), "cuStreamSynchronize");
        return NULL;
}

/* A second each: a device with a display ends longer ones. */
static void block(struct driver *driver, long seconds)
{
        while (seconds-- > 0)
                launch(driver, 1000000000);
        if (pthread_create(&driver->waiting, NULL, wait_for_device, driver) != 0)
                abort();
        puts("blocked");
}

static void *spin(void *userdata)
{
        struct driver *driver = userdata;

        while (atomic_load(&driver->spins))
                ;
        return NULL;
}

static void obey(struct driver *driver, const char *command, const char *what, long number, long other)
{
        if (strcmp(command, "facts") == 0) {
                tell_facts(driver);
        } else if (strcmp(command, "symbols") == 0) {
                tell_symbols(driver);
        } else if (strcmp(command, "launch") == 0) {
                for (long n = atol(what); n > 0; n--)
                        launch(driver, 0);
                require(driver->synchronise(driver->stream), "cuStreamSynchronize");
                puts("launched");
        } else if (strcmp(command, "pace") == 0) {
                pace(driver, number, other);
        } else if (strcmp(command, "block") == 0) {
                block(driver, atol(what));
        } else if (strcmp(command, "join") == 0) {
                pthread_join(driver->waiting, NULL);
                puts("joined");
        } else if (strcmp(command, "spin") == 0) {
                atomic_store(&driver->spins, true);
                if (pthread_create(&driver->spinning, NULL, spin, driver) != 0)
                        abort();
                puts("spinning");
        } else if (strcmp(command, "stop") == 0) {
                atomic_store(&driver->spins, false);
                pthread_join(driver->spinning, NULL);
                puts("stopped");
        } else {
                abort();
        }
}

int main(void)
{
        struct driver driver = { 0 };
        char line[256];

        start(&driver);
        puts("ready");
        fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                char command[16] = "", what[64] = "";
                long number = 0, other = 0;

                sscanf(line, "%15s %63s %ld %ld", command, what, &number, &other);
                obey(&driver, command, what, number, other);
                fflush(stdout);
        }
        return 0;
}
