/* SPDX-License-Identifier: Apache-2.0 */
/* Policies from YAML files: a file may hold several documents, a directory every *.yaml and *.yml in it (not below it), in order of
 * their names.
 *
 * Whatever is wrong becomes one message that says file, line, field, value and what would be right, for example
 *
 *     web.yaml:7: spec.idle.after: "5 minutes" is not a duration; write it like "5m" or "1m30s"
 *
 * and that document is left out; all others are unaffected. Checked are syntax, unknown and repeated fields, types, ranges, names
 * used twice, and frontends that overlap another policy's. Whether an address is local is the caller's to know: it passes a
 * predicate.
 */
#pragma once

#include "policy/policy.h"

/* Bounds: policies in a set, further ones are left out with a message; a file has at most 1 MiB, a document 256 anchors and a depth of
 * 64; of more than 100 messages about a file, and of more than 1000 in all, the rest is not kept. */
enum { POLICY_SET_MAX = 16384 };

struct policy_set {
        struct policy **policies;
        size_t n_policies;
        char **errors; /* messages as above, in the order of the files */
        size_t n_errors;
};

struct policy_set *policy_set_free(struct policy_set *set); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct policy_set, policy_set_free)

typedef bool (*policy_address_is_local)(const struct address *address, void *userdata);

/* Reads all @paths. @is_local may be NULL: every address is taken for local. Returns 0 (also with errors in the set: look at
 * n_errors) or -ENOMEM. The caller owns *ret_set. */
int policy_set_load(const char *const *paths, size_t n_paths, policy_address_is_local is_local, void *userdata,
                    struct policy_set **ret_set);

/* The same from text in memory, @name standing for the file's name in messages. */
int policy_set_load_text(const char *text, size_t length, const char *name, struct policy_set **ret_set);
