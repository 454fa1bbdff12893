/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "hold/endpoints.h"
#include "hold/prefixes.h"

enum { FLOWS = 16 };

#define NOW_NS (100 * NSEC_PER_SEC)

static const char *const names[] = { "10.0.0.1", "10.0.0.2", "fd00::1" };

static struct holding_endpoint at(const char *text, bool on_this_node)
{
        struct holding_endpoint endpoint = { .port = 8080, .on_this_node = on_this_node };

        assert_int_equal(address_parse(text, &endpoint.address), 0);
        return endpoint;
}

struct fixture {
        struct endpoints endpoints, gone;
        struct pacing_flow flows[FLOWS];
        unsigned n_flows;
        uint64_t now_ns, free_ns;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct holding_endpoint list[] = { at(names[0], true), at(names[1], false), at(names[2], true) };

        assert_non_null(fixture);
        TAILQ_INIT(&fixture->endpoints);
        TAILQ_INIT(&fixture->gone);
        fixture->now_ns = NOW_NS;
        assert_int_equal(endpoints_replace(&fixture->endpoints, list, ELEMENTSOF(list), &fixture->gone), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        endpoints_free(&fixture->endpoints);
        endpoints_free(&fixture->gone);
        free(fixture);
        return 0;
}

static struct endpoint *choose(struct fixture *fixture, bool local)
{
        return endpoints_choose(&fixture->endpoints, true, local, fixture->now_ns, &fixture->free_ns);
}

static struct endpoint *named(struct fixture *fixture, size_t index)
{
        struct holding_endpoint wanted = at(names[index], false);

        return endpoints_find(&fixture->endpoints, &wanted.address, wanted.port);
}

static struct pacing_flow *give(struct fixture *fixture, struct endpoint *endpoint)
{
        struct pacing_flow *flow = &fixture->flows[fixture->n_flows++];

        assert_non_null(endpoint);
        pacing_sent(&endpoint->pacing, flow, fixture->now_ns);
        endpoint_given(endpoint, fixture->now_ns);
        return flow;
}

static void answer(struct fixture *fixture, struct endpoint *endpoint, struct pacing_flow *flow)
{
        pacing_remove(&endpoint->pacing, flow);
        endpoint_answered(endpoint, fixture->now_ns);
}

static void flows_are_spread_over_endpoints_of_their_family(void **state)
{
        struct fixture *fixture = *state;
        unsigned given[2] = { 0 };

        for (unsigned i = 0; i < 6; i++) {
                struct endpoint *endpoint = choose(fixture, false);

                assert_true(address_is_ipv4(&endpoint->at.address));
                given[endpoint == named(fixture, 1)]++;
                give(fixture, endpoint);
                fixture->now_ns++;
        }
        assert_int_equal(given[0], 3);
        assert_int_equal(given[1], 3);
}

static void only_endpoints_of_this_node_count_where_only_those_may(void **state)
{
        struct fixture *fixture = *state;

        for (unsigned i = 0; i < ENDPOINT_WINDOW_FIRST; i++) {
                assert_ptr_equal(choose(fixture, true), named(fixture, 0));
                give(fixture, named(fixture, 0));
        }
        assert_null(choose(fixture, true));
        assert_int_equal(fixture->free_ns, UINT64_MAX);
}

static void answers_open_the_window_and_silence_halves_it(void **state)
{
        struct fixture *fixture = *state;
        struct endpoint *endpoint = named(fixture, 0);

        for (unsigned i = 0; i < 4; i++)
                answer(fixture, endpoint, give(fixture, endpoint));
        assert_int_equal(endpoint->window, ENDPOINT_WINDOW_FIRST + 4);

        for (unsigned i = 0; i < 8; i++)
                endpoint_silent(endpoint);
        assert_int_equal(endpoint->window, 1);
        for (unsigned i = 0; i < 1000; i++)
                endpoint_answered(endpoint, fixture->now_ns);
        assert_int_equal(endpoint->window, ENDPOINT_WINDOW_MAX);
}

static void past_a_burst_flows_are_spaced_however_fast_they_are_answered(void **state)
{
        struct fixture *fixture = *state;
        struct endpoint *endpoint = named(fixture, 0);

        for (unsigned i = 0; i < ENDPOINT_BURST; i++) {
                assert_true(endpoint_free_ns(endpoint) <= fixture->now_ns);
                answer(fixture, endpoint, give(fixture, endpoint));
        }
        assert_int_equal(endpoint_free_ns(endpoint), fixture->now_ns + ENDPOINT_SPACING_NS);

        fixture->now_ns += ENDPOINT_BURST * ENDPOINT_SPACING_NS; /* a pause gives the burst back */
        for (unsigned i = 0; i < ENDPOINT_BURST; i++) {
                assert_true(endpoint_free_ns(endpoint) <= fixture->now_ns);
                answer(fixture, endpoint, give(fixture, endpoint));
        }
}

static void an_endpoint_that_fails_rests_twice_as_long_each_time(void **state)
{
        struct fixture *fixture = *state;
        struct endpoint *endpoint = named(fixture, 0);
        uint64_t rest_ns = ENDPOINT_REST_NS;

        for (unsigned i = 0; i < 10; i++) {
                endpoint_failed(endpoint, fixture->now_ns);
                assert_ptr_equal(choose(fixture, false), named(fixture, 1));
                assert_null(choose(fixture, true));
                assert_int_equal(fixture->free_ns, fixture->now_ns + rest_ns);
                fixture->now_ns = fixture->free_ns;
                assert_ptr_equal(choose(fixture, true), endpoint);
                rest_ns = MIN(rest_ns * 2, ENDPOINT_REST_MAX_NS);
        }
        assert_int_equal(rest_ns, ENDPOINT_REST_MAX_NS);

        give(fixture, endpoint); /* one tries it */
        assert_null(choose(fixture, true));
        answer(fixture, endpoint, &fixture->flows[0]);
        endpoint_failed(endpoint, fixture->now_ns);
        assert_int_equal(endpoint_free_ns(endpoint), fixture->now_ns + ENDPOINT_REST_NS);
}

static void replaced_endpoints_keep_their_state_and_the_gone_are_handed_over(void **state)
{
        struct fixture *fixture = *state;
        struct holding_endpoint list[] = { at(names[1], true), at("10.0.0.9", true), at("10.0.0.9", true) };
        struct endpoint *kept = named(fixture, 1), *gone = named(fixture, 0);

        give(fixture, kept);
        assert_int_equal(endpoints_replace(&fixture->endpoints, list, ELEMENTSOF(list), &fixture->gone), 0);

        assert_ptr_equal(named(fixture, 1), kept);
        assert_int_equal(kept->pacing.n_in_flight, 1);
        assert_true(kept->at.on_this_node);
        assert_null(named(fixture, 0));
        assert_ptr_equal(TAILQ_FIRST(&fixture->gone), gone);
        assert_non_null(endpoints_find(&fixture->endpoints, &list[1].address, 8080));
        assert_ptr_equal(TAILQ_NEXT(TAILQ_NEXT(TAILQ_FIRST(&fixture->endpoints), link), link), NULL);
        assert_false(endpoints_usable(&fixture->endpoints, false, false));
}

struct intersection_row {
        const char *a, *b, *expected; /* with blanks between */
};

static size_t read_prefixes(const char *text, struct prefix *prefixes)
{
        char copy[256], *rest = NULL;
        size_t n = 0;

        strcpy(copy, text);
        for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                assert_int_equal(prefix_parse(word, &prefixes[n++]), 0);
        return n;
}

static void an_intersection_has_what_is_in_both_lists(void **state)
{
        static const struct intersection_row rows[] = {
                { "10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16" },
                { "10.1.0.0/16", "10.0.0.0/8 192.0.2.0/24", "10.1.0.0/16" },
                { "10.0.0.0/8 fd00::/8", "fd00:1::/32 10.2.0.0/16", "10.2.0.0/16 fd00:1::/32" },
                { "10.0.0.0/8", "192.0.2.0/24", "" },
                { "10.0.0.0/8", "fd00::/8", "" },
                { "0.0.0.0/0", "192.0.2.1", "192.0.2.1" },
                { "192.0.2.0/24", "192.0.2.0/24", "192.0.2.0/24" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct prefix a[4], b[4], expected[4];
                size_t n_a = read_prefixes(rows[i].a, a), n_b = read_prefixes(rows[i].b, b), n;
                _cleanup_(freep) struct prefix *both = NULL;

                assert_int_equal(prefixes_intersect(a, n_a, b, n_b, &both, &n), 0);
                assert_int_equal(n, read_prefixes(rows[i].expected, expected));
                assert_memory_equal(both, expected, n * sizeof(*both));
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(flows_are_spread_over_endpoints_of_their_family, set_up, tear_down),
                cmocka_unit_test_setup_teardown(only_endpoints_of_this_node_count_where_only_those_may, set_up, tear_down),
                cmocka_unit_test_setup_teardown(answers_open_the_window_and_silence_halves_it, set_up, tear_down),
                cmocka_unit_test_setup_teardown(past_a_burst_flows_are_spaced_however_fast_they_are_answered, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_endpoint_that_fails_rests_twice_as_long_each_time, set_up, tear_down),
                cmocka_unit_test_setup_teardown(replaced_endpoints_keep_their_state_and_the_gone_are_handed_over, set_up,
                                                tear_down),
                cmocka_unit_test(an_intersection_has_what_is_in_both_lists),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
