/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Only what never could be written is the same as in its file. */
static bool is_clean(const ElfW(Phdr) * segment)
{
        return segment->p_type == PT_LOAD && !(segment->p_flags & PF_W);
}

static bool has_text_relocations(const struct dl_phdr_info *object)
{
        for (int i = 0; i < object->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
                const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr);

                for (; segment->p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++)
                        if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL))
                                return true;
        }
        return false;
}

static int forget_pages(struct dl_phdr_info *object, size_t size, void *userdata)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        for (int i = 0; !has_text_relocations(object) && i < object->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
                uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
                uintptr_t end = (object->dlpi_addr + segment->p_vaddr + segment->p_memsz) & ~(page - 1);

                if (is_clean(segment) && end > begin)
                        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        }
        return 0;
}

void memory_settle(void)
{
        (void)malloc_trim(0);
        (void)dl_iterate_phdr(forget_pages, NULL);
}
