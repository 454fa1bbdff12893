/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that this host answers for, as its routing tables have them: every route of type "local", of both families.
 *
 * struct local_prefixes is a snapshot, for checking what a policy names; struct local keeps the BPF map "local" equal to the kernel's
 * routes: any change of a local route reads them all again, so that no event's meaning has to be guessed and a lost one costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/address.h"

struct local_prefixes {
        struct prefix *prefixes; /* sorted, without duplicates */
        size_t n;
};

/* Needs no privilege and no struct hold. Returns 0, or -errno. */
int local_prefixes_read(struct local_prefixes **ret_prefixes);
struct local_prefixes *local_prefixes_free(struct local_prefixes *prefixes); /* accepts NULL, returns NULL */
DEFINE_CLEANUP(struct local_prefixes, local_prefixes_free)

/* Whether @address is this host's, or a wildcard. Fits policy_set_load(): @prefixes is a struct local_prefixes. */
bool local_prefixes_contain(const struct address *address, void *prefixes);

struct local;

/* Fills the map @map_fd (lull_local_key) and follows changes from then on. At most LULL_LOCAL_MAX prefixes fit; the rest is left out
 * and logged once. Returns 0 or -errno. */
int local_new(sd_event *event, int map_fd, struct local **ret_local);
struct local *local_free(struct local *local);
DEFINE_CLEANUP(struct local, local_free)
