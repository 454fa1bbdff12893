/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/endpoints.h"

#include <errno.h>

void endpoint_init(struct endpoint *endpoint, const struct holding_endpoint *at)
{
        *endpoint = (struct endpoint){ .at = *at, .window = ENDPOINT_WINDOW_FIRST };
        pacing_init(&endpoint->pacing);
}

uint64_t endpoint_free_ns(const struct endpoint *endpoint)
{
        uint64_t burst_ns = (ENDPOINT_BURST - 1) * ENDPOINT_SPACING_NS;

        if (endpoint->pacing.n_in_flight >= endpoint->window)
                return UINT64_MAX;
        return MAX(endpoint->resting_ns, endpoint->paced_ns > burst_ns ? endpoint->paced_ns - burst_ns : 0);
}

void endpoint_given(struct endpoint *endpoint, uint64_t now_ns)
{
        endpoint->paced_ns = MAX(endpoint->paced_ns, now_ns) + ENDPOINT_SPACING_NS;
        endpoint->given_ns = now_ns;
}

void endpoint_answered(struct endpoint *endpoint, uint64_t now_ns)
{
        endpoint->window = MIN(endpoint->window + 1, (uint32_t)ENDPOINT_WINDOW_MAX);
        endpoint->rest_ns = 0;
        endpoint->resting_ns = 0;
        endpoint->answered_ns = now_ns;
}

void endpoint_silent(struct endpoint *endpoint)
{
        endpoint->window = MAX(endpoint->window / 2, 1U);
}

void endpoint_failed(struct endpoint *endpoint, uint64_t now_ns)
{
        endpoint->rest_ns = MIN(endpoint->rest_ns ? endpoint->rest_ns * 2 : ENDPOINT_REST_NS, ENDPOINT_REST_MAX_NS);
        endpoint->window = 1;
        endpoint->resting_ns = now_ns + endpoint->rest_ns;
}

void endpoint_rest(struct endpoint *endpoint, uint64_t now_ns)
{
        endpoint->resting_ns = now_ns + ENDPOINT_REST_NS;
}

struct endpoint *endpoints_find(const struct endpoints *endpoints, const struct address *address, uint16_t port)
{
        struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, endpoints, link)
                if (endpoint->at.port == port && address_equal(&endpoint->at.address, address))
                        return endpoint;
        return NULL;
}

void endpoints_free(struct endpoints *endpoints)
{
        struct endpoint *endpoint;

        while ((endpoint = TAILQ_FIRST(endpoints))) {
                TAILQ_REMOVE(endpoints, endpoint, link);
                free(endpoint);
        }
}

static int allocate_new(const struct endpoints *endpoints, const struct holding_endpoint *at, size_t n_at, struct endpoints *fresh)
{
        for (size_t i = 0; i < n_at; i++) {
                struct endpoint *endpoint;

                if (endpoints_find(endpoints, &at[i].address, at[i].port) || endpoints_find(fresh, &at[i].address, at[i].port))
                        continue;
                endpoint = malloc(sizeof(*endpoint));
                if (!endpoint)
                        return -ENOMEM;
                endpoint_init(endpoint, &at[i]);
                TAILQ_INSERT_TAIL(fresh, endpoint, link);
        }
        return 0;
}

int endpoints_replace(struct endpoints *endpoints, const struct holding_endpoint *at, size_t n_at, struct endpoints *gone)
{
        struct endpoints fresh = TAILQ_HEAD_INITIALIZER(fresh);
        struct endpoint *endpoint, *next;

        n_at = MIN(n_at, (size_t)ENDPOINTS_MAX);
        if (allocate_new(endpoints, at, n_at, &fresh) < 0) {
                endpoints_free(&fresh);
                return -ENOMEM;
        }

        TAILQ_FOREACH(endpoint, endpoints, link)
                endpoint->wanted = false;
        for (size_t i = 0; i < n_at; i++) {
                endpoint = endpoints_find(endpoints, &at[i].address, at[i].port);
                if (!endpoint)
                        continue;
                endpoint->at = at[i];
                endpoint->wanted = true;
        }
        for (endpoint = TAILQ_FIRST(endpoints); endpoint; endpoint = next) {
                next = TAILQ_NEXT(endpoint, link);
                if (endpoint->wanted)
                        continue;
                TAILQ_REMOVE(endpoints, endpoint, link);
                TAILQ_INSERT_TAIL(gone, endpoint, link);
        }
        TAILQ_CONCAT(endpoints, &fresh, link);
        return 0;
}

static bool is_usable(const struct endpoint *endpoint, bool ipv4, bool local)
{
        return address_is_ipv4(&endpoint->at.address) == ipv4 && (!local || endpoint->at.on_this_node);
}

bool endpoints_usable(const struct endpoints *endpoints, bool ipv4, bool local)
{
        const struct endpoint *endpoint;

        TAILQ_FOREACH(endpoint, endpoints, link)
                if (is_usable(endpoint, ipv4, local))
                        return true;
        return false;
}

static bool is_better(const struct endpoint *a, const struct endpoint *b)
{
        if (a->pacing.n_in_flight != b->pacing.n_in_flight)
                return a->pacing.n_in_flight < b->pacing.n_in_flight;
        return a->given_ns < b->given_ns;
}

struct endpoint *endpoints_choose(const struct endpoints *endpoints, bool ipv4, bool local, uint64_t now_ns, uint64_t *ret_free_ns)
{
        struct endpoint *endpoint, *best = NULL;
        uint64_t first_ns = UINT64_MAX;

        TAILQ_FOREACH(endpoint, endpoints, link) {
                uint64_t free_ns = endpoint_free_ns(endpoint);

                if (!is_usable(endpoint, ipv4, local))
                        continue;
                if (free_ns > now_ns)
                        first_ns = MIN(first_ns, free_ns);
                else if (!best || is_better(endpoint, best))
                        best = endpoint;
        }
        *ret_free_ns = first_ns;
        return best;
}
