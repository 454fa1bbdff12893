/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-ins for driver libraries have in common: functions that begin in the ways that real ones do.
 *
 * ENTRY(name, prologue, body) exports name, which runs body(long): an argument goes through, and what body returns. Other machines
 * than x86-64 have the functions without the prologues.
 */
#pragma once

#include <poll.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

#ifdef __x86_64__
#define BODY(body) "jmp " #body "\n"
#define FRAMED(before, after, body) before "\n call " #body "\n" after "\n ret\n"
#define NOP5(body) ".byte 0x0f,0x1f,0x44,0x00,0x00\n" BODY(body)
#define PUSH(body) FRAMED("push %rbp", "pop %rbp", body)
#define ENDBR_PUSH(body) "endbr64\n" PUSH(body)
#define COMPARE(body) "cmpl $0x321cba00, standin_debugger(%rip)\n je 1f\n" BODY(body) "1: " BODY(body)
#define ENDBR_COMPARE(body) "endbr64\n" COMPARE(body)
#define SLOW(body) FRAMED("sub $8,%rsp", "add $8,%rsp", body)
#define ENTRY(name, prologue, body)                                                                                                \
        __asm__(".text\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name ":\n" prologue(body) ".size " #name       \
                                                                                                              ",.-" #name "\n");
#define DEBUGGER __asm__(".data\n.p2align 2\n.local standin_debugger\nstandin_debugger: .long 0\n.text\n");
#else
#define ENTRY(name, prologue, body)                                                                                                \
        EXPORTED long name(long argument);                                                                                         \
        long name(long argument)                                                                                                   \
        {                                                                                                                          \
                return body(argument);                                                                                             \
        }
#define DEBUGGER
#endif

/* Reached from the assembler only, on x86-64. */
#define BODY_FUNCTION __attribute__((used, visibility("hidden"), noinline))

/* The device is done at once. */
BODY_FUNCTION long standin_return(long argument);
long standin_return(long argument)
{
        __asm__ volatile("" : "+r"(argument));
        return 0;
}

/* The device is done when something could be read from the descriptor @argument; 0: at once. */
BODY_FUNCTION long standin_block(long argument);
long standin_block(long argument)
{
        struct pollfd done = { .fd = (int)argument, .events = POLLIN };

        return argument > 0 && poll(&done, 1, -1) < 0;
}
