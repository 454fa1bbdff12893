/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libamdhip64.so. */
#include "standin.h"

ENTRY(__hipRegisterFatBinary, ENDBR_PUSH, standin_return)
ENTRY(hipLaunchKernel, ENDBR_PUSH, standin_return)
ENTRY(hipModuleLaunchKernel, PUSH, standin_return)
ENTRY(hipGraphLaunch, PUSH, standin_return)
ENTRY(hipMemcpyAsync, PUSH, standin_return)
ENTRY(hipMalloc, PUSH, standin_return)
ENTRY(hipDeviceSynchronize, ENDBR_PUSH, standin_return)
ENTRY(hipStreamSynchronize, PUSH, standin_block)
