/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"

enum {
        PIN_NAME_MAX = 200, /* room below NAME_MAX */
        PIN_NAME_KEPT = 180,
        ESCAPED = 3, /* "_2f" */
};

/* A bpffs refuses dots (bpf_lookup() in kernel/bpf/inode.c). An underscore is escaped too, so that no two names become one. */
static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* FNV-1a. What follows a long name's beginning need only differ by all odds: a link found under a name is taken over only if it is
 * the right cgroup's. */
static uint64_t hash_of(const char *name)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *name; name++)
                hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
        return hash;
}

char *pin_name_of(const char *name)
{
        size_t length = strlen(name);
        char *pin_name = malloc(length * ESCAPED + 2), *end = pin_name;

        if (!pin_name)
                return NULL;
        if (length == 0)
                return strcpy(pin_name, "_");

        for (const char *c = name; *c; c++)
                if (is_plain(*c))
                        *end++ = *c;
                else
                        end += sprintf(end, "_%02x", (uint8_t)*c);
        *end = '\0';
        if (end - pin_name > PIN_NAME_MAX)
                sprintf(pin_name + PIN_NAME_KEPT, "__%016" PRIx64, hash_of(name));
        return pin_name;
}
