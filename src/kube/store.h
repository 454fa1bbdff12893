/* SPDX-License-Identifier: Apache-2.0 */
/* Values by key, each with the resourceVersion it was made from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uthash.h>

struct store_entry {
        UT_hash_handle hh;
        void *value;
        bool unchanged; /* in what is to become the view: the view has it already, at this version; no value here */
        char *version;
        char key[];
};

struct store {
        struct store_entry *entries;
        void (*release)(void *value, void *userdata);
        void *userdata;
};

struct store_entry *store_find(const struct store *store, const char *key);
size_t store_count(const struct store *store);
/* Adds an entry without value under a key that is not there yet. Returns 0 or -ENOMEM. */
int store_add(struct store *store, const char *key, const char *version, struct store_entry **ret_entry);
int store_set_version(struct store_entry *entry, const char *version);
/* Releases the value too, unless it has been taken. */
void store_remove(struct store *store, struct store_entry *entry);
void store_clear(struct store *store);
