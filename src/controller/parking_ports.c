/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/parking_ports.h"

#include <string.h>
#include <sys/queue.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "controller/spread.h"

struct port_holder;

struct port_claim {
        struct port_holder *holder;
        uint16_t port;
        LIST_ENTRY(port_claim) of_holder;
        char backend[];
};

struct port_holder { /* a policy */
        LIST_HEAD(, port_claim) claims;
        UT_hash_handle hh;
        char policy[];
};

struct parking_ports {
        uint16_t first, last;
        struct port_holder *holders;
        struct port_claim *claims[]; /* by port, from first on; NULL: free */
};

static size_t ports_count(const struct parking_ports *ports)
{
        return (size_t)ports->last - ports->first + 1;
}

int parking_ports_new(uint16_t first, uint16_t last, struct parking_ports **ret_ports)
{
        struct parking_ports *ports;

        if (first == 0 || first > last)
                return -EINVAL;
        ports = calloc(1, sizeof(*ports) + ((size_t)last - first + 1) * sizeof(ports->claims[0]));
        if (!ports)
                return -ENOMEM;
        ports->first = first;
        ports->last = last;
        *ret_ports = ports;
        return 0;
}

static void claim_drop(struct parking_ports *ports, struct port_claim *claim)
{
        ports->claims[claim->port - ports->first] = NULL;
        LIST_REMOVE(claim, of_holder);
        free(claim);
}

static void holder_drop(struct parking_ports *ports, struct port_holder *holder)
{
        while (!LIST_EMPTY(&holder->claims))
                claim_drop(ports, LIST_FIRST(&holder->claims));
        HASH_DEL(ports->holders, holder);
        free(holder);
}

struct parking_ports *parking_ports_free(struct parking_ports *ports)
{
        struct port_holder *holder, *next;

        if (!ports)
                return NULL;
        HASH_ITER(hh, ports->holders, holder, next)
                holder_drop(ports, holder);
        free(ports);
        return NULL;
}

static struct port_holder *holder_find(const struct parking_ports *ports, const char *policy)
{
        struct port_holder *holder;

        HASH_FIND_STR(ports->holders, policy, holder);
        return holder;
}

static struct port_holder *holder_get(struct parking_ports *ports, const char *policy)
{
        struct port_holder *holder = holder_find(ports, policy);
        size_t length = strlen(policy) + 1;

        if (holder)
                return holder;
        holder = calloc(1, sizeof(*holder) + length);
        if (!holder)
                return NULL;
        memcpy(holder->policy, policy, length);
        HASH_ADD_STR(ports->holders, policy, holder);
        if (!holder->hh.tbl) {
                free(holder);
                return NULL;
        }
        return holder;
}

static struct port_claim *claim_find(const struct port_holder *holder, const char *backend)
{
        struct port_claim *claim;

        LIST_FOREACH(claim, &holder->claims, of_holder)
        if (strcmp(claim->backend, backend) == 0)
                return claim;
        return NULL;
}

static int claim_add(struct parking_ports *ports, struct port_holder *holder, const char *backend, uint16_t port)
{
        size_t length = strlen(backend) + 1;
        struct port_claim *claim = calloc(1, sizeof(*claim) + length);

        if (!claim)
                return -ENOMEM;
        memcpy(claim->backend, backend, length);
        claim->holder = holder;
        claim->port = port;
        LIST_INSERT_HEAD(&holder->claims, claim, of_holder);
        ports->claims[port - ports->first] = claim;
        return 0;
}

static int learn(struct parking_ports *ports, const char *policy, const char *backend, uint16_t port)
{
        struct port_holder *holder;
        struct port_claim *claim;

        if (port < ports->first || port > ports->last || ports->claims[port - ports->first])
                return 0;
        holder = holder_get(ports, policy);
        if (!holder)
                return -ENOMEM;
        claim = claim_find(holder, backend);
        if (claim)
                claim_drop(ports, claim); /* another controller has moved it */
        return claim_add(ports, holder, backend, port);
}

int parking_ports_learn(struct parking_ports *ports, const char *policy, const struct scale_to_zero_status *status)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < status->n_frontends; i++)
                if (status->frontends[i].origin == FRONTEND_PARKING)
                        r = learn(ports, policy, status->frontends[i].backend, status->frontends[i].frontend.port);
        return r;
}

static int free_port_find(const struct parking_ports *ports, const char *policy, const char *backend, uint16_t *ret_port)
{
        size_t count = ports_count(ports), start = spread_hash(policy, backend) % count;

        for (size_t i = 0; i < count; i++) {
                size_t place = (start + i) % count;

                if (ports->claims[place])
                        continue;
                *ret_port = (uint16_t)(ports->first + place);
                return 0;
        }
        return -ENOSPC;
}

int parking_ports_assign(struct parking_ports *ports, const char *policy, const char *backend, uint16_t *ret_port)
{
        struct port_holder *holder = holder_get(ports, policy);
        struct port_claim *claim = holder ? claim_find(holder, backend) : NULL;
        uint16_t port;
        int r;

        if (!holder)
                return -ENOMEM;
        if (claim) {
                *ret_port = claim->port;
                return 0;
        }
        r = free_port_find(ports, policy, backend, &port);
        if (r >= 0)
                r = claim_add(ports, holder, backend, port);
        if (r >= 0)
                *ret_port = port;
        return r;
}

void parking_ports_release(struct parking_ports *ports, const char *policy)
{
        struct port_holder *holder = holder_find(ports, policy);

        if (holder)
                holder_drop(ports, holder);
}
