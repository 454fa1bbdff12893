/* SPDX-License-Identifier: Apache-2.0 */
/* What is released reaches its server at once and whole, from wherever it came. */
#include "hold_bench.h"

#include <netinet/udp.h>

static void wake_once(struct fixture *fixture, const struct place *place)
{
        int client_fd = client(fixture, place, SOCK_STREAM), server_fd;
        uint64_t begin_ns;

        run_until(fixture, fixture->demands == 1);
        assert_int_equal(fixture->demand.from_this_host, !place->elsewhere);
        assert_int_equal(holding_parked(fixture->holding), 1);
        assert_false(is_writable(client_fd));

        server_fd = listening_server();
        begin_ns = now_monotonic_ns();
        holding_release(fixture->holding, 0);
        run_until(fixture, is_writable(client_fd));
        print_message("%s: hook to demand %llu us, release to connected %llu us\n", place->name,
                      (unsigned long long)(fixture->demand_ns - fixture->demand.first_ns) / 1000,
                      (unsigned long long)(now_monotonic_ns() - begin_ns) / 1000);

        assert_int_equal(connect_error(client_fd), 0);
        assert_int_equal(retransmissions(client_fd), 0);
        run_until(fixture, fixture->drained == 1);
        assert_int_equal(fixture->released, 1);
        assert_int_equal(fixture->answered, 1);
        assert_int_equal(holding_parked(fixture->holding), 0);
        assert_false(hold_is_attached(fixture->hold));
        close(client_fd);
        close(server_fd);
}

static void first_connection_from_anywhere_is_answered_without_a_retransmission(void **state)
{
        struct fixture *fixture = *state;

        sleep_behind(fixture, "tcp/[::]:8080");
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                fixture->demands = fixture->released = fixture->answered = fixture->drained = 0;
                assert_int_equal(holding_start(fixture->holding), 0);
                wake_once(fixture, &places[i]);
        }
}

/* Accepts one connection every 2 ms. */
static int accept_slowly(sd_event_source *source, uint64_t usec, void *userdata)
{
        int *server_fd = userdata, fd = accept4(*server_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
                close(fd);
        sd_event_source_set_time_relative(source, 2000);
        return 0;
}

static void many_first_connections_to_a_short_backlog_wait_for_no_retransmission(const struct place *place, void **state)
{
        struct fixture *fixture = *state;
        sd_event_source *source = NULL;
        int clients[CLIENTS], server_fd;
        uint64_t begin_ns;
        unsigned connected = 0;

        sleep_behind(fixture, "tcp/[::]:8080");
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = client(fixture, place, SOCK_STREAM);
        run_until(fixture, holding_parked(fixture->holding) == CLIENTS);

        server_fd = listening_server();
        sd_event_add_time(fixture->event, &source, CLOCK_MONOTONIC, 0, 1, accept_slowly, &server_fd);
        sd_event_source_set_enabled(source, SD_EVENT_ON);
        begin_ns = now_monotonic_ns();
        holding_release(fixture->holding, 0);
        run_until(fixture, fixture->drained == 1);
        print_message("%s: %d connections to a backlog of %d in %llu ms\n", place->name, CLIENTS, BACKLOG,
                      (unsigned long long)(now_monotonic_ns() - begin_ns) / NSEC_PER_MSEC);

        for (size_t i = 0; i < CLIENTS; i++) {
                connected += is_writable(clients[i]) && connect_error(clients[i]) == 0;
                assert_int_equal(retransmissions(clients[i]), 0);
                close(clients[i]);
        }
        assert_int_equal(connected, CLIENTS);
        assert_int_equal(fixture->answered, CLIENTS);
        assert_int_equal(counted(fixture, "reinjected", "silence"), 0);
        sd_event_source_disable_unref(source);
        close(server_fd);
}

static void a_burst_from_this_host_fits_a_short_backlog(void **state)
{
        many_first_connections_to_a_short_backlog_wait_for_no_retransmission(&places[0], state);
}

static void a_burst_from_a_neighbour_fits_a_short_backlog(void **state)
{
        many_first_connections_to_a_short_backlog_wait_for_no_retransmission(&places[4], state);
}

static void expect_datagrams(int fd, size_t n, size_t length)
{
        uint8_t buffer[4096];

        for (size_t i = 0; i < n; i++) {
                assert_int_equal(recv(fd, buffer, sizeof(buffer), 0), length);
                assert_int_equal(buffer[0], i);
        }
        assert_int_equal(recv(fd, buffer, sizeof(buffer), 0), -1);
}

static void first_datagrams_arrive_in_order(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                int client_fd, server_fd;

                sleep_behind(fixture, "udp/[::]:8080");
                client_fd = client(fixture, &places[i], SOCK_DGRAM);
                for (uint8_t j = 0; j < 5; j++)
                        assert_int_equal(send(client_fd, &j, 1, 0), 1);
                run_until(fixture, holding_parked(fixture->holding) == 5);

                server_fd = server(SOCK_DGRAM);
                holding_release(fixture->holding, 0);
                run_until(fixture, fixture->drained == 1);
                expect_datagrams(server_fd, 5, 1);
                assert_int_equal(fixture->released, 1); /* one flow */
                close(client_fd);
                close(server_fd);
                stop_holding(state);
        }
}

static void what_was_sent_as_one_gso_packet_arrives_as_its_datagrams(void **state)
{
        static const struct place *const senders[] = { &places[0], &places[1], &places[4], &places[5] };
        struct fixture *fixture = *state;
        uint8_t data[6 * 1000];
        int segment = 1000;

        for (size_t i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(i / 1000);
        for (size_t i = 0; i < ELEMENTSOF(senders); i++) {
                int client_fd, server_fd;

                sleep_behind(fixture, "udp/[::]:8080");
                client_fd = client(fixture, senders[i], SOCK_DGRAM);
                assert_int_equal(setsockopt(client_fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
                assert_int_equal(send(client_fd, data, sizeof(data), 0), sizeof(data));
                run_until(fixture, fixture->demands == 1);
                assert_int_equal(holding_parked(fixture->holding), 1);

                server_fd = server(SOCK_DGRAM);
                holding_release(fixture->holding, 0);
                run_until(fixture, fixture->drained == 1);
                expect_datagrams(server_fd, 6, 1000);
                close(client_fd);
                close(server_fd);
                stop_holding(state);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                hold_test(first_connection_from_anywhere_is_answered_without_a_retransmission),
                hold_test(a_burst_from_this_host_fits_a_short_backlog),
                hold_test(a_burst_from_a_neighbour_fits_a_short_backlog),
                hold_test(first_datagrams_arrive_in_order),
                hold_test(what_was_sent_as_one_gso_packet_arrives_as_its_datagrams),
        };

        return cmocka_run_group_tests(tests, enter_machine, leave_machine);
}
