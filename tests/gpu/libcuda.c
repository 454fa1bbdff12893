/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcuda.so.1: names, variants and prologues of the driver API, without a device. With STANDIN_SLOW its launches begin
 * with an instruction that the kernel does not emulate.
 *
 * cuInit opens what LULL_CUDA_DEVICE names, as the driver does with its devices. A stream is a timer that expires when its kernels are
 * done; a kernel has one parameter, the nanoseconds that it runs. A call without a function, a stream or
 * room for its answer returns at once.
 */
#include "standin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

DEBUGGER

BODY_FUNCTION long initialise(long flags);
long initialise(long flags)
{
        const char *device = getenv("LULL_CUDA_DEVICE");

        return flags != 0 || (device && open(device, O_RDONLY | O_CLOEXEC) < 0);
}

#define NS 1000000000

/* The stream's timer, later by @ns. */
static long extend(int stream, uint64_t ns)
{
        struct itimerspec timer = { 0 };
        struct timespec now;

        if (timerfd_gettime(stream, &timer) < 0 || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
                return 1;
        ns += (uint64_t)timer.it_value.tv_nsec + (uint64_t)now.tv_nsec;
        timer.it_value.tv_sec += now.tv_sec + (time_t)(ns / NS);
        timer.it_value.tv_nsec = (long)(ns % NS);
        return timerfd_settime(stream, TFD_TIMER_ABSTIME, &timer, NULL) < 0;
}

BODY_FUNCTION long launch(const void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared, void *stream, void **parameters);
long launch(const void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
            unsigned shared, void *stream, void **parameters)
{
        (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z, (void)shared;
        return function && extend((int)(intptr_t)stream, *(const uint64_t *)parameters[0]);
}

/* Only these prologues leave the stack, and with it the later arguments, where the body looks for them. */
#if !defined(__x86_64__) || defined(STANDIN_SLOW)
#define LAUNCH SLOW
#define LAUNCH_BODY standin_return
#else
#define LAUNCH COMPARE
#define LAUNCH_BODY launch
#endif

ENTRY(cuInit, ENDBR_PUSH, initialise)
ENTRY(cuDevicePrimaryCtxRetain, PUSH, standin_return)
ENTRY(cuMemAlloc_v2, PUSH, standin_return)
ENTRY(cuLaunchKernel, LAUNCH, LAUNCH_BODY)
ENTRY(cuLaunchKernel_ptsz, ENDBR_COMPARE, standin_return)
ENTRY(cuLaunchKernelEx, PUSH, standin_return)
ENTRY(cuGraphLaunch, NOP5, standin_return)
ENTRY(cuMemcpyHtoD_v2, ENDBR_PUSH, standin_return)
ENTRY(cuMemsetD8Async, PUSH, standin_return)
ENTRY(cuStreamSynchronize, PUSH, standin_block)
ENTRY(cuCtxSynchronize, ENDBR_PUSH, standin_return)

long cuStreamSynchronize(long stream);

/* A wait inside a wait. */
BODY_FUNCTION long event_synchronize(long argument);
long event_synchronize(long argument)
{
        long result = cuStreamSynchronize(argument);

        __asm__ volatile("" : "+r"(result));
        return result;
}
ENTRY(cuEventSynchronize, ENDBR_COMPARE, event_synchronize)

#ifdef __x86_64__
/* An older name of the same function. */
__asm__(".globl cuMemcpyHtoD\n.type cuMemcpyHtoD,@function\n.set cuMemcpyHtoD,cuMemcpyHtoD_v2\n");
#endif

long cuInit(long flags);
long cuLaunchKernel(long stream);
long cuLaunchKernel_ptsz(long stream);
long cuLaunchKernelEx(long stream);
long cuGraphLaunch(long stream);
long cuMemcpyHtoD_v2(long destination);
long cuMemsetD8Async(long destination);
long cuCtxSynchronize(long unused);
long cuEventSynchronize(long event);

static const struct {
        const char *name;
        long (*function)(long argument), (*per_thread)(long argument);
} table[] = {
        { "cuInit", cuInit, cuInit },
        { "cuLaunchKernel", cuLaunchKernel, cuLaunchKernel_ptsz },
        { "cuLaunchKernelEx", cuLaunchKernelEx, cuLaunchKernelEx },
        { "cuGraphLaunch", cuGraphLaunch, cuGraphLaunch },
        { "cuMemcpyHtoD", cuMemcpyHtoD_v2, cuMemcpyHtoD_v2 },
        { "cuMemsetD8Async", cuMemsetD8Async, cuMemsetD8Async },
        { "cuStreamSynchronize", cuStreamSynchronize, cuStreamSynchronize },
        { "cuCtxSynchronize", cuCtxSynchronize, cuCtxSynchronize },
        { "cuEventSynchronize", cuEventSynchronize, cuEventSynchronize },
};

/* ---- what no probe is on */

EXPORTED int cuDriverGetVersion(int *ret_version);
int cuDriverGetVersion(int *ret_version)
{
        *ret_version = 12040;
        return 0;
}

EXPORTED int cuDeviceGetCount(int *ret_n);
int cuDeviceGetCount(int *ret_n)
{
        if (ret_n)
                *ret_n = 1;
        return 0;
}

EXPORTED int cuDeviceGet(int *ret_device, int number);
int cuDeviceGet(int *ret_device, int number)
{
        *ret_device = number;
        return 0;
}

EXPORTED int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetName(char *name, int size, int device)
{
        (void)device;
        strncpy(name, "Stand-in", (size_t)size);
        return 0;
}

EXPORTED int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
        (void)context;
        return 0;
}

EXPORTED int cuModuleLoadData(void **ret_module, const void *image);
int cuModuleLoadData(void **ret_module, const void *image)
{
        *ret_module = (void *)image;
        return strstr(image, ".entry") ? 0 : 1;
}

EXPORTED int cuModuleGetFunction(void **ret_function, void *module, const char *name);
int cuModuleGetFunction(void **ret_function, void *module, const char *name)
{
        *ret_function = strstr(module, name);
        return *ret_function ? 0 : 1;
}

EXPORTED int cuStreamCreate(void **ret_stream, unsigned flags);
int cuStreamCreate(void **ret_stream, unsigned flags)
{
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

        (void)flags;
        *ret_stream = (void *)(intptr_t)fd;
        return fd < 0 || extend(fd, 1) != 0;
}

enum { PER_THREAD_DEFAULT_STREAM = 1 << 1, ERROR_NOT_FOUND = 500 };

EXPORTED int cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, unsigned long flags, int *ret_status);
int cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, unsigned long flags, int *ret_status)
{
        (void)version;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                if (strcmp(symbol, table[i].name) != 0)
                        continue;
                *ret_function = (void *)(flags & PER_THREAD_DEFAULT_STREAM ? table[i].per_thread : table[i].function);
                if (ret_status)
                        *ret_status = 0;
                return 0;
        }
        return ERROR_NOT_FOUND;
}
