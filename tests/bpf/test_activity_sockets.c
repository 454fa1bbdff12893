/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as a workload's activity, and what does not: by whose sockets they are, and by their ports and peers. */
#include "activity_bench.h"

/* The longest there is, at 100 Hz: times are as exact as that. */
#define CLOCK_TICK_NS (NSEC_PER_SEC / 100)

/* The programs' clock goes by ticks, which a machine that is itself a guest may get late. */
static uint64_t programs_now_ns(void)
{
        struct timespec now;

        assert_int_equal(clock_gettime(CLOCK_MONOTONIC_COARSE, &now), 0);
        return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static void an_accepted_connection_is_served_and_its_request_open_until_answered(void **state)
{
        struct setup *setup = *state;
        uint64_t before = programs_now_ns();
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT);
        struct workload_connection connections[4];
        struct workload_snapshot snapshot;

        assert_int_equal(look(setup).connections, 1);
        assert_int_equal(look(setup).connections_total, 1);
        assert_int_equal(look(setup).open_requests, 0);
        assert_int_equal(look(setup).last_ns, 0);

        say(pair.client, pair.server, "question");
        assert_int_equal(look(setup).open_requests, 1);
        assert_int_equal(look(setup).received_bytes, 8);
        assert_int_equal(look(setup).oldest_request.local_port, PORT);
        snapshot = look(setup);
        assert_true(address_is_loopback(&snapshot.oldest_request.remote));
        assert_true(snapshot.oldest_request_ns > before - CLOCK_TICK_NS && snapshot.oldest_request_ns <= now_monotonic_ns());

        say(pair.server, pair.client, "answer");
        assert_int_equal(look(setup).open_requests, 0);
        assert_int_equal(look(setup).sent_bytes, 6);
        assert_true(look(setup).last_ns > before);
        assert_int_equal(workload_connections(setup->workload, connections, 4), 1);
        assert_string_equal(connections[0].protocol, "plain");

        close_pair(&pair);
        assert_int_equal(look(setup).connections, 0);
        assert_int_equal(look(setup).connections_total, 1);
}

static struct workload_snapshot look_since(struct workload *workload, uint64_t not_before_ns)
{
        struct workload_snapshot snapshot;

        assert_int_equal(workload_read(workload, not_before_ns, &snapshot), 0);
        return snapshot;
}

static void one_look_at_all_connections_serves_who_asks_for_no_later_one(void **state)
{
        struct setup *setup = *state;
        struct workload_port elsewhere = { ELSEWHERE_PORT, IPPROTO_TCP };
        struct workload_settings settings = { .name = "elsewhere", .policy = &setup->policy, .ports = &elsewhere, .n_ports = 1 };
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT), other;
        struct workload_snapshot snapshot;
        struct workload *workload;
        uint64_t before = programs_now_ns();

        assert_int_equal(workload_new(setup->activity, &settings, setup->outside, NULL, &workload), 0);
        say(pair.client, pair.server, "question");
        assert_int_equal(look(setup).open_requests, 1);
        say(pair.server, pair.client, "answer");
        other = connect_pair(setup, setup->outside, setup->inside, ELSEWHERE_PORT);

        snapshot = look_since(setup->workload, before);
        assert_int_equal(snapshot.open_requests, 1);
        assert_int_equal(snapshot.sent_bytes, 6);
        assert_int_equal(look_since(workload, before).connections, 0);
        assert_int_equal(look_since(workload, before).connections_total, 1);

        assert_int_equal(look_since(workload, now_monotonic_ns()).connections, 1);
        assert_int_equal(look_since(setup->workload, before).open_requests, 0);
        close_pair(&other);
        close_pair(&pair);
        workload_free(workload, false);
}

static void totals_tell_activity_and_nothing_of_connections(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT);
        uint64_t before = programs_now_ns();
        struct workload_snapshot snapshot;

        say(pair.client, pair.server, "question");
        assert_int_equal(look(setup).open_requests, 1);
        assert_int_equal(workload_read_totals(setup->workload, &snapshot), 0);
        assert_true(snapshot.last_ns > before);
        assert_int_equal(snapshot.received_bytes, 8);
        assert_int_equal(snapshot.connections_total, 1);
        assert_int_equal(snapshot.connections, 0);
        assert_int_equal(snapshot.open_requests, 0);
        close_pair(&pair);
}

static void a_connection_to_itself_never_counts(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->inside, PORT);

        say(pair.client, pair.server, "health?");
        assert_int_equal(look(setup).open_requests, 0);
        assert_int_equal(look(setup).connections, 0);
        assert_int_equal(look(setup).outbound, 0);
        assert_int_equal(look(setup).last_ns, 0);
        close_pair(&pair);
}

static void somebody_elses_connection_from_the_same_port_counts(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->inside, PORT);
        struct sockaddr_in address;
        socklen_t length = sizeof(address);
        struct linger reset = { .l_onoff = 1 };
        int again;

        assert_int_equal(getsockname(pair.client, (struct sockaddr *)&address, &length), 0);
        assert_int_equal(setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        close(pair.client);
        close(pair.server);

        again = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(again, (struct sockaddr *)&address, length), 0);
        address.sin_port = htons(PORT);
        assert_int_equal(connect(again, (struct sockaddr *)&address, length), 0);
        assert_int_equal(look(setup).connections, 1);
        close(again);
        close(pair.listener);
}

static void its_own_connection_elsewhere_is_outbound_and_counts_only_if_held(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->outside, setup->inside, ELSEWHERE_PORT);

        say(pair.client, pair.server, "telemetry");
        assert_int_equal(look(setup).outbound, 1);
        assert_int_equal(look(setup).connections, 0);
        assert_int_equal(look(setup).last_ns, 0);

        setup->policy.idle.outbound = SILENCE_HOLD;
        assert_int_equal(workload_update(setup->workload, &setup->settings), 0);
        assert_int_not_equal(look(setup).last_ns, 0);
        close_pair(&pair);
        assert_int_equal(look(setup).outbound, 0);
}

static void a_port_that_is_not_the_policys_counts_once_it_becomes_so(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, OTHER_PORT);

        say(pair.client, pair.server, "metrics?");
        assert_int_equal(look(setup).connections, 0);
        assert_int_equal(look(setup).last_ns, 0);

        setup->ports[0].port = OTHER_PORT;
        assert_int_equal(workload_update(setup->workload, &setup->settings), 0);
        assert_int_equal(look(setup).connections, 1);
        say(pair.client, pair.server, "again");
        assert_int_equal(look(setup).open_requests, 1);
        close_pair(&pair);
}

static void an_ignored_peer_counts_for_nothing(void **state)
{
        struct setup *setup = *state;
        static const char *const prefixes[] = { "127.0.0.0/8", "0.0.0.0/0", NULL };
        struct pair pair;

        setup->policy.n_ignore = 1;
        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++) {
                setup->rule = (struct ignore_rule){ .port = prefixes[i] ? 0 : PORT };
                if (prefixes[i])
                        assert_int_equal(prefix_parse(prefixes[i], &setup->rule.prefix), 0);
                assert_int_equal(workload_update(setup->workload, &setup->settings), 0);

                pair = connect_pair(setup, setup->inside, setup->outside, PORT);
                say(pair.client, pair.server, "probe");
                assert_int_equal(look(setup).connections, 0);
                assert_int_equal(look(setup).open_requests, 0);
                assert_int_equal(look(setup).last_ns, 0);
                close_pair(&pair);
        }

        assert_int_equal(prefix_parse("10.0.0.0/8", &setup->rule.prefix), 0);
        assert_int_equal(workload_update(setup->workload, &setup->settings), 0);
        pair = connect_pair(setup, setup->inside, setup->outside, PORT);
        say(pair.client, pair.server, "question");
        assert_int_equal(look(setup).open_requests, 1);
        close_pair(&pair);
}

static void datagrams_are_activity_at_their_time(void **state)
{
        struct setup *setup = *state;
        int server = bound_socket(setup->inside, setup, SOCK_DGRAM, PORT);
        int client = connected_socket(setup->outside, setup, SOCK_DGRAM, PORT);
        int own = connected_socket(setup->inside, setup, SOCK_DGRAM, PORT);

        say(own, server, "mine");
        assert_int_equal(look(setup).last_ns, 0);
        say(client, server, "question");
        assert_int_not_equal(look(setup).last_ns, 0);
        assert_int_equal(look(setup).received_bytes, 8);
        assert_int_equal(look(setup).open_requests, 0);
        close(server);
        close(client);
        close(own);
}

static void a_new_listener_rings_the_doorbell(void **state)
{
        struct setup *setup = *state;
        int tcp = bound_socket(setup->inside, setup, SOCK_STREAM, PORT), udp;

        assert_true(sd_event_run(setup->event, DEADLINE_SECONDS * 1000000ull) > 0);
        assert_int_equal(setup->bound.port, PORT);
        assert_int_equal(setup->bound.protocol, IPPROTO_TCP);

        udp = bound_socket(setup->inside, setup, SOCK_DGRAM, OTHER_PORT);
        assert_true(sd_event_run(setup->event, DEADLINE_SECONDS * 1000000ull) > 0);
        assert_int_equal(setup->bound.port, OTHER_PORT);
        assert_int_equal(setup->bound.protocol, IPPROTO_UDP);
        close(tcp);
        close(udp);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROMISE(an_accepted_connection_is_served_and_its_request_open_until_answered),
                PROMISE(one_look_at_all_connections_serves_who_asks_for_no_later_one),
                PROMISE(totals_tell_activity_and_nothing_of_connections),
                PROMISE(a_connection_to_itself_never_counts),
                PROMISE(somebody_elses_connection_from_the_same_port_counts),
                PROMISE(its_own_connection_elsewhere_is_outbound_and_counts_only_if_held),
                PROMISE(a_port_that_is_not_the_policys_counts_once_it_becomes_so),
                PROMISE(an_ignored_peer_counts_for_nothing),
                PROMISE(datagrams_are_activity_at_their_time),
                PROMISE(a_new_listener_rings_the_doorbell),
        };

        machine_enter();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
