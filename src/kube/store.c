/* SPDX-License-Identifier: Apache-2.0 */
#define HASH_NONFATAL_OOM 1
#include "kube/store.h"

#include <string.h>

#include "base/macros.h"

struct store_entry *store_find(const struct store *store, const char *key)
{
        struct store_entry *entry;

        HASH_FIND_STR(store->entries, key, entry);
        return entry;
}

size_t store_count(const struct store *store)
{
        return HASH_COUNT(store->entries);
}

int store_add(struct store *store, const char *key, const char *version, struct store_entry **ret_entry)
{
        size_t length = strlen(key);
        struct store_entry *entry = calloc(1, sizeof(*entry) + length + 1);

        if (!entry)
                return -ENOMEM;
        memcpy(entry->key, key, length + 1);
        entry->version = strdup(version);
        if (entry->version)
                HASH_ADD_STR(store->entries, key, entry);
        if (!entry->version || !entry->hh.tbl) {
                free(entry->version);
                free(entry);
                return -ENOMEM;
        }
        *ret_entry = entry;
        return 0;
}

int store_set_version(struct store_entry *entry, const char *version)
{
        char *copy = strdup(version);

        if (!copy)
                return -ENOMEM;
        free(entry->version);
        entry->version = copy;
        return 0;
}

void store_remove(struct store *store, struct store_entry *entry)
{
        HASH_DEL(store->entries, entry);
        if (entry->value && store->release)
                store->release(entry->value, store->userdata);
        free(entry->version);
        free(entry);
}

void store_clear(struct store *store)
{
        struct store_entry *entry, *next;

        HASH_ITER(hh, store->entries, entry, next)
                store_remove(store, entry);
}
