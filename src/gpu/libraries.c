/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/libraries.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "gpu/detacher.h"
#include "gpu/elf_functions.h"
#include "gpu/processes.h"

struct libraries {
        enum hook_method method;
        int program_fd;
        struct detacher *detacher;
        LIST_HEAD(known, library) known; /* a handful: mostly one, and one for each container that brings its own */
};

#define CAPABILITIES "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH"

static const struct {
        int error;
        const char *text;
} reasons[] = {
        { EPERM, "not allowed to: this needs " CAPABILITIES },
        { EACCES, "not allowed to: this needs " CAPABILITIES },
        { ENOEXEC, "not a shared library of this machine's architecture" },
        { EBADMSG, "malformed, or stripped of its section headers" },
        { E2BIG, "larger than any known driver library" },
        { ENODATA, "none of the known functions are in it" },
        { EREMOTE, "on a file system that a process serves (FUSE)" },
        { EMFILE, "too many open files: raise LimitNOFILE" },
        { ENOMEM, "out of memory" },
};

const char *probe_reason(int error)
{
        for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
                if (reasons[i].error == -error)
                        return reasons[i].text;
        return strerror(-error);
}

/* ---- one library */

static void library_free(struct library *library)
{
        close_fd(library->fd);
        for (size_t role = 0; role < DRIVER_ROLE_MAX; role++)
                free(library->offsets[role]);
        free(library->links.fds);
        free(library->path);
        free(library);
}

static void library_freep(struct library **library)
{
        if (*library)
                library_free(*library);
}

static int role_of(const char *symbol, const void *userdata)
{
        return driver_function_role(*(const enum gpu_vendor *)userdata, symbol);
}

static int take_functions(struct library *library, const struct elf_function *functions, size_t n)
{
        for (size_t role = 0; role < DRIVER_ROLE_MAX; role++) {
                library->offsets[role] = calloc(n, sizeof(uint64_t));
                if (!library->offsets[role])
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++) {
                enum driver_role role = functions[i].role;

                library->offsets[role][library->n_offsets[role]++] = functions[i].offset;
                if (functions[i].slow && role != DRIVER_ROLE_INITIALISE)
                        library->n_slow++;
        }
        return 0;
}

static int read_functions(struct library *library)
{
        _cleanup_(freep) struct elf_function *functions = NULL;
        size_t n;
        int r;

        r = elf_functions_read(library->fd, role_of, &library->vendor, &functions, &n);
        if (r < 0)
                return r;
        r = n ? take_functions(library, functions, n) : -ENODATA;
        if (r < 0)
                return r;
        return library->n_offsets[DRIVER_ROLE_SUBMIT] ? 0 : -ENODATA;
}

static int watch_initialisation(const struct libraries *libraries, struct library *library)
{
        const struct hook hook = {
                .program_fd = libraries->program_fd,
                .library_fd = library->fd,
                .offsets = library->offsets[DRIVER_ROLE_INITIALISE],
                .n_offsets = library->n_offsets[DRIVER_ROLE_INITIALISE],
        };

        return hook_attach(libraries->method, &hook, &library->links);
}

static int library_new(const struct libraries *libraries, pid_t pid, const struct mapping *mapping, struct library **ret_library)
{
        _cleanup_(library_freep) struct library *library = calloc(1, sizeof(*library));
        int r;

        if (!library)
                return -ENOMEM;
        library->id = (struct library_id){ mapping->device, mapping->inode };
        library->deleted = mapping->deleted;
        library->vendor = (enum gpu_vendor)driver_library_vendor(mapping->path);
        library->fd = mapping_open(pid, mapping);
        if (library->fd == -ESRCH)
                return -ESRCH;
        library->path = strdup(mapping->path);
        if (!library->path)
                return -ENOMEM;

        r = library->fd;
        if (r >= 0)
                r = read_functions(library);
        if (r >= 0)
                r = watch_initialisation(libraries, library);
        if (r < 0)
                library->reason = probe_reason(r);
        *ret_library = TAKE_PTR(library);
        return 0;
}

/* ---- all of them */

static struct library *find(const struct libraries *libraries, const struct mapping *mapping)
{
        struct library *library;

        LIST_FOREACH(library, &libraries->known, others)
        if (library->id.device == mapping->device && library->id.inode == mapping->inode)
                return library;
        return NULL;
}

int libraries_use(struct libraries *libraries, pid_t pid, const struct mapping *mapping, struct library **ret_library)
{
        struct library *library = find(libraries, mapping);
        int r;

        if (!library) {
                r = library_new(libraries, pid, mapping, &library);
                if (r < 0)
                        return r;
                LIST_INSERT_HEAD(&libraries->known, library, others);
        }
        library->uses++;
        *ret_library = library;
        return 0;
}

void libraries_drop(struct libraries *libraries, struct library *library)
{
        if (--library->uses > 0)
                return;
        LIST_REMOVE(library, others);
        detacher_close(libraries->detacher, library->links.fds, library->links.n);
        library_free(library);
}

int libraries_new(enum hook_method method, int program_fd, struct detacher *detacher, struct libraries **ret_libraries)
{
        struct libraries *libraries = calloc(1, sizeof(*libraries));

        if (!libraries)
                return -ENOMEM;
        *libraries = (struct libraries){ .method = method, .program_fd = program_fd, .detacher = detacher };
        LIST_INIT(&libraries->known);
        *ret_libraries = libraries;
        return 0;
}

struct libraries *libraries_free(struct libraries *libraries)
{
        free(libraries);
        return NULL;
}
