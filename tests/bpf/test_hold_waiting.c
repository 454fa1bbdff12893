/* SPDX-License-Identifier: Apache-2.0 */
/* Who is held, for how long, and what ends the waiting but a release: timeouts, stops, refusals, another daemon. */
#include "hold_bench.h"

/* The first client of this host, once it is held. */
static int held_client(struct fixture *fixture)
{
        int fd = client(fixture, &places[0], SOCK_STREAM);

        run_until(fixture, fixture->demands == 1);
        return fd;
}

static void who_waited_too_long_is_refused_as_without_lull(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                int fd;

                sleep_behind_until(fixture, "tcp/[::]:8080", 20 * NSEC_PER_MSEC);
                fd = client(fixture, &places[i], SOCK_STREAM);
                run_until(fixture, is_writable(fd));
                assert_int_equal(connect_error(fd), ECONNREFUSED);
                assert_int_equal(holding_parked(fixture->holding), 0);
                assert_int_equal(counted(fixture, "expired", "timeout"), 1);
                assert_true(holding_is_started(fixture->holding));
                close(fd);
                stop_holding(state);
        }
}

static void a_stop_hands_on_what_is_parked(void **state)
{
        struct fixture *fixture = *state;
        int server_fd = listening_server(), fd;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        fd = held_client(fixture);
        holding_stop(fixture->holding);
        assert_true(is_writable(fd));
        assert_int_equal(connect_error(fd), 0);
        assert_false(hold_is_attached(fixture->hold));
        close(fd);
        close(server_fd);
}

static void a_refusal_is_final_for_the_flow_but_not_for_others(void **state)
{
        struct fixture *fixture = *state;
        int fd, other;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        fd = held_client(fixture);
        holding_refuse(fixture->holding);
        assert_true(is_writable(fd));
        assert_int_equal(connect_error(fd), ECONNREFUSED);
        assert_int_equal(counted(fixture, "expired", "refused"), 1);
        assert_false(holding_is_started(fixture->holding));

        assert_int_equal(holding_start(fixture->holding), 0);
        other = client(fixture, &places[0], SOCK_STREAM);
        run_until(fixture, fixture->demands == 2);
        close(fd);
        close(other);
}

/* The kernel side lets packets pass once too many of them are outstanding. */
static void what_has_gone_on_makes_room_for_as_much(void **state)
{
        static void (*const ways[])(struct holding *) = { holding_stop, holding_refuse };
        struct fixture *fixture = *state;

        fixture->max_held = 2;
        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        fixture->max_held = MAX_HELD;
        for (size_t i = 0; i < 6; i++) {
                int fd;

                fixture->demands = 0;
                assert_int_equal(holding_start(fixture->holding), 0);
                fd = held_client(fixture);
                assert_int_equal(holding_parked(fixture->holding), 1);
                ways[i % ELEMENTSOF(ways)](fixture->holding);
                close(fd);
        }
        assert_int_equal(counted(fixture, "passed", "quota"), 0);
}

static void who_may_not_wake_is_refused_at_once(void **state)
{
        struct fixture *fixture = *state;
        struct prefix neighbours;
        struct frontend frontend;
        struct holding_ignore ignore = { .port = PORT };
        struct holding_config configs[] = {
                { .name = "from", .from = &neighbours, .n_from = 1 },
                { .name = "ignore", .ignore = &ignore, .n_ignore = 1 },
        };

        assert_int_equal(prefix_parse("192.0.2.0/24", &neighbours), 0);
        assert_int_equal(prefix_parse("127.0.0.0/8", &ignore.prefix), 0);
        assert_int_equal(frontend_parse("tcp/0.0.0.0:8080", &frontend), 0);
        sleep_behind(fixture, "tcp/0.0.0.0:9090");
        for (size_t i = 0; i < ELEMENTSOF(configs); i++) {
                _cleanup_(holding_freep) struct holding *holding = NULL;
                int here, there;

                fixture->demands = 0;
                configs[i].frontends = &frontend;
                configs[i].n_frontends = 1;
                configs[i].max_held = MAX_HELD;
                configs[i].hold_timeout_ns = 60 * NSEC_PER_SEC;
                assert_int_equal(holding_new(fixture->hold, &configs[i], NULL, &holding), 0);
                assert_int_equal(holding_start(holding), 0);
                here = client(fixture, &places[0], SOCK_STREAM);
                assert_true(is_writable(here));
                assert_int_equal(connect_error(here), ECONNREFUSED);
                there = client(fixture, &places[4], SOCK_STREAM);
                run_until(fixture, fixture->demands == 1);
                close(here);
                close(there);
        }
}

static void turn_while_pending(struct fixture *fixture)
{
        int r;

        while ((r = sd_event_run(fixture->event, 0)) > 0)
                ;
        assert_int_equal(r, 0);
}

static void an_address_that_comes_later_is_held_too(void **state)
{
        static const struct place later = { "a neighbour", "192.0.2.99", true };
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        shell("ip addr add 192.0.2.99/24 dev veth0");
        turn_while_pending(fixture);
        fd = client(fixture, &later, SOCK_STREAM);
        run_until(fixture, fixture->demands == 1);
        close(fd);

        shell("ip addr del 192.0.2.99/24 dev veth0");
        turn_while_pending(fixture);
        fixture->demands = 0;
        holding_rearm(fixture->holding);
        fd = client(fixture, &later, SOCK_STREAM);
        turn_while_pending(fixture);
        assert_int_equal(fixture->demands, 0);
        close(fd);
}

static void holding_again_while_releasing_holds_what_was_not_answered(void **state)
{
        struct fixture *fixture = *state;
        int fd, server_fd;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        fd = held_client(fixture);
        holding_release(fixture->holding, 0); /* but nobody listens */
        turn(fixture);
        assert_int_equal(holding_start(fixture->holding), 0);
        turn(fixture);
        assert_int_equal(holding_parked(fixture->holding), 1);
        assert_false(is_writable(fd));

        server_fd = listening_server();
        holding_release(fixture->holding, 0);
        run_until(fixture, fixture->drained == 1);
        assert_int_equal(connect_error(fd), 0);
        assert_int_equal(retransmissions(fd), 0);
        close(fd);
        close(server_fd);
}

static void leave_to_the_next_daemon(struct fixture *fixture)
{
        fixture->hold = hold_suspend(fixture->hold);
        fixture->holding = holding_free(fixture->holding);
        fixture->event = sd_event_unref(fixture->event);
}

static void the_next_daemon_goes_on_holding_and_knows_who_asked(void **state)
{
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        leave_to_the_next_daemon(fixture);

        fd = client(fixture, &places[0], SOCK_STREAM); /* nobody is there */
        assert_false(is_writable(fd));
        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        assert_true(holding_has_demand(fixture->holding));
        run_until(fixture, fixture->demands == 1);
        run_until(fixture, holding_parked(fixture->holding) == 1); /* its retransmission */
        close(fd);
}

static void frontends_nobody_takes_over_are_let_go(void **state)
{
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, "tcp/0.0.0.0:8080");
        leave_to_the_next_daemon(fixture);

        sleep_behind(fixture, "tcp/0.0.0.0:9090");
        fd = client(fixture, &places[0], SOCK_STREAM);
        assert_true(is_writable(fd));
        assert_int_equal(connect_error(fd), ECONNREFUSED);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                hold_test(who_waited_too_long_is_refused_as_without_lull),
                hold_test(a_stop_hands_on_what_is_parked),
                hold_test(a_refusal_is_final_for_the_flow_but_not_for_others),
                hold_test(what_has_gone_on_makes_room_for_as_much),
                hold_test(who_may_not_wake_is_refused_at_once),
                hold_test(an_address_that_comes_later_is_held_too),
                hold_test(holding_again_while_releasing_holds_what_was_not_answered),
                hold_test(the_next_daemon_goes_on_holding_and_knows_who_asked),
                hold_test(frontends_nobody_takes_over_are_let_go),
        };

        return cmocka_run_group_tests(tests, enter_machine, leave_machine);
}
