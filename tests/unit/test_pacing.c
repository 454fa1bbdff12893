/* SPDX-License-Identifier: Apache-2.0 */
/* Pacing against a simulated server that has the kernel's rules for its accept queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "hold/pacing.h"

enum { CLIENTS_MAX = 200 };

#define STEP_NS NSEC_PER_MSEC

struct client {
        struct pacing_flow pacing;
        enum connection_state state;
        uint64_t acknowledges_ns; /* when the last packet of its handshake arrives */
        bool gone;                /* answers with a reset */
        bool done;
};

struct server {
        uint32_t backlog, queued;
        uint64_t accept_every_ns, next_accept_ns, round_trip_ns;
        unsigned lose_every; /* the network loses every n-th SYN; 0: none */
        unsigned syns, dropped;
        uint64_t now_ns;
        struct client clients[CLIENTS_MAX];
        size_t n;
};

static bool is_full(const struct server *server)
{
        return server->queued > server->backlog; /* sk_acceptq_is_full() */
}

static void receive_syn(struct server *server, struct client *client)
{
        server->syns++;
        if (server->lose_every && server->syns % server->lose_every == 0)
                return;
        if (client->gone || client->state != CONNECTION_NONE)
                return;
        if (is_full(server)) {
                server->dropped++;
                return;
        }
        client->state = CONNECTION_HANDSHAKE;
        client->acknowledges_ns = server->now_ns + server->round_trip_ns;
}

static void advance(struct server *server)
{
        server->now_ns += STEP_NS;
        if (server->queued > 0 && server->now_ns >= server->next_accept_ns) {
                server->queued--;
                server->next_accept_ns = server->now_ns + server->accept_every_ns;
        }
        for (size_t i = 0; i < server->n; i++) {
                struct client *client = &server->clients[i];

                if (client->state != CONNECTION_HANDSHAKE || server->now_ns < client->acknowledges_ns)
                        continue;
                if (is_full(server)) {
                        server->dropped++; /* and the SYN-ACK's retransmission, a second later, gets another chance */
                        client->acknowledges_ns = server->now_ns + NSEC_PER_SEC;
                        continue;
                }
                client->state = CONNECTION_ESTABLISHED;
                server->queued++;
        }
}

struct result {
        unsigned answered, given_up, repeated, handed_over;
        uint32_t in_flight_max;
        uint64_t took_ns;
};

static void judge_all(struct server *server, struct pacing *pacing, struct result *result)
{
        for (size_t i = 0; i < server->n; i++) {
                struct client *client = &server->clients[i];

                if (!client->pacing.in_flight)
                        continue;
                switch (pacing_judge(&client->pacing, client->state, !is_full(server), server->now_ns)) {
                case PACING_WAIT:
                        continue;
                case PACING_REPEAT:
                        result->repeated++;
                        receive_syn(server, client);
                        pacing_sent(pacing, &client->pacing, server->now_ns);
                        continue;
                case PACING_ANSWERED:
                        result->answered++;
                        break;
                case PACING_HANDED_OVER:
                        result->handed_over++;
                        break;
                case PACING_GIVE_UP:
                        result->given_up++;
                        break;
                }
                pacing_remove(pacing, &client->pacing);
                client->done = true;
        }
}

/* All clients wait at first. Looks once a millisecond, for at most a minute. */
static struct result release(struct server *server)
{
        struct result result = { 0 };
        struct pacing pacing;
        size_t next = 0;
        unsigned done = 0;

        pacing_init(&pacing);
        while (done < server->n && server->now_ns < 60 * NSEC_PER_SEC) {
                judge_all(server, &pacing, &result);
                while (next < server->n && pacing_may_send(&pacing, server->queued, server->backlog)) {
                        receive_syn(server, &server->clients[next]);
                        pacing_sent(&pacing, &server->clients[next++].pacing, server->now_ns);
                }
                if (pacing.n_in_flight > result.in_flight_max)
                        result.in_flight_max = pacing.n_in_flight;
                done = result.answered + result.given_up + result.handed_over;
                advance(server);
        }
        result.took_ns = server->now_ns;
        return result;
}

static void a_short_queue_that_is_served_slowly_never_overflows(void **state)
{
        struct server server = { .backlog = 5, .accept_every_ns = 3 * NSEC_PER_MSEC, .n = CLIENTS_MAX };
        struct result result = release(&server);

        assert_int_equal(result.answered, CLIENTS_MAX);
        assert_int_equal(server.dropped, 0);
        assert_int_equal(result.repeated, 0);
        assert_true(result.took_ns < 2 * CLIENTS_MAX * server.accept_every_ns); /* and it never starves either */
}

static void no_queue_overflows_whatever_the_backlog_and_the_distance(void **state)
{
        static const uint32_t backlogs[] = { 1, 2, 5, 16, 128, 4096 };
        static const uint64_t round_trips[] = { 0, NSEC_PER_MSEC, 20 * NSEC_PER_MSEC, 200 * NSEC_PER_MSEC };

        for (size_t i = 0; i < ELEMENTSOF(backlogs); i++)
                for (size_t j = 0; j < ELEMENTSOF(round_trips); j++) {
                        struct server server = { .backlog = backlogs[i],
                                                 .accept_every_ns = NSEC_PER_MSEC,
                                                 .round_trip_ns = round_trips[j],
                                                 .n = CLIENTS_MAX };
                        struct result result = release(&server);

                        if (server.dropped || result.answered != CLIENTS_MAX || result.repeated)
                                fail_msg("backlog %u, round trip %u ms: %u dropped, %u answered, %u repeated", backlogs[i],
                                         (unsigned)(round_trips[j] / NSEC_PER_MSEC), server.dropped, result.answered,
                                         result.repeated);
                        assert_true(result.in_flight_max <= PACING_IN_FLIGHT_MAX);
                }
}

static void a_backlog_of_zero_still_takes_one(void **state)
{
        struct server server = { .backlog = 0, .accept_every_ns = NSEC_PER_MSEC, .n = 10 };
        struct result result = release(&server);

        assert_int_equal(result.answered, 10);
        assert_int_equal(server.dropped, 0);
}

static void a_lost_packet_is_repeated_long_before_the_client_would(void **state)
{
        struct server server = { .backlog = 5, .accept_every_ns = NSEC_PER_MSEC, .n = 50, .lose_every = 4 };
        struct result result = release(&server);

        assert_int_equal(result.answered, 50);
        assert_true(result.repeated > 0);
        assert_true(result.took_ns < NSEC_PER_SEC);
}

static void who_is_gone_is_given_up_and_does_not_stop_the_others(void **state)
{
        struct server server = { .backlog = 5, .accept_every_ns = NSEC_PER_MSEC, .n = 40 };
        struct result result;

        for (size_t i = 0; i < 20; i++)
                server.clients[i].gone = true;
        result = release(&server);
        assert_int_equal(result.given_up, 20);
        assert_int_equal(result.answered, 20);
        assert_int_equal(result.repeated, 20 * PACING_REPEATS_MAX);
        assert_true(result.took_ns < 5 * NSEC_PER_SEC);
}

static void silence_is_answered_after_30_ms_and_then_twice_as_late_each_time(void **state)
{
        static const uint64_t expected_ms[] = { 30, 90, 210, 450, 930 };
        struct pacing_flow flow = { 0 };
        struct pacing pacing;
        size_t repeats = 0;

        pacing_init(&pacing);
        pacing_sent(&pacing, &flow, 0);
        for (uint64_t ms = 1; ms < 5000; ms++) {
                enum pacing_advice advice = pacing_judge(&flow, CONNECTION_NONE, true, ms * NSEC_PER_MSEC);

                if (advice == PACING_GIVE_UP) {
                        assert_int_equal(repeats, ELEMENTSOF(expected_ms));
                        assert_int_equal(ms, 930 + 960);
                        return;
                }
                if (advice != PACING_REPEAT)
                        continue;
                assert_int_equal(ms, expected_ms[repeats++]);
                pacing_sent(&pacing, &flow, ms * NSEC_PER_MSEC);
        }
        fail_msg("never given up");
}

static void silence_of_a_full_queue_is_waited_out(void **state)
{
        struct pacing_flow flow = { 0 };
        struct pacing pacing;

        pacing_init(&pacing);
        pacing_sent(&pacing, &flow, 0);
        assert_int_equal(pacing_judge(&flow, CONNECTION_NONE, false, 10 * NSEC_PER_SEC), PACING_WAIT);
        assert_int_equal(pacing_judge(&flow, CONNECTION_NONE, true, 10 * NSEC_PER_SEC), PACING_REPEAT);
}

static void a_handshake_that_lasts_is_left_to_the_kernel(void **state)
{
        struct pacing_flow flow = { 0 };
        struct pacing pacing;

        pacing_init(&pacing);
        pacing_sent(&pacing, &flow, 0);
        assert_int_equal(pacing_judge(&flow, CONNECTION_HANDSHAKE, true, NSEC_PER_SEC - 1), PACING_WAIT);
        assert_int_equal(pacing_judge(&flow, CONNECTION_HANDSHAKE, true, NSEC_PER_SEC), PACING_HANDED_OVER);
}

static void datagrams_fill_a_receive_buffer_and_not_more(void **state)
{
        assert_true(pacing_may_send_bytes(0, 1000, 1000));
        assert_true(pacing_may_send_bytes(400, 1000, 600));
        assert_false(pacing_may_send_bytes(401, 1000, 600));
        assert_true(pacing_may_send_bytes(0, 1000, 5000)); /* else it would never go */
        assert_false(pacing_may_send_bytes(1, 1000, UINT64_C(1) << 32));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_short_queue_that_is_served_slowly_never_overflows),
                cmocka_unit_test(no_queue_overflows_whatever_the_backlog_and_the_distance),
                cmocka_unit_test(a_backlog_of_zero_still_takes_one),
                cmocka_unit_test(a_lost_packet_is_repeated_long_before_the_client_would),
                cmocka_unit_test(who_is_gone_is_given_up_and_does_not_stop_the_others),
                cmocka_unit_test(silence_is_answered_after_30_ms_and_then_twice_as_late_each_time),
                cmocka_unit_test(silence_of_a_full_queue_is_waited_out),
                cmocka_unit_test(a_handshake_that_lasts_is_left_to_the_kernel),
                cmocka_unit_test(datagrams_fill_a_receive_buffer_and_not_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
