/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/leftovers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/resolve_private.h"

struct leftovers {
        char **uids; /* sorted */
        size_t n, room;
};

struct leftovers *leftovers_free(struct leftovers *leftovers)
{
        if (!leftovers)
                return NULL;
        for (size_t i = 0; i < leftovers->n; i++)
                free(leftovers->uids[i]);
        free(leftovers->uids);
        free(leftovers);
        return NULL;
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

bool leftovers_have(const struct leftovers *leftovers, const char *pod_uid)
{
        return leftovers && leftovers->n > 0 && bsearch(&pod_uid, leftovers->uids, leftovers->n, sizeof(*leftovers->uids), by_text);
}

static int add(struct leftovers *leftovers, const char *pod_uid)
{
        if (leftovers->n == leftovers->room) {
                size_t room = leftovers->room ? 2 * leftovers->room : 8;
                char **uids = reallocarray(leftovers->uids, room, sizeof(*uids));

                if (!uids)
                        return -ENOMEM;
                leftovers->uids = uids;
                leftovers->room = room;
        }
        leftovers->uids[leftovers->n] = strdup(pod_uid);
        if (!leftovers->uids[leftovers->n])
                return -ENOMEM;
        leftovers->n++;
        return 0;
}

static bool is_one(const struct target_reference *target, const struct kube_endpoint *endpoint)
{
        return endpoint->pod && endpoint->pod_uid && !endpoint->terminating && resolve_is_pod_of(target, endpoint->pod);
}

/* One that several slices have is there several times, which does no harm. */
int leftovers_take(const struct target_reference *target, const struct kube_endpoint_slice *const *slices, size_t n_slices,
                   struct leftovers **ret_leftovers)
{
        _cleanup_(leftovers_freep) struct leftovers *leftovers = calloc(1, sizeof(*leftovers));
        int r = 0;

        if (!leftovers)
                return -ENOMEM;
        for (size_t i = 0; i < n_slices; i++)
                for (size_t j = 0; r >= 0 && j < slices[i]->n_endpoints && leftovers->n < LEFTOVERS_MAX; j++)
                        if (is_one(target, &slices[i]->endpoints[j]))
                                r = add(leftovers, slices[i]->endpoints[j].pod_uid);
        if (r < 0)
                return r;
        if (leftovers->n > 0)
                qsort(leftovers->uids, leftovers->n, sizeof(*leftovers->uids), by_text);
        *ret_leftovers = TAKE_PTR(leftovers);
        return 0;
}
