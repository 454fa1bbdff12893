/* SPDX-License-Identifier: Apache-2.0 */
/* Frontends that a data plane translates: when their flows may go on, and which way.
 *
 * A releasing frontend goes one of two ways. *Direct*: each flow is given an endpoint by an entry of its own, at once. *Data plane*: flows
 * wait until that has been proven and then go on unchanged; for when direct release is not wanted or cannot be. A proven data plane is
 * also what ends the holding, whichever way its flows went.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hold/conntrack.h"
#include "hold/data_plane.h"
#include "hold/endpoints.h"
#include "hold/given.h"
#include "hold/hold.h"

struct held_frontend;

struct translation { /* one a hold */
        struct hold *hold;
        bool wait, masquerade_all;
        struct prefix *cluster;
        size_t n_cluster;
        struct conntrack *conntrack;
        struct given *given;
        struct translation_nat {
                uint64_t looked_ns;
                bool works;
        } nat[2]; /* of IPv6, of IPv4 */
};

enum translated_way {
        WAY_DIRECT,
        WAY_CONFIGURED, /* the others: by the data plane, because … */
        WAY_AFFINITY,
        WAY_NO_NAT,
        WAY_REFUSED, /* … the kernel refused an entry */
        WAY_MAX,
};

struct translated { /* one a frontend */
        bool local, affinity, parking;
        uint32_t backend;
        enum holding_masquerade masquerade;
        struct prefix *source_ranges;
        size_t n_source_ranges;
        enum translated_way way;
        bool proven;      /* the data plane */
        uint64_t look_ns; /* when a waiting flow may go on; UINT64_MAX: after something has happened */
        struct endpoints endpoints;
        struct endpoint plane; /* the data plane, as if it were one */
        struct data_plane_probe probe;
};

int translation_new(struct hold *hold, const struct hold_translation *config, struct translation **ret_translation);
struct translation *translation_free(struct translation *translation);
DEFINE_CLEANUP(struct translation, translation_free)
/* Follows connection tracking while some frontend is releasing. */
void translation_follow(struct hold *hold);

int translated_new(const struct holding_service *service, struct translated **ret_translated);
struct translated *translated_free(struct translated *translated); /* nothing is in flight */
DEFINE_CLEANUP(struct translated, translated_free)

/* Its endpoints are no more known, nor the data plane proven; what is in flight waits again. */
void translated_reset(struct held_frontend *frontend);
int translated_set_endpoints(struct held_frontend *frontend, const struct holding_endpoint *endpoints, size_t n_endpoints);
/* Where on this host a data plane that does not know the endpoints yet leads @frontend's flows of that family; NULL: nowhere. */
const struct held_frontend *translated_parking(const struct held_frontend *frontend, bool ipv4);
/* Observes, probes and releases. Returns whether it stopped for the event loop's sake only. */
bool translated_run(struct held_frontend *frontend);
/* When to run again, were nothing to happen; UINT64_MAX: not at all. */
uint64_t translated_next_ns(const struct held_frontend *frontend);
/* Whether the data plane is known, or has to be taken, to serve it. */
bool translated_is_settled(const struct held_frontend *frontend, uint64_t now_ns);

const char *translated_way_to_string(enum translated_way way); /* "direct", "data-plane-affinity", … */
