/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/prologue.h"

#include <elf.h>
#include <string.h>

#include "base/macros.h"

enum { ENDBR64_BYTES = 4, COMPARE_BYTES = 10 };

struct code {
        const uint8_t *bytes;
        size_t n;
};

static bool begins_with(struct code code, const void *bytes, size_t n)
{
        return code.n >= n && memcmp(code.bytes, bytes, n) == 0;
}

static struct code code_after(struct code code, size_t n)
{
        return (struct code){ code.bytes + n, code.n - n };
}

static bool is_endbr64(struct code code)
{
        return begins_with(code, "\xf3\x0f\x1e\xfa", ENDBR64_BYTES);
}

static bool is_conditional_jump(struct code code)
{
        if (code.n >= 2 && (code.bytes[0] & 0xf0) == 0x70)
                return true;
        return code.n >= 6 && code.bytes[0] == 0x0f && (code.bytes[1] & 0xf0) == 0x80;
}

/* cmpl $imm32, disp32(%rip) */
static bool is_compare(struct code code)
{
        return code.n >= COMPARE_BYTES && begins_with(code, "\x81\x3d", 2);
}

/* What arch/x86/kernel/uprobes.c emulates, as far as functions begin with it: push, nop (also the one of 5 bytes that newer kernels turn
 * into a call), jumps and calls. */
static bool is_emulated(struct code code)
{
        if (code.n == 0)
                return false;
        if (code.bytes[0] == 0x41) /* REX.B: r8 to r15 */
                return code.n >= 2 && (code.bytes[1] & 0xf8) == 0x50;
        return (code.bytes[0] & 0xf8) == 0x50 || code.bytes[0] == 0x90 || code.bytes[0] == 0xeb || code.bytes[0] == 0xe9 ||
               code.bytes[0] == 0xe8 || begins_with(code, "\x0f\x1f\x44\x00\x00", 5) || is_conditional_jump(code);
}

size_t prologue_probe_offset(unsigned machine, const uint8_t *code, size_t n, bool *ret_slow)
{
        struct code entry = { code, n }, here = entry;

        *ret_slow = false;
        if (machine == EM_X86_64) {
                if (is_endbr64(here))
                        here = code_after(here, ENDBR64_BYTES);
                if (is_emulated(here))
                        return (size_t)(here.bytes - entry.bytes);
                if (is_compare(here)) {
                        here = code_after(here, COMPARE_BYTES);
                        if (is_conditional_jump(here))
                                return (size_t)(here.bytes - entry.bytes);
                }
        }
        *ret_slow = true;
        return 0;
}
