/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

/* union bpf_attr, as far as BPF_LINK_CREATE of an uprobe_multi link reads it (include/uapi/linux/bpf.h, 6.6). */
struct link_create_uprobe_multi {
        uint32_t program_fd;
        uint32_t target_fd;
        uint32_t attach_type;
        uint32_t flags;
        uint64_t path;
        uint64_t offsets;
        uint64_t reference_counts;
        uint64_t cookies;
        uint32_t n;
        uint32_t uprobe_flags;
        uint32_t pid;
        uint32_t padding;
};

enum { UPROBE_MULTI_RETURN = 1U << 0 }; /* BPF_F_UPROBE_MULTI_RETURN */

static void library_path(int fd, char ret_path[static 32])
{
        snprintf(ret_path, 32, "/proc/self/fd/%d", fd);
}

static int links_reserve(struct hook_links *links, size_t n)
{
        int *fds = reallocarray(links->fds, links->n + n, sizeof(*fds));

        if (!fds)
                return -ENOMEM;
        links->fds = fds;
        return 0;
}

/* ---- uprobe_multi */

static int link_create(struct link_create_uprobe_multi *attributes)
{
        int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, attributes, offsetof(struct link_create_uprobe_multi, padding));

        return fd < 0 ? -errno : fd;
}

static int attach_multi(const struct hook *hook, struct hook_links *links)
{
        _cleanup_(freep) uint64_t *cookies = calloc(hook->n_offsets, sizeof(*cookies));
        char path[32];
        struct link_create_uprobe_multi attributes = {
                .program_fd = (uint32_t)hook->program_fd,
                .attach_type = HOOK_ATTACH_MULTI,
                .path = (uintptr_t)path,
                .offsets = (uintptr_t)hook->offsets,
                .cookies = (uintptr_t)cookies,
                .n = (uint32_t)hook->n_offsets,
                .uprobe_flags = hook->returns ? UPROBE_MULTI_RETURN : 0,
                .pid = (uint32_t)hook->pid,
        };
        int fd;

        if (!cookies)
                return -ENOMEM;
        for (size_t i = 0; i < hook->n_offsets; i++)
                cookies[i] = hook->cookie;
        library_path(hook->library_fd, path);
        fd = link_create(&attributes);
        if (fd < 0)
                return fd;
        links->fds[links->n++] = fd;
        return 0;
}

/* ---- perf events */

static int read_number(const char *path, const char *format, unsigned *ret_number)
{
        _cleanup_(fclosep) FILE *file = fopen(path, "re");

        if (!file)
                return -errno;
        return fscanf(file, format, ret_number) == 1 ? 0 : -EBADMSG;
}

/* The event's type, and which bit of its configuration asks for the return. */
static int perf_type(unsigned *ret_type, unsigned *ret_return_bit)
{
        unsigned type, bit;
        int r;

        r = read_number("/sys/bus/event_source/devices/uprobe/type", "%u", &type);
        if (r >= 0)
                r = read_number("/sys/bus/event_source/devices/uprobe/format/retprobe", "config:%u", &bit);
        if (r < 0)
                return r;
        *ret_type = type;
        *ret_return_bit = bit;
        return 0;
}

static int perf_open(const struct hook *hook, uint64_t offset)
{
        char path[32];
        struct perf_event_attr attributes = { .size = sizeof(attributes), .uprobe_path = (uintptr_t)path, .probe_offset = offset };
        unsigned type, bit;
        int fd, r;

        r = perf_type(&type, &bit);
        if (r < 0)
                return r;
        attributes.type = type;
        if (hook->returns)
                attributes.config |= UINT64_C(1) << bit;
        library_path(hook->library_fd, path);
        fd = (int)syscall(SYS_perf_event_open, &attributes, hook->pid > 0 ? hook->pid : -1, hook->pid > 0 ? -1 : 0, -1,
                          PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* The link keeps the event. */
static int attach_perf_one(const struct hook *hook, uint64_t offset)
{
        LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = hook->cookie);
        _cleanup_(close_fdp) int event = perf_open(hook, offset);
        int fd;

        if (event < 0)
                return event;
        fd = bpf_link_create(hook->program_fd, event, BPF_PERF_EVENT, &options);
        return fd < 0 ? -errno : fd;
}

static int attach_perf(const struct hook *hook, struct hook_links *links)
{
        for (size_t i = 0; i < hook->n_offsets; i++) {
                int fd = attach_perf_one(hook, hook->offsets[i]);

                if (fd < 0)
                        return fd;
                links->fds[links->n++] = fd;
        }
        return 0;
}

int hook_attach(enum hook_method method, const struct hook *hook, struct hook_links *links)
{
        int r;

        if (hook->n_offsets == 0)
                return 0;
        r = links_reserve(links, method == HOOK_METHOD_MULTI ? 1 : hook->n_offsets);
        if (r < 0)
                return r;
        return method == HOOK_METHOD_MULTI ? attach_multi(hook, links) : attach_perf(hook, links);
}

/* ---- what the kernel has */

static int load_nothing(uint32_t attach_type)
{
        const struct bpf_insn nothing[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type);
        int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "lull_probe", "GPL", nothing, ELEMENTSOF(nothing), &options);

        return fd < 0 ? -errno : fd;
}

/* A directory is no file to probe: a kernel that knows the link says so. One that takes @pid for a process's and not for a thread's
 * looks at it first, and -1 is none. */
static int try_multi(int program_fd, pid_t pid)
{
        uint64_t offset = 0;
        struct link_create_uprobe_multi attributes = {
                .program_fd = (uint32_t)program_fd,
                .attach_type = HOOK_ATTACH_MULTI,
                .path = (uintptr_t)"/",
                .offsets = (uintptr_t)&offset,
                .n = 1,
                .pid = (uint32_t)pid,
        };

        return link_create(&attributes);
}

static int probe_multi(void)
{
        _cleanup_(close_fdp) int program = load_nothing(HOOK_ATTACH_MULTI);

        if (program < 0)
                return program == -EPERM ? -EPERM : 0;
        return try_multi(program, 0) == -EBADF && try_multi(program, -1) == -EINVAL;
}

static int probe_perf(void)
{
        LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = 1);
        _cleanup_(close_fdp) int program = load_nothing(0);
        unsigned type, bit;

        if (program < 0)
                return program;
        if (perf_type(&type, &bit) < 0)
                return 0;
        return bpf_link_create(program, -1, BPF_PERF_EVENT, &options) < 0 && errno == EBADF;
}

int hook_method_probe(enum hook_method method)
{
        return method == HOOK_METHOD_MULTI ? probe_multi() : probe_perf();
}

const char *hook_method_to_string(enum hook_method method)
{
        return method == HOOK_METHOD_MULTI ? "uprobe-multi" : "perf";
}
