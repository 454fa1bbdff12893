/* SPDX-License-Identifier: Apache-2.0 */
/* Prologues: where near a function's entry a probe costs least.
 *
 * The kernel emulates some instructions in place; any other is executed in a copy, with two traps more: some 9 µs instead of 0.7 in a
 * virtual machine. So a probe moves past endbr64, and over the comparison that CUDA's functions begin with (is a debugger attached?)
 * onto the jump that follows. Neither moves the stack, so that a return probe works there as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROLOGUE_BYTES = 24 }; /* as many as it ever looks at */

/* @code is the function's first @n bytes, of @machine (EM_X86_64, ...). Returns how far past the entry the probe belongs; where nothing
 * near is emulated, 0 with *ret_slow true. Pure. */
size_t prologue_probe_offset(unsigned machine, const uint8_t *code, size_t n, bool *ret_slow);
