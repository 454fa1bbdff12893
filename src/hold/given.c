/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/given.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct given_flow {
        struct flow flow;
        const struct held_frontend *frontend;
        struct address masquerade;
        struct conntrack_translation translation;
        TAILQ_ENTRY(given_flow) link;
        UT_hash_handle hh;
};

struct given {
        struct given_flow *flows;
        TAILQ_HEAD(, given_flow) by_age;
};

int given_new(struct given **ret_given)
{
        struct given *given = calloc(1, sizeof(*given));

        if (!given)
                return -ENOMEM;

        TAILQ_INIT(&given->by_age);
        *ret_given = given;
        return 0;
}

static void forget(struct given *given, struct given_flow *flow)
{
        if (given->flows)
                HASH_DEL(given->flows, flow);
        TAILQ_REMOVE(&given->by_age, flow, link);
        free(flow);
}

struct given *given_free(struct given *given)
{
        struct given_flow *flow;

        if (!given)
                return NULL;

        while ((flow = TAILQ_FIRST(&given->by_age)))
                forget(given, flow);
        free(given);
        return NULL;
}

/* Hashed as bytes, so the padding must be the same in all. */
static void copy_key(const struct flow *flow, struct flow *ret_key)
{
        memset(ret_key, 0, sizeof(*ret_key));
        ret_key->source = flow->source;
        ret_key->destination = flow->destination;
        ret_key->source_port = flow->source_port;
        ret_key->destination_port = flow->destination_port;
        ret_key->protocol = flow->protocol;
}

static struct given_flow *find(const struct given *given, const struct flow *flow)
{
        struct given_flow *found;
        struct flow key;

        copy_key(flow, &key);
        HASH_FIND(hh, given->flows, &key, sizeof(key), found);
        return found;
}

int given_add(struct given *given, const struct held_frontend *frontend, const struct flow *flow,
              const struct conntrack_translation *translation)
{
        struct given_flow *added, *oldest;

        given_forget(given, flow);
        oldest = TAILQ_FIRST(&given->by_age);
        if (oldest && HASH_COUNT(given->flows) >= GIVEN_MAX)
                forget(given, oldest);

        added = calloc(1, sizeof(*added));
        if (!added)
                return -ENOMEM;

        copy_key(flow, &added->flow);
        added->frontend = frontend;
        added->translation = *translation;
        if (translation->masquerade) {
                added->masquerade = *translation->masquerade;
                added->translation.masquerade = &added->masquerade;
        }
        HASH_ADD(hh, given->flows, flow, sizeof(added->flow), added);
        if (!added->hh.tbl) {
                free(added);
                return -ENOMEM;
        }
        TAILQ_INSERT_TAIL(&given->by_age, added, link);
        return 0;
}

int given_restore(struct given *given, struct conntrack *conntrack, const struct flow *flow)
{
        const struct given_flow *found = find(given, flow);
        int r;

        if (!found)
                return 0;

        r = conntrack_create(conntrack, flow, &found->translation);
        return r == -EEXIST ? 0 : r < 0 ? r : 1;
}

void given_forget(struct given *given, const struct flow *flow)
{
        struct given_flow *found = find(given, flow);

        if (found)
                forget(given, found);
}

void given_forget_frontend(struct given *given, const struct held_frontend *frontend)
{
        struct given_flow *flow, *next;

        for (flow = TAILQ_FIRST(&given->by_age); flow; flow = next) {
                next = TAILQ_NEXT(flow, link);
                if (flow->frontend == frontend)
                        forget(given, flow);
        }
}

void given_forget_endpoint(struct given *given, struct conntrack *conntrack, const struct held_frontend *frontend,
                           const struct address *endpoint, uint16_t port)
{
        struct given_flow *flow, *next;

        for (flow = TAILQ_FIRST(&given->by_age); flow; flow = next) {
                struct conntrack_entry entry;

                next = TAILQ_NEXT(flow, link);
                if (flow->frontend != frontend || flow->translation.port != port ||
                    !address_equal(&flow->translation.endpoint, endpoint))
                        continue;
                if (conntrack_find(conntrack, &flow->flow, &entry) == 0 && !conntrack_is_answered(&entry))
                        (void)conntrack_delete(conntrack, &flow->flow);
                forget(given, flow);
        }
}
