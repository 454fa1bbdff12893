/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF reader on the stand-ins for driver libraries, whole and damaged; prologues, names and mappings. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "gpu/driver_library.h"
#include "gpu/elf_functions.h"
#include "gpu/processes.h"
#include "gpu/prologue.h"

static int open_standin(const char *name)
{
        char path[PATH_MAX] = "";
        int fd;

        assert_true(readlink("/proc/self/exe", path, sizeof(path) - 64) > 0);
        *strrchr(path, '/') = '\0';
        strcpy(strrchr(path, '/'), "/gpu/");
        strcat(path, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

static int role_of(const char *symbol, const void *userdata)
{
        return driver_function_role(*(const enum gpu_vendor *)userdata, symbol);
}

static int read_as(enum gpu_vendor vendor, int fd, struct elf_function **ret_functions, size_t *ret_n)
{
        return elf_functions_read(fd, role_of, &vendor, ret_functions, ret_n);
}

static size_t count_role(const struct elf_function *functions, size_t n, enum driver_role role)
{
        size_t found = 0;

        for (size_t i = 0; i < n; i++)
                found += functions[i].role == role;
        return found;
}

static void functions_are_found_by_role_and_each_place_once(void **state)
{
        _cleanup_(freep) struct elf_function *functions = NULL;
        int fd = open_standin("libcuda.so.1");
        size_t n;

        assert_int_equal(read_as(GPU_VENDOR_NVIDIA, fd, &functions, &n), 0);
        assert_int_equal(count_role(functions, n, DRIVER_ROLE_SUBMIT), 6);
        assert_int_equal(count_role(functions, n, DRIVER_ROLE_WAIT), 3);
        assert_int_equal(count_role(functions, n, DRIVER_ROLE_INITIALISE), 2);
        assert_int_equal(n, 11);
        for (size_t i = 1; i < n; i++)
                assert_true(functions[i - 1].offset < functions[i].offset);
        for (size_t i = 0; i < n; i++)
                assert_false(functions[i].slow);
        close(fd);
}

static void a_slow_prologue_is_told(void **state)
{
        _cleanup_(freep) struct elf_function *functions = NULL;
        int fd = open_standin("slow/libcuda.so.1");
        size_t n, slow = 0;

        assert_int_equal(read_as(GPU_VENDOR_NVIDIA, fd, &functions, &n), 0);
        for (size_t i = 0; i < n; i++)
                slow += functions[i].slow;
        assert_int_equal(slow, 1);
        close(fd);
}

static void a_library_without_the_functions_has_none(void **state)
{
        struct elf_function *functions = (void *)state;
        int fd = open_standin("libcuda.so.1");
        size_t n;

        assert_int_equal(read_as(GPU_VENDOR_AMD, fd, &functions, &n), 0);
        assert_null(functions);
        assert_int_equal(n, 0);
        close(fd);
}

struct image {
        uint8_t *bytes;
        size_t size;
};

static struct image load(const char *name)
{
        struct image image;
        struct stat status;
        int fd = open_standin(name);

        assert_int_equal(fstat(fd, &status), 0);
        image.size = (size_t)status.st_size;
        image.bytes = malloc(image.size);
        assert_int_equal(pread(fd, image.bytes, image.size, 0), image.size);
        close(fd);
        return image;
}

static int read_image(const uint8_t *bytes, size_t size)
{
        struct elf_function *functions = NULL;
        int fd = memfd_create("image", MFD_CLOEXEC), r;
        size_t n;

        assert_int_equal(write(fd, bytes, size), size);
        r = read_as(GPU_VENDOR_NVIDIA, fd, &functions, &n);
        if (r == 0)
                free(functions);
        close(fd);
        return r;
}

static void a_truncated_library_is_refused(void **state)
{
        struct image image = load("libcuda.so.1");

        assert_int_equal(read_image(image.bytes, image.size), 0);
        for (size_t size = 0; size < image.size; size += 97) {
                int r = read_image(image.bytes, size);

                if (r != -ENOEXEC && r != -EBADMSG)
                        fail_msg("%zu bytes: %d", size, r);
        }
        free(image.bytes);
}

static Elf64_Shdr *find_section(struct image *image, uint32_t type)
{
        Elf64_Ehdr *header = (Elf64_Ehdr *)image->bytes;
        Elf64_Shdr *sections = (Elf64_Shdr *)(image->bytes + header->e_shoff);

        for (size_t i = 0; i < header->e_shnum; i++)
                if (sections[i].sh_type == type)
                        return &sections[i];
        fail();
        return NULL;
}

static void what_lies_about_itself_is_refused(void **state)
{
        struct image image = load("libcuda.so.1");
        Elf64_Ehdr *header = (Elf64_Ehdr *)image.bytes, header_before = *header;
        Elf64_Shdr *symbols = find_section(&image, SHT_DYNSYM), symbols_before = *symbols;
        Elf64_Sym *table = (Elf64_Sym *)(image.bytes + symbols->sh_offset);
        size_t n_symbols = symbols->sh_size / sizeof(*table);

        symbols->sh_size = UINT64_MAX / 2;
        assert_int_equal(read_image(image.bytes, image.size), -E2BIG);
        symbols->sh_size = 16 * 24 * 4096;
        assert_int_equal(read_image(image.bytes, image.size), -EBADMSG);
        *symbols = symbols_before;
        symbols->sh_link = 0xffffff;
        assert_int_equal(read_image(image.bytes, image.size), -EBADMSG);
        *symbols = symbols_before;

        header->e_shnum = 0xffff;
        assert_int_equal(read_image(image.bytes, image.size), -E2BIG);
        header->e_shnum = 0;
        assert_int_equal(read_image(image.bytes, image.size), -EBADMSG);
        *header = header_before;
        header->e_machine = EM_S390;
        assert_int_equal(read_image(image.bytes, image.size), -ENOEXEC);
        header->e_machine = header_before.e_machine;
        header->e_type = ET_CORE;
        assert_int_equal(read_image(image.bytes, image.size), -ENOEXEC);
        *header = header_before;

        for (size_t i = 0; i < n_symbols; i++) /* none of these is in the code */
                table[i].st_value = UINT64_MAX - 3;
        assert_int_equal(read_image(image.bytes, image.size), -EBADMSG);
        free(image.bytes);
}

static void what_is_no_file_of_code_is_refused(void **state)
{
        struct elf_function *functions = NULL;
        size_t n;
        int fd;

        assert_int_equal(read_image((const uint8_t *)"!<arch>\n", 8), -ENOEXEC);
        fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        assert_int_equal(read_as(GPU_VENDOR_NVIDIA, fd, &functions, &n), -ENOEXEC);
        close(fd);
        fd = open("/", O_RDONLY | O_CLOEXEC);
        assert_int_equal(read_as(GPU_VENDOR_NVIDIA, fd, &functions, &n), -ENOEXEC);
        close(fd);
}

static void a_probe_goes_where_it_costs_least(void **state)
{
#define CODE(text) .code = (const uint8_t *)(text), .n = sizeof(text) - 1
        static const struct {
                const char *what;
                const uint8_t *code;
                size_t n, offset;
                bool slow;
        } cases[] = {
                { "push", CODE("\x55\x48\x89\xe5"), 0, false },
                { "push of a high register", CODE("\x41\x57\x41\x56"), 0, false },
                { "nop of five bytes", CODE("\x0f\x1f\x44\x00\x00"), 0, false },
                { "endbr64, push", CODE("\xf3\x0f\x1e\xfa\x55"), 4, false },
                { "endbr64, sub", CODE("\xf3\x0f\x1e\xfa\x48\x83\xec\x08"), 0, true },
                { "cmpl, je", CODE("\x81\x3d\x01\x02\x03\x04\x00\xba\x1c\x32\x74\x10"), 10, false },
                { "cmpl, long jne", CODE("\x81\x3d\x01\x02\x03\x04\x00\xba\x1c\x32\x0f\x85\x00\x00\x00\x00"), 10, false },
                { "endbr64, cmpl, jne", CODE("\xf3\x0f\x1e\xfa\x81\x3d\x01\x02\x03\x04\x00\xba\x1c\x32\x75\x10"), 14, false },
                { "cmpl, mov", CODE("\x81\x3d\x01\x02\x03\x04\x00\xba\x1c\x32\x48\x89\xe5"), 0, true },
                { "cmpl of a register", CODE("\x81\xf8\x01\x02\x03\x04\x74\x10"), 0, true },
                { "a cmpl cut short", CODE("\x81\x3d\x01\x02\x03"), 0, true },
                { "a jump cut short", CODE("\x81\x3d\x01\x02\x03\x04\x00\xba\x1c\x32\x74"), 0, true },
                { "jmp", CODE("\xe9\x00\x00\x00\x00"), 0, false },
                { "nothing", CODE(""), 0, true },
        };
        bool slow;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                size_t offset = prologue_probe_offset(EM_X86_64, cases[i].code, cases[i].n, &slow);

                if (offset != cases[i].offset || slow != cases[i].slow)
                        fail_msg("%s: %zu, slow %d", cases[i].what, offset, slow);
        }
        assert_int_equal(prologue_probe_offset(EM_AARCH64, cases[0].code, cases[0].n, &slow), 0);
        assert_true(slow);
}

static void files_are_known_by_their_names(void **state)
{
        assert_int_equal(driver_library_vendor("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"), GPU_VENDOR_NVIDIA);
        assert_int_equal(driver_library_vendor("/usr/local/cuda/compat/libcuda.so"), GPU_VENDOR_NVIDIA);
        assert_int_equal(driver_library_vendor("/opt/rocm/lib/libamdhip64.so.6.2.41134"), GPU_VENDOR_AMD);
        assert_int_equal(driver_library_vendor("/usr/lib/libze_loader.so.1.17.39"), GPU_VENDOR_INTEL);
        assert_int_equal(driver_library_vendor("/usr/lib/libcudart.so.12"), -1);
        assert_int_equal(driver_library_vendor("/usr/lib/libcuda.sorry"), -1);
        assert_int_equal(driver_library_vendor("/libcuda.so.1/libc.so.6"), -1);
}

static void functions_are_known_by_their_names(void **state)
{
        static const struct {
                enum gpu_vendor vendor;
                const char *symbol;
                int role;
        } cases[] = {
                { GPU_VENDOR_NVIDIA, "cuLaunchKernel", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_NVIDIA, "cuLaunchKernelEx_ptsz", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_NVIDIA, "cuLaunchCooperativeKernel_ptsz", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_NVIDIA, "cuMemcpyDtoHAsync_v2_ptsz", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_NVIDIA, "cuStreamSynchronize_ptsz", DRIVER_ROLE_WAIT },
                { GPU_VENDOR_NVIDIA, "cuInit", DRIVER_ROLE_INITIALISE },
                { GPU_VENDOR_NVIDIA, "cuInitialise", -1 },
                { GPU_VENDOR_NVIDIA, "cuMemAlloc_v2", -1 },
                { GPU_VENDOR_NVIDIA, "cuMem", -1 },
                { GPU_VENDOR_NVIDIA, "hipLaunchKernel", -1 },
                { GPU_VENDOR_AMD, "hipModuleLaunchKernel", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_AMD, "__hipRegisterFatBinary", DRIVER_ROLE_INITIALISE },
                { GPU_VENDOR_AMD, "hipMalloc", -1 },
                { GPU_VENDOR_INTEL, "zeCommandListImmediateAppendCommandListsExp", DRIVER_ROLE_SUBMIT },
                { GPU_VENDOR_INTEL, "zeCommandQueueSynchronize", DRIVER_ROLE_WAIT },
                { GPU_VENDOR_INTEL, "zeCommandListCreate", -1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (driver_function_role(cases[i].vendor, cases[i].symbol) != cases[i].role)
                        fail_msg("%s: %d", cases[i].symbol, driver_function_role(cases[i].vendor, cases[i].symbol));
}

static bool parse(const char *text, struct mapping *ret_mapping)
{
        char line[4096];

        snprintf(line, sizeof(line), "%s", text);
        return mapping_parse(line, ret_mapping);
}

static void mappings_of_driver_code_are_found(void **state)
{
        struct mapping mapping;

        assert_true(parse("7f1000000000-7f1000123000 r-xp 00028000 08:01 1573 /usr/lib/libcuda.so.1\n", &mapping));
        assert_string_equal(mapping.path, "/usr/lib/libcuda.so.1");
        assert_int_equal(mapping.begin, 0x7f1000000000);
        assert_int_equal(mapping.end, 0x7f1000123000);
        assert_int_equal(mapping.device, makedev(8, 1));
        assert_int_equal(mapping.inode, 1573);
        assert_false(mapping.deleted);
        assert_true(parse("7f1-7f2 r-xp 0 00:2b 7   /a b/libcuda.so.1 (deleted)\n", &mapping));
        assert_string_equal(mapping.path, "/a b/libcuda.so.1");
        assert_true(mapping.deleted);

        assert_false(parse("7f1-7f2 r--p 0 08:01 7 /usr/lib/libcuda.so.1\n", &mapping));
        assert_false(parse("7f1-7f2 r-xp 0 08:01 7 /usr/lib/libc.so.6\n", &mapping));
        assert_false(parse("7f1-7f2 r-xp 0 00:00 0\n", &mapping));
        assert_false(parse("7f1-7f2 r-xp 0 00:00 0 [vdso]\n", &mapping));
        assert_false(parse("7f1-7f2 r-xp", &mapping));
        assert_false(parse("", &mapping));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(functions_are_found_by_role_and_each_place_once),
                cmocka_unit_test(a_slow_prologue_is_told),
                cmocka_unit_test(a_library_without_the_functions_has_none),
                cmocka_unit_test(a_truncated_library_is_refused),
                cmocka_unit_test(what_lies_about_itself_is_refused),
                cmocka_unit_test(what_is_no_file_of_code_is_refused),
                cmocka_unit_test(a_probe_goes_where_it_costs_least),
                cmocka_unit_test(files_are_known_by_their_names),
                cmocka_unit_test(functions_are_known_by_their_names),
                cmocka_unit_test(mappings_of_driver_code_are_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
