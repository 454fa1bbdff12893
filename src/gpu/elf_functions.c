/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/elf_functions.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "gpu/prologue.h"

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
#error "elf_functions: this architecture's e_machine is not known"
#endif

struct library { /* being read */
        int fd;
        Elf *elf;
        GElf_Phdr code[ELF_SEGMENTS_MAX]; /* the executable segments */
        size_t n_code;
        Elf_Data *symbols;
        size_t n_symbols;
        const char *strings; /* ends with a NUL */
        size_t strings_size;
        struct elf_function *functions;
        size_t n_functions;
};

static void library_done(struct library *library)
{
        if (library->elf)
                elf_end(library->elf);
        free(library->functions);
}

/* Before libelf sees it: libelf allocates for as many sections as the header says. */
static int check_header(int fd)
{
        Elf64_Ehdr header;
        struct stat status;
        ssize_t n;

        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -ENOEXEC;
        n = pread(fd, &header, sizeof(header), 0);
        if (n < 0)
                return -errno;
        if (n < (ssize_t)sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
            header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != MACHINE || header.e_type != ET_DYN)
                return -ENOEXEC;
        if (header.e_shnum > ELF_SECTIONS_MAX || header.e_phnum > ELF_SEGMENTS_MAX)
                return -E2BIG;
        /* No sections, or more than fit into 16 bits. */
        return header.e_shnum == 0 || header.e_phnum == 0 ? -EBADMSG : 0;
}

static int read_segments(struct library *library)
{
        size_t n;

        if (elf_getphdrnum(library->elf, &n) < 0)
                return -EBADMSG;
        for (size_t i = 0; i < n && library->n_code < ELF_SEGMENTS_MAX; i++) {
                GElf_Phdr segment;

                if (!gelf_getphdr(library->elf, (int)i, &segment))
                        return -EBADMSG;
                if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X))
                        library->code[library->n_code++] = segment;
        }
        return 0;
}

static int section_data(Elf_Scn *section, uint64_t size_max, uint32_t type, Elf_Data **ret_data)
{
        GElf_Shdr header;
        Elf_Data *data;

        if (!section || !gelf_getshdr(section, &header) || header.sh_type != type)
                return -EBADMSG;
        if (header.sh_size > size_max)
                return -E2BIG;
        data = elf_getdata(section, NULL);
        if (!data || !data->d_buf || data->d_size == 0)
                return -EBADMSG;
        *ret_data = data;
        return 0;
}

static int read_symbols(struct library *library, Elf_Scn *section, const GElf_Shdr *header)
{
        Elf_Data *strings;
        int r;

        r = section_data(section, ELF_SYMBOLS_MAX * sizeof(Elf64_Sym), SHT_DYNSYM, &library->symbols);
        if (r < 0)
                return r;
        r = section_data(elf_getscn(library->elf, header->sh_link), ELF_STRINGS_MAX, SHT_STRTAB, &strings);
        if (r < 0)
                return r;

        library->n_symbols = library->symbols->d_size / sizeof(Elf64_Sym);
        library->strings = strings->d_buf;
        library->strings_size = strings->d_size;
        return library->strings[library->strings_size - 1] == '\0' ? 0 : -EBADMSG;
}

static int find_symbols(struct library *library)
{
        Elf_Scn *section = NULL;

        while ((section = elf_nextscn(library->elf, section))) {
                GElf_Shdr header;

                if (!gelf_getshdr(section, &header))
                        return -EBADMSG;
                if (header.sh_type == SHT_DYNSYM)
                        return read_symbols(library, section, &header);
        }
        return -EBADMSG;
}

/* Where the code at @address is in the file. */
static bool code_offset(const struct library *library, uint64_t address, uint64_t *ret_offset)
{
        for (size_t i = 0; i < library->n_code; i++) {
                const GElf_Phdr *segment = &library->code[i];

                if (address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz &&
                    !__builtin_add_overflow(segment->p_offset, address - segment->p_vaddr, ret_offset))
                        return *ret_offset <= INT64_MAX;
        }
        return false;
}

static int add_function(struct library *library, uint64_t address, int role)
{
        uint8_t code[PROLOGUE_BYTES];
        struct elf_function function = { .role = (uint8_t)role };
        ssize_t n;

        if (!code_offset(library, address, &function.offset))
                return -EBADMSG;
        if (library->n_functions == ELF_FUNCTIONS_MAX)
                return -E2BIG;
        n = pread(library->fd, code, sizeof(code), (off_t)function.offset);
        if (n < 0)
                return -errno;

        function.offset += prologue_probe_offset(MACHINE, code, (size_t)n, &function.slow);
        library->functions[library->n_functions++] = function;
        return 0;
}

/* NULL: a symbol that can't be one of interest. */
static const char *function_name(const struct library *library, const GElf_Sym *symbol)
{
        const char *name;

        if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || symbol->st_name >= library->strings_size)
                return NULL;
        name = library->strings + symbol->st_name;
        return strnlen(name, ELF_NAME_MAX) < ELF_NAME_MAX ? name : NULL;
}

static int by_offset(const void *a, const void *b)
{
        const struct elf_function *left = a, *right = b;

        if (left->offset != right->offset)
                return left->offset < right->offset ? -1 : 1;
        return left->role - right->role;
}

/* Versions of a function and its other names often share one place. */
static void sort_once(struct library *library)
{
        size_t n = 0;

        qsort(library->functions, library->n_functions, sizeof(*library->functions), by_offset);
        for (size_t i = 0; i < library->n_functions; i++)
                if (n == 0 || library->functions[n - 1].offset != library->functions[i].offset)
                        library->functions[n++] = library->functions[i];
        library->n_functions = n;
}

static int select_functions(struct library *library, elf_role_function role_of, const void *userdata)
{
        int r;

        library->functions = calloc(ELF_FUNCTIONS_MAX, sizeof(*library->functions));
        if (!library->functions)
                return -ENOMEM;
        for (size_t i = 0; i < library->n_symbols; i++) {
                GElf_Sym symbol;
                const char *name;
                int role;

                if (!gelf_getsym(library->symbols, (int)i, &symbol))
                        return -EBADMSG;
                name = function_name(library, &symbol);
                role = name ? role_of(name, userdata) : -1;
                if (role < 0)
                        continue;
                if (library->n_functions == ELF_FUNCTIONS_MAX)
                        sort_once(library); /* other names of the same places make room */
                r = add_function(library, symbol.st_value, role);
                if (r < 0)
                        return r;
        }
        sort_once(library);
        return 0;
}

static int library_open(struct library *library)
{
        int r;

        r = check_header(library->fd);
        if (r < 0)
                return r;
        if (elf_version(EV_CURRENT) == EV_NONE)
                return -ENOTSUP;
        library->elf = elf_begin(library->fd, ELF_C_READ, NULL);
        if (!library->elf)
                return -EBADMSG;
        /* The file may have changed since the header was looked at. */
        return elf_kind(library->elf) == ELF_K_ELF && gelf_getclass(library->elf) == ELFCLASS64 ? 0 : -EBADMSG;
}

int elf_functions_read(int fd, elf_role_function role_of, const void *userdata, struct elf_function **ret_functions,
                       size_t *ret_n_functions)
{
        _cleanup_(library_done) struct library library = { .fd = fd };
        int r;

        r = library_open(&library);
        if (r >= 0)
                r = read_segments(&library);
        if (r >= 0)
                r = find_symbols(&library);
        if (r >= 0)
                r = select_functions(&library, role_of, userdata);
        if (r < 0)
                return r;

        *ret_n_functions = library.n_functions;
        *ret_functions = library.n_functions ? TAKE_PTR(library.functions) : NULL;
        return 0;
}
