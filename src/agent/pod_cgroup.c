/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pod_cgroup.h"

#include <fts.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"

enum { LEVELS_MAX = 4 };

static void fts_closep(FTS **tree)
{
        if (*tree)
                fts_close(*tree);
}

/* Whether @name ends in "pod@uid", but for ".slice". */
static bool names_pod(const char *name, const char *uid)
{
        size_t length = strlen(name), suffix = strlen(".slice"), wanted = strlen(uid);

        if (length > suffix && strcmp(name + length - suffix, ".slice") == 0)
                length -= suffix;
        if (length < wanted + 3 || strncmp(name + length - wanted - 3, "pod", 3) != 0)
                return false;
        name += length - wanted;
        for (size_t i = 0; i < wanted; i++)
                if (name[i] != uid[i] && !(name[i] == '_' && uid[i] == '-'))
                        return false;
        return true;
}

int pod_cgroup_find(const char *root, const char *uid, char **ret_path)
{
        char *roots[] = { (char *)root, NULL };
        _cleanup_(fts_closep) FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        FTSENT *entry;

        if (!tree)
                return -errno;
        while ((entry = fts_read(tree))) {
                if (entry->fts_level >= LEVELS_MAX)
                        fts_set(tree, entry, FTS_SKIP);
                if (entry->fts_info != FTS_D || !names_pod(entry->fts_name, uid))
                        continue;
                *ret_path = strdup(entry->fts_path);
                return *ret_path ? 0 : -ENOMEM;
        }
        return -ENOENT;
}
