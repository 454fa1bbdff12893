/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libcuda.so.1: names, variants and prologues of the driver API, without a device. With STANDIN_SLOW its launches begin
 * with an instruction that the kernel does not emulate. */
#include "standin.h"

#include <string.h>

DEBUGGER

#ifdef STANDIN_SLOW
#define LAUNCH SLOW
#else
#define LAUNCH COMPARE
#endif

ENTRY(cuInit, ENDBR_PUSH, standin_return)
ENTRY(cuDeviceGetCount, PUSH, standin_return)
ENTRY(cuDevicePrimaryCtxRetain, PUSH, standin_return)
ENTRY(cuMemAlloc_v2, PUSH, standin_return)
ENTRY(cuLaunchKernel, LAUNCH, standin_return)
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
