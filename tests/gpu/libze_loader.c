/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libze_loader.so. */
#include "standin.h"

ENTRY(zeInit, ENDBR_PUSH, standin_return)
ENTRY(zeCommandQueueExecuteCommandLists, ENDBR_PUSH, standin_return)
ENTRY(zeCommandListAppendLaunchKernel, PUSH, standin_return)
ENTRY(zeCommandListCreate, PUSH, standin_return)
ENTRY(zeFenceHostSynchronize, PUSH, standin_block)
