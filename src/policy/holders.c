/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/holders.h"

#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A wildcard overlaps whatever has its port and protocol, so the first frontend of each family there is remembered too. */
enum claim_kind { CLAIM_EXACT, CLAIM_ANY_IPV4, CLAIM_ANY_IPV6 };

struct claim_key {
        struct address address; /* zero for CLAIM_ANY_* */
        uint16_t port;
        uint8_t protocol;
        uint8_t kind;
};

struct claim {
        struct claim_key key;
        const struct policy *policy;
        UT_hash_handle hh;
};

struct holder {
        const struct policy *policy;
        UT_hash_handle hh; /* by its name */
};

struct holders {
        struct claim *claims;
        struct holder *names;
};

int holders_new(struct holders **ret_holders)
{
        struct holders *holders = calloc(1, sizeof(*holders));

        if (!holders)
                return -ENOMEM;
        *ret_holders = holders;
        return 0;
}

struct holders *holders_free(struct holders *holders)
{
        struct claim *claim, *next_claim;
        struct holder *holder, *next_holder;

        if (!holders)
                return NULL;

        HASH_ITER(hh, holders->claims, claim, next_claim) {
                HASH_DEL(holders->claims, claim);
                free(claim);
        }
        HASH_ITER(hh, holders->names, holder, next_holder) {
                HASH_DEL(holders->names, holder);
                free(holder);
        }
        free(holders);
        return NULL;
}

static const struct policy *claim_find(const struct holders *holders, const struct frontend *frontend, enum claim_kind kind,
                                       const struct address *address)
{
        struct claim_key key = { .port = frontend->port, .protocol = frontend->protocol, .kind = (uint8_t)kind };
        struct claim *claim;

        if (address)
                key.address = *address;
        HASH_FIND(hh, holders->claims, &key, sizeof(key), claim);
        return claim ? claim->policy : NULL;
}

static int claim_add(struct holders *holders, const struct policy *policy, const struct frontend *frontend, enum claim_kind kind)
{
        const struct address *address = kind == CLAIM_EXACT ? &frontend->address : NULL;
        _cleanup_(freep) struct claim *claim = NULL;

        if (claim_find(holders, frontend, kind, address))
                return 0;

        claim = calloc(1, sizeof(*claim));
        if (!claim)
                return -ENOMEM;
        claim->policy = policy;
        claim->key = (struct claim_key){ .port = frontend->port, .protocol = frontend->protocol, .kind = (uint8_t)kind };
        if (address)
                claim->key.address = *address;

        HASH_ADD(hh, holders->claims, key, sizeof(claim->key), claim);
        if (!claim->hh.tbl)
                return -ENOMEM;
        TAKE_PTR(claim);
        return 0;
}

static int name_add(struct holders *holders, const struct policy *policy)
{
        _cleanup_(freep) struct holder *holder = calloc(1, sizeof(*holder));

        if (!holder)
                return -ENOMEM;
        holder->policy = policy;
        HASH_ADD_KEYPTR(hh, holders->names, policy->name, strlen(policy->name), holder);
        if (!holder->hh.tbl)
                return -ENOMEM;
        TAKE_PTR(holder);
        return 0;
}

int holders_add(struct holders *holders, const struct policy *policy)
{
        int r;

        r = name_add(holders, policy);
        for (size_t i = 0; r == 0 && i < policy->n_frontends; i++) {
                const struct frontend *frontend = &policy->frontends[i];

                r = claim_add(holders, policy, frontend, CLAIM_EXACT);
                if (r == 0)
                        r = claim_add(holders, policy, frontend,
                                      address_is_ipv4(&frontend->address) ? CLAIM_ANY_IPV4 : CLAIM_ANY_IPV6);
        }
        return r;
}

const struct policy *holders_of_name(const struct holders *holders, const char *name)
{
        struct holder *holder;

        HASH_FIND(hh, holders->names, name, strlen(name), holder);
        return holder ? holder->policy : NULL;
}

/* The same relation as frontend_overlaps(), without looking at every frontend. */
const struct policy *holders_of_frontend(const struct holders *holders, const struct frontend *frontend)
{
        static const struct address any_ipv4 = { { [10] = 0xff, [11] = 0xff } }, any_ipv6 = { { 0 } };
        bool ipv4 = address_is_ipv4(&frontend->address), wildcard = address_is_wildcard(&frontend->address);
        const struct policy *found;

        found = claim_find(holders, frontend, CLAIM_EXACT, &frontend->address);
        if (!found)
                found = claim_find(holders, frontend, CLAIM_EXACT, &any_ipv6);
        if (!found && ipv4)
                found = claim_find(holders, frontend, CLAIM_EXACT, &any_ipv4);
        if (!found && wildcard)
                found = claim_find(holders, frontend, CLAIM_ANY_IPV4, NULL);
        if (!found && wildcard && !ipv4)
                found = claim_find(holders, frontend, CLAIM_ANY_IPV6, NULL);
        return found;
}
