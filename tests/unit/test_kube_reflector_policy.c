/* SPDX-License-Identifier: Apache-2.0 */
/* What a reflector does after each outcome of a request, row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/time.h"
#include "kube/reflector_policy.h"

#define MS (NSEC_PER_MSEC)
#define S (NSEC_PER_SEC)
#define NOW (1000 * S)

enum before {
        FIRST_WATCH_LIST,  /* the very first request */
        AGAIN_WATCH_LIST,  /* synced before; at the last version */
        NEWEST_WATCH_LIST, /* ... which the server does not have */
        FIRST_LIST,
        AGAIN_LIST,
        NEWEST_LIST,
        WATCHING,
        WATCHING_LISTER, /* without watch lists */
};

static struct reflector_policy policy_before(enum before before)
{
        struct reflector_step step;
        struct reflector_policy policy;

        reflector_policy_init(
                &policy, before != FIRST_LIST && before != AGAIN_LIST && before != NEWEST_LIST && before != WATCHING_LISTER, &step);
        if (before == FIRST_WATCH_LIST || before == FIRST_LIST)
                return policy;
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW, 0, &step);
        if (before == WATCHING || before == WATCHING_LISTER)
                return policy;
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_STATUS, .status = { .code = 410 } }, NOW, 0,
                              &step);
        if (before == NEWEST_LIST || before == NEWEST_WATCH_LIST)
                reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_STATUS, .status = { .code = 410 } },
                                      NOW, 0, &step);
        policy.backoff_used_ns = 0; /* as if the last one had been long ago */
        return policy;
}

#define STATUS(...)                                                                                                                \
        {                                                                                                                          \
                .end = REFLECTOR_STATUS, .status = { __VA_ARGS__ }                                                                 \
        }
#define EVENT_STATUS(...)                                                                                                          \
        {                                                                                                                          \
                .end = REFLECTOR_STATUS, .in_stream = true, .status = { __VA_ARGS__ }                                              \
        }
#define LONG 60 * S

static const struct row {
        const char *what;
        enum before before;
        struct reflector_outcome outcome;
        struct reflector_step expected; /* with a chance of 0 */
} rows[] = {
        { "watch list synced",
          FIRST_WATCH_LIST,
          { .end = REFLECTOR_SYNCED },
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 0 } },
        { "watch list refused",
          FIRST_WATCH_LIST,
          { .end = REFLECTOR_REFUSED },
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },
        { "watch list broken",
          FIRST_WATCH_LIST,
          { .end = REFLECTOR_BROKEN },
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },
        { "watch list ended early",
          FIRST_WATCH_LIST,
          { .end = REFLECTOR_CLOSED, .lasted_ns = LONG },
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },
        { "watch list unknown",
          FIRST_WATCH_LIST,
          STATUS(.code = 422, .reason = "Invalid"),
          { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, true, 0 } },
        { "watch list bad request", AGAIN_WATCH_LIST, STATUS(.code = 400), { REFLECTOR_LIST, REFLECTOR_VERSION_LAST, false, 0 } },
        { "watch list initialising",
          FIRST_WATCH_LIST,
          STATUS(.code = 429, .retry_after_ns = 2 * S),
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 2 * S } },
        { "watch list too many",
          FIRST_WATCH_LIST,
          STATUS(.code = 429),
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },
        { "watch list unavailable, for a time",
          FIRST_WATCH_LIST,
          STATUS(.code = 503, .retry_after_ns = 5 * S),
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 5 * S } },
        { "watch list internal error", FIRST_WATCH_LIST, STATUS(.code = 500), { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, true, 0 } },
        { "watch list unauthorized",
          FIRST_WATCH_LIST,
          STATUS(.code = 401),
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },
        { "watch list gone", AGAIN_WATCH_LIST, STATUS(.code = 410), { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 0 } },
        { "watch list too large",
          AGAIN_WATCH_LIST,
          EVENT_STATUS(.code = 504, .too_large = true, .retry_after_ns = S),
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 0 } },
        { "watch list refused at the newest",
          NEWEST_WATCH_LIST,
          { .end = REFLECTOR_REFUSED },
          { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_NEWEST, false, 800 * MS } },

        { "list synced", FIRST_LIST, { .end = REFLECTOR_SYNCED }, { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 0 } },
        { "list refused", FIRST_LIST, { .end = REFLECTOR_REFUSED }, { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, true, 800 * MS } },
        { "list cut off", AGAIN_LIST, { .end = REFLECTOR_BROKEN }, { REFLECTOR_LIST, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "list initialising",
          FIRST_LIST,
          STATUS(.code = 429, .retry_after_ns = 3 * S),
          { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, true, 3 * S } },
        { "list gone", AGAIN_LIST, STATUS(.reason = "Expired"), { REFLECTOR_LIST, REFLECTOR_VERSION_NEWEST, true, 0 } },
        { "list too large",
          AGAIN_LIST,
          STATUS(.code = 504, .too_large = true, .retry_after_ns = S),
          { REFLECTOR_LIST, REFLECTOR_VERSION_NEWEST, true, 0 } },
        { "list gone even so", NEWEST_LIST, STATUS(.code = 410), { REFLECTOR_LIST, REFLECTOR_VERSION_NEWEST, true, 800 * MS } },
        { "page gone",
          FIRST_LIST,
          { .end = REFLECTOR_STATUS, .status = { .code = 410 }, .continued = true },
          { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, false, 0 } },
        { "list forbidden", FIRST_LIST, STATUS(.code = 403), { REFLECTOR_LIST, REFLECTOR_VERSION_ANY, true, 800 * MS } },

        { "watch ended",
          WATCHING,
          { .end = REFLECTOR_CLOSED, .lasted_ns = LONG },
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 0 } },
        { "watch ended at once",
          WATCHING,
          { .end = REFLECTOR_CLOSED, .lasted_ns = 999 * MS },
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch ended at once, with events",
          WATCHING,
          { .end = REFLECTOR_CLOSED, .lasted_ns = 999 * MS, .events = 1 },
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 0 } },
        { "watch refused", WATCHING, { .end = REFLECTOR_REFUSED }, { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch broken",
          WATCHING,
          { .end = REFLECTOR_BROKEN, .lasted_ns = LONG, .events = 9 },
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch initialising",
          WATCHING,
          STATUS(.code = 429, .retry_after_ns = S),
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, S } },
        { "watch too many, in the stream",
          WATCHING,
          EVENT_STATUS(.code = 429),
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch internal error, in the stream",
          WATCHING,
          EVENT_STATUS(.code = 500),
          { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch unavailable", WATCHING, STATUS(.code = 503), { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch unauthorized", WATCHING, STATUS(.code = 401), { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch forbidden", WATCHING, STATUS(.code = 403), { REFLECTOR_WATCH, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch gone", WATCHING, STATUS(.code = 410), { REFLECTOR_WATCH_LIST, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch expired, in the stream",
          WATCHING_LISTER,
          EVENT_STATUS(.code = 410, .reason = "Expired"),
          { REFLECTOR_LIST, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch too large",
          WATCHING_LISTER,
          STATUS(.code = 504, .too_large = true, .retry_after_ns = S),
          { REFLECTOR_LIST, REFLECTOR_VERSION_LAST, false, 800 * MS } },
        { "watch of what is not there",
          WATCHING_LISTER,
          STATUS(.code = 404),
          { REFLECTOR_LIST, REFLECTOR_VERSION_LAST, false, 800 * MS } },
};

static void each_outcome_leads_to_its_step(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct reflector_policy policy = policy_before(rows[i].before);
                const struct reflector_step *expected = &rows[i].expected;
                struct reflector_step step;

                reflector_policy_next(&policy, &rows[i].outcome, NOW + 300 * S, 0, &step);
                if (step.action != expected->action || step.version != expected->version || step.paged != expected->paged ||
                    step.delay_ns != expected->delay_ns)
                        fail_msg("%s: action %d, version %d, paged %d, after %llu ms", rows[i].what, step.action, step.version,
                                 step.paged, (unsigned long long)(step.delay_ns / MS));
        }
}

static void it_begins_with_a_watch_list_or_with_a_list(void **state)
{
        struct reflector_policy policy;
        struct reflector_step step;

        reflector_policy_init(&policy, true, &step);
        assert_int_equal(step.action, REFLECTOR_WATCH_LIST);
        assert_int_equal(step.version, REFLECTOR_VERSION_NEWEST);
        reflector_policy_init(&policy, false, &step);
        assert_int_equal(step.action, REFLECTOR_LIST);
        assert_int_equal(step.version, REFLECTOR_VERSION_ANY);
        assert_int_equal(step.delay_ns, 0);
}

static uint64_t refused_delay(struct reflector_policy *policy, uint64_t now_ns, double chance)
{
        struct reflector_step step;

        reflector_policy_next(policy, &(struct reflector_outcome){ .end = REFLECTOR_REFUSED }, now_ns, chance, &step);
        return step.delay_ns;
}

static void the_backoff_doubles_up_to_half_a_minute_and_is_jittered(void **state)
{
        static const uint64_t expected_ms[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000 };
        struct reflector_policy policy = policy_before(WATCHING), jittered = policy;
        uint64_t now_ns = NOW;

        for (size_t i = 0; i < ELEMENTSOF(expected_ms); i++) {
                uint64_t delay_ns = refused_delay(&policy, now_ns, 0), late_ns = refused_delay(&jittered, now_ns, 0.5);

                assert_int_equal(delay_ns, expected_ms[i] * MS);
                assert_int_equal(late_ns, expected_ms[i] * MS * 3 / 2);
                now_ns += delay_ns;
        }
}

static void two_quiet_minutes_reset_the_backoff(void **state)
{
        struct reflector_policy policy = policy_before(WATCHING);

        assert_int_equal(refused_delay(&policy, NOW, 0), 800 * MS);
        assert_int_equal(refused_delay(&policy, NOW + 120 * S, 0), 1600 * MS);
        assert_int_equal(refused_delay(&policy, NOW + 241 * S, 0), 800 * MS);
}

static void a_server_that_answers_others_is_not_waited_for_any_longer(void **state)
{
        struct reflector_policy policy = policy_before(WATCHING);
        struct reflector_step step;

        for (int i = 0; i < 4; i++)
                refused_delay(&policy, NOW, 0);
        reflector_policy_reachable(&policy, 0.5, &step);
        assert_int_equal(step.action, REFLECTOR_WATCH);
        assert_int_equal(step.version, REFLECTOR_VERSION_LAST);
        assert_int_equal(step.delay_ns, 400 * MS);
        assert_int_equal(refused_delay(&policy, NOW, 0), 800 * MS);
}

static void a_sync_alone_does_not_reset_the_backoff(void **state)
{
        struct reflector_policy policy = policy_before(FIRST_WATCH_LIST);
        struct reflector_step step;

        refused_delay(&policy, NOW, 0);
        refused_delay(&policy, NOW, 0);
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW, 0, &step);
        assert_int_equal(refused_delay(&policy, NOW, 0), 3200 * MS);
}

static void what_the_server_asks_for_is_jittered_upwards_only(void **state)
{
        const struct reflector_outcome outcome = STATUS(.code = 429, .retry_after_ns = 10 * S);

        for (double chance = 0; chance < 1; chance += 0.25) {
                struct reflector_policy policy = policy_before(WATCHING);
                struct reflector_step step;

                reflector_policy_next(&policy, &outcome, NOW, chance, &step);
                assert_int_equal(step.delay_ns, 10 * S + (uint64_t)(chance * (double)S / 5));
        }
}

static void watch_lists_that_never_complete_are_followed_by_a_list(void **state)
{
        struct reflector_policy policy = policy_before(FIRST_WATCH_LIST);
        struct reflector_step step = { 0 };

        for (size_t i = 1; i <= REFLECTOR_WATCH_LIST_TRIES; i++) {
                assert_int_equal(policy.current.action, REFLECTOR_WATCH_LIST);
                reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_BROKEN }, NOW, 0, &step);
        }
        assert_int_equal(step.action, REFLECTOR_LIST);

        /* a later one may work again */
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW, 0, &step);
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_STATUS, .status = { .code = 410 } }, NOW, 0,
                              &step);
        assert_int_equal(step.action, REFLECTOR_WATCH_LIST);
}

static void a_server_that_does_not_know_watch_lists_is_not_asked_again(void **state)
{
        struct reflector_policy policy = policy_before(FIRST_WATCH_LIST);
        struct reflector_step step;

        reflector_policy_next(&policy, &(struct reflector_outcome)STATUS(.code = 422), NOW, 0, &step);
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW, 0, &step);
        reflector_policy_next(&policy, &(struct reflector_outcome)STATUS(.code = 410), NOW, 0, &step);
        assert_int_equal(step.action, REFLECTOR_LIST);
}

static void an_outage_of_any_length_costs_no_list(void **state)
{
        struct reflector_policy policy = policy_before(WATCHING);
        struct reflector_step step;

        for (size_t i = 0; i < 1000; i++) {
                const struct reflector_outcome refused = { .end = REFLECTOR_REFUSED }, unavailable = STATUS(.code = 503);

                reflector_policy_next(&policy, i % 2 ? &refused : &unavailable, NOW + i * S, 0, &step);
                assert_int_equal(step.action, REFLECTOR_WATCH);
        }
}

static void a_watch_that_can_never_go_on_is_given_up_for_a_list(void **state)
{
        const struct reflector_outcome broken = { .end = REFLECTOR_BROKEN };
        struct reflector_policy policy = policy_before(WATCHING);
        struct reflector_step step;
        size_t tries = 0;

        do {
                reflector_policy_next(&policy, &broken, NOW, 0, &step);
                tries++;
        } while (step.action == REFLECTOR_WATCH && tries < 100);
        assert_int_equal(tries, 10);
        assert_int_equal(step.action, REFLECTOR_WATCH_LIST);
}

static void a_watch_that_brings_events_is_not_given_up(void **state)
{
        struct reflector_policy policy = policy_before(WATCHING);
        struct reflector_step step;

        for (size_t i = 1; i <= 100; i++) {
                reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_BROKEN, .events = i % 9 == 0 }, NOW, 0,
                                      &step);
                assert_int_equal(step.action, REFLECTOR_WATCH);
        }
}

static void an_outage_does_not_delay_the_list_after_it_but_lists_in_a_row_are_backed_off(void **state)
{
        struct reflector_policy policy = policy_before(WATCHING);
        struct reflector_step step;

        for (int i = 0; i < 5; i++)
                reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_REFUSED }, NOW, 0, &step);
        assert_true(step.delay_ns > 10 * S);
        reflector_policy_next(&policy, &(struct reflector_outcome)STATUS(.code = 410), NOW, 0.5, &step);
        assert_int_equal(step.action, REFLECTOR_WATCH_LIST);
        assert_int_equal(step.delay_ns, 1200 * MS);

        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW, 0, &step);
        reflector_policy_next(&policy, &(struct reflector_outcome)STATUS(.code = 410), NOW + 119 * S, 0, &step);
        assert_true(step.delay_ns > 10 * S);
        reflector_policy_next(&policy, &(struct reflector_outcome){ .end = REFLECTOR_SYNCED }, NOW + 119 * S, 0, &step);
        reflector_policy_next(&policy, &(struct reflector_outcome)STATUS(.code = 410), NOW + 240 * S, 0, &step);
        assert_int_equal(step.delay_ns, 800 * MS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_outcome_leads_to_its_step),
                cmocka_unit_test(it_begins_with_a_watch_list_or_with_a_list),
                cmocka_unit_test(the_backoff_doubles_up_to_half_a_minute_and_is_jittered),
                cmocka_unit_test(two_quiet_minutes_reset_the_backoff),
                cmocka_unit_test(a_server_that_answers_others_is_not_waited_for_any_longer),
                cmocka_unit_test(a_sync_alone_does_not_reset_the_backoff),
                cmocka_unit_test(what_the_server_asks_for_is_jittered_upwards_only),
                cmocka_unit_test(watch_lists_that_never_complete_are_followed_by_a_list),
                cmocka_unit_test(a_server_that_does_not_know_watch_lists_is_not_asked_again),
                cmocka_unit_test(an_outage_of_any_length_costs_no_list),
                cmocka_unit_test(a_watch_that_can_never_go_on_is_given_up_for_a_list),
                cmocka_unit_test(a_watch_that_brings_events_is_not_given_up),
                cmocka_unit_test(an_outage_does_not_delay_the_list_after_it_but_lists_in_a_row_are_backed_off),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
