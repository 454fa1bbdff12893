/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership and small arithmetic, as macros: nothing here has state.
 *
 * _cleanup_(f) runs f(&variable) when the variable leaves its scope; DEFINE_CLEANUP(type, f) makes the f##p that it needs from a
 * type *f(type *) that accepts NULL. TAKE_PTR and TAKE_FD give a value away and leave nothing to clean up behind.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))

#define ELEMENTSOF(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b)                                                                                                                  \
        ({                                                                                                                         \
                typeof(a) _a = (a);                                                                                                \
                typeof(b) _b = (b);                                                                                                \
                _a < _b ? _a : _b;                                                                                                 \
        })
#define MAX(a, b)                                                                                                                  \
        ({                                                                                                                         \
                typeof(a) _a = (a);                                                                                                \
                typeof(b) _b = (b);                                                                                                \
                _a > _b ? _a : _b;                                                                                                 \
        })
#define container_of(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

#define TAKE_PTR(pointer)                                                                                                          \
        ({                                                                                                                         \
                typeof(pointer) _p = (pointer);                                                                                    \
                (pointer) = NULL;                                                                                                  \
                _p;                                                                                                                \
        })

static inline int take_fd(int *fd)
{
        int taken = *fd;

        *fd = -1;
        return taken;
}
#define TAKE_FD(fd) take_fd(&(fd))

#define DEFINE_CLEANUP(type, function)                                                                                             \
        static inline void function##p(type **pointer)                                                                             \
        {                                                                                                                          \
                if (*pointer)                                                                                                      \
                        *pointer = function(*pointer);                                                                             \
        }

static inline void freep(void *pointer)
{
        free(*(void **)pointer);
}

/* Closes @fd unless it is negative; returns -1 so that callers can write fd = close_fd(fd). errno is preserved. */
static inline int close_fd(int fd)
{
        int saved = errno;

        if (fd >= 0)
                close(fd);
        errno = saved;
        return -1;
}

static inline void close_fdp(int *fd)
{
        *fd = close_fd(*fd);
}

static inline void fclosep(FILE **file)
{
        if (*file)
                fclose(*file);
}
