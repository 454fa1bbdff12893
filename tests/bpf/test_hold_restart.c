/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon does with what the one before it held, until it knows all policies. */
#include "machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "hold/hold.h"
#include "hold/state.h"

enum { PORT = 8080, OTHER_PORT = 8081, KNOWN_PORT = 8082, PATIENCE_MS = 10000 };

struct fixture {
        sd_event *event;
        struct hold *hold;
        struct holding *known; /* one that is taken over already: with it the new hooks are attached */
};

static void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
}

static void on_flow(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
}

static void on_drained(struct holding *holding, void *userdata)
{
}

static const struct hold_callbacks callbacks = {
        .demand = on_demand, .released = on_flow, .answered = on_flow, .drained = on_drained
};

static struct holding *make_holding(struct fixture *fixture, uint16_t port)
{
        struct frontend frontend = { .address = address_from_ipv4(htonl(INADDR_LOOPBACK)), .port = port, .protocol = IPPROTO_TCP };
        struct holding_config config = {
                .name = "web", .frontends = &frontend, .n_frontends = 1, .max_held = 16, .hold_timeout_ns = 60 * NSEC_PER_SEC
        };
        struct holding *holding;

        assert_int_equal(holding_new(fixture->hold, &config, NULL, &holding), 0);
        return holding;
}

/* A daemon that has taken the place of one that held. */
static int follow_another(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct hold_config config = { .bpffs = MACHINE_BPFFS };
        struct holding *holding;

        assert_non_null(fixture);
        assert_int_equal(sd_event_new(&fixture->event), 0);
        config.event = fixture->event;
        assert_int_equal(hold_new(&config, &callbacks, fixture, &fixture->hold), 0);
        holding = make_holding(fixture, PORT);
        assert_int_equal(holding_start(holding), 0);
        hold_settle(fixture->hold);
        assert_null(hold_suspend(fixture->hold));
        holding_free(holding);

        assert_int_equal(hold_new(&config, &callbacks, fixture, &fixture->hold), 0);
        fixture->known = make_holding(fixture, KNOWN_PORT);
        assert_int_equal(holding_start(fixture->known), 0);
        *state = fixture;
        return 0;
}

static int end(void **state)
{
        struct fixture *fixture = *state;

        hold_free(fixture->hold);
        holding_free(fixture->known);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static uint64_t counter(const struct fixture *fixture, const char *verdict, const char *reason)
{
        struct hold_counter counters[HOLD_COUNTERS_MAX];
        size_t n = hold_counters(fixture->hold, counters);

        for (size_t i = 0; i < n; i++)
                if (strcmp(counters[i].verdict, verdict) == 0 && strcmp(counters[i].reason, reason) == 0)
                        return counters[i].value;
        fail();
        return 0;
}

static int connecting(void)
{
        struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), -1);
        assert_int_equal(errno, EINPROGRESS);
        return fd;
}

static void run_until(struct fixture *fixture, const char *verdict, const char *reason)
{
        uint64_t before = counter(fixture, verdict, reason), until = now_monotonic_ns() + PATIENCE_MS * NSEC_PER_MSEC;

        while (counter(fixture, verdict, reason) == before) {
                assert_true(now_monotonic_ns() < until);
                assert_true(sd_event_run(fixture->event, PATIENCE_MS * 1000) >= 0);
        }
}

static void until_policies_are_known_first_packets_are_left_to_their_retransmission(void **state)
{
        struct fixture *fixture = *state;
        int client = connecting();
        struct pollfd ended = { .fd = client, .events = POLLOUT };

        run_until(fixture, "dropped", "unsettled");

        assert_int_equal(poll(&ended, 1, 0), 0);
        assert_int_equal(counter(fixture, "released", "late"), 0);
        close(client);
}

static void but_for_no_longer_than_a_planned_stop_may_take(void **state)
{
        struct fixture *fixture = *state;
        struct pollfd ended = { .events = POLLOUT };

        fixture->hold->began_ns -= 20 * NSEC_PER_SEC; /* as if it had begun so long ago */
        ended.fd = connecting();
        run_until(fixture, "released", "late");

        assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
        assert_true(ended.revents & POLLERR); /* refused, since nobody listens */
        assert_int_equal(counter(fixture, "dropped", "unsettled"), 0);
        close(ended.fd);
}

static void once_policies_are_known_nothing_is_dropped_for_want_of_one(void **state)
{
        struct fixture *fixture = *state;
        int client = connecting();
        struct pollfd ended = { .fd = client, .events = POLLOUT };

        hold_settle(fixture->hold);
        hold_consume_ring(fixture->hold); /* what came before that */

        assert_int_equal(counter(fixture, "released", "late"), 1);
        assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
        close(client);
}

static void what_the_one_before_held_is_known_until_it_is_taken_over_or_let_go(void **state)
{
        struct fixture *fixture = *state;
        struct holding *taken = make_holding(fixture, PORT), *other = make_holding(fixture, OTHER_PORT);

        assert_true(holding_is_left(taken));
        assert_false(holding_is_left(other));
        assert_int_equal(holding_start(taken), 0);
        assert_false(holding_is_left(taken));
        holding_free(taken);
        holding_free(other);
}

static void what_the_one_before_held_and_nobody_takes_over_is_let_go(void **state)
{
        struct fixture *fixture = *state;
        struct holding *holding = make_holding(fixture, PORT);
        struct pollfd ended = { .events = POLLOUT };

        hold_settle(fixture->hold);

        assert_false(holding_is_left(holding));
        ended.fd = connecting();
        assert_int_equal(poll(&ended, 1, PATIENCE_MS), 1);
        assert_true(ended.revents & POLLERR);                      /* refused, since nobody listens */
        assert_int_equal(counter(fixture, "released", "late"), 0); /* no hook had it */
        close(ended.fd);
        holding_free(holding);
}

static int enter(void **state)
{
        machine_enter();
        return 0;
}

#define RESTART_TEST(test) cmocka_unit_test_setup_teardown(test, follow_another, end)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                RESTART_TEST(until_policies_are_known_first_packets_are_left_to_their_retransmission),
                RESTART_TEST(but_for_no_longer_than_a_planned_stop_may_take),
                RESTART_TEST(once_policies_are_known_nothing_is_dropped_for_want_of_one),
                RESTART_TEST(what_the_one_before_held_is_known_until_it_is_taken_over_or_let_go),
                RESTART_TEST(what_the_one_before_held_and_nobody_takes_over_is_let_go),
        };

        return cmocka_run_group_tests(tests, enter, NULL);
}
