/* SPDX-License-Identifier: Apache-2.0 */
/* Real clients of a frontend that sleeps: what they notice of being held is the time it takes.
 *
 * Clients are on this host and in another network namespace behind a veth pair. Figures measured on the way are printed.
 */
#include "machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/time.h"
#include "hold/hold.h"

enum { PORT = 8080, CLIENTS = 200, BACKLOG = 5, MAX_HELD = 1024, PATIENCE_US = 10 * 1000 * 1000 };

struct fixture {
        sd_event *event;
        struct hold *hold;
        struct holding *holding;
        int home, theirs; /* network namespaces */
        struct hold_demand demand;
        uint64_t demand_ns;
        unsigned demands, released, answered, drained;
        uint32_t max_held;
};

/* Where a client is, and which address it asks. */
struct place {
        const char *name;
        const char *address;
        bool elsewhere;
};

static const struct place places[] = {
        { "this host, 127.0.0.1", "127.0.0.1", false },       { "this host, ::1", "::1", false },
        { "this host, its own IPv4", "192.0.2.1", false },    { "this host, its own IPv6", "2001:db8::1", false },
        { "a neighbour, IPv4", "192.0.2.1", true },           { "a neighbour, IPv6", "2001:db8::1", true },
        { "a neighbour, link-local", "fe80::1%veth1", true }, { "this host, link-local", "fe80::1%veth0", false },
};

static void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->demand_ns = now_monotonic_ns();
        fixture->demand = *demand;
        fixture->demands++;
}

static void on_released(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        ((struct fixture *)userdata)->released++;
}

static void on_answered(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        ((struct fixture *)userdata)->answered++;
}

static void on_drained(struct holding *holding, void *userdata)
{
        ((struct fixture *)userdata)->drained++;
}

static const struct hold_callbacks callbacks = {
        .demand = on_demand, .released = on_released, .answered = on_answered, .drained = on_drained
};

static int enter_machine(void **state)
{
        static const struct rlimit files = { 4096, 4096 };
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        machine_enter();
        fixture->max_held = MAX_HELD;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        shell("mkdir -p /tmp/run && mount --bind /tmp/run /run && ip netns add theirs");
        shell("ip link add veth0 type veth peer name veth1 netns theirs && ip link set veth0 up && ip addr add 192.0.2.1/24 dev veth0");
        shell("ip addr add 2001:db8::1/64 dev veth0 nodad && ip addr add fe80::1/64 dev veth0 nodad");
        shell("ip -n theirs link set lo up && ip -n theirs link set veth1 up && ip -n theirs addr add 192.0.2.2/24 dev veth1");
        shell("ip -n theirs addr add 2001:db8::2/64 dev veth1 nodad && ip -n theirs addr add fe80::2/64 dev veth1 nodad");
        fixture->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        fixture->theirs = open("/run/netns/theirs", O_RDONLY | O_CLOEXEC);
        assert_true(fixture->home >= 0 && fixture->theirs >= 0);
        *state = fixture;
        return 0;
}

static int leave_machine(void **state)
{
        struct fixture *fixture = *state;

        close(fixture->home);
        close(fixture->theirs);
        free(fixture);
        return 0;
}

/* Holds @listen on a machine where nobody listens. */
static void sleep_behind(struct fixture *fixture, const char *const *listen, size_t n, uint64_t timeout_ns)
{
        struct hold_config config = { .bpffs = MACHINE_BPFFS };
        struct frontend frontends[4];
        struct holding_config holding = { .name = "web",
                                          .frontends = frontends,
                                          .n_frontends = n,
                                          .max_held = fixture->max_held,
                                          .hold_timeout_ns = timeout_ns };

        fixture->demands = fixture->released = fixture->answered = fixture->drained = 0;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(frontend_parse(listen[i], &frontends[i]), 0);
        assert_int_equal(sd_event_new(&fixture->event), 0);
        config.event = fixture->event;
        assert_int_equal(hold_new(&config, &callbacks, fixture, &fixture->hold), 0);
        assert_int_equal(holding_new(fixture->hold, &holding, fixture, &fixture->holding), 0);
        assert_int_equal(holding_start(fixture->holding), 0);
        hold_settle(fixture->hold);
}

static int stop_holding(void **state)
{
        struct fixture *fixture = *state;

        fixture->holding = holding_free(fixture->holding);
        fixture->hold = hold_free(fixture->hold);
        fixture->event = sd_event_unref(fixture->event);
        return 0;
}

static socklen_t parse(const char *address, uint16_t port, struct sockaddr_storage *ret_address)
{
        char text[64];
        char *scope;
        struct address parsed;
        socklen_t size;

        snprintf(text, sizeof(text), "%s", address);
        scope = strchr(text, '%');
        if (scope)
                *scope++ = '\0';
        assert_int_equal(address_parse(text, &parsed), 0);
        size = address_to_sockaddr(&parsed, port, ret_address);
        if (scope)
                ((struct sockaddr_in6 *)ret_address)->sin6_scope_id = 2; /* the only device beside lo, on both sides */
        return size;
}

/* A client's socket, asking for @place. */
static int client(const struct fixture *fixture, const struct place *place, int type)
{
        struct sockaddr_storage address;
        socklen_t size = parse(place->address, PORT, &address);
        int fd;

        if (place->elsewhere)
                assert_int_equal(setns(fixture->theirs, CLONE_NEWNET), 0);
        fd = socket(address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(fd >= 0);
        if (connect(fd, (struct sockaddr *)&address, size) < 0)
                assert_int_equal(errno, EINPROGRESS);
        assert_int_equal(setns(fixture->home, CLONE_NEWNET), 0);
        return fd;
}

/* The server of all addresses; not yet listening. */
static int server(int type)
{
        struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
        int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

        assert_true(fd >= 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
        return fd;
}

static bool is_writable(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

        return poll(&poll_fd, 1, 0) == 1;
}

static void turn(struct fixture *fixture)
{
        assert_true(sd_event_run(fixture->event, 1000) >= 0);
}

static void turn_while_pending(struct fixture *fixture)
{
        int r;

        while ((r = sd_event_run(fixture->event, 0)) > 0)
                ;
        assert_int_equal(r, 0);
}

#define run_until(fixture, condition)                                                                                              \
        do {                                                                                                                       \
                uint64_t _deadline = now_monotonic_ns() + PATIENCE_US * NSEC_PER_USEC;                                             \
                while (!(condition)) {                                                                                             \
                        if (now_monotonic_ns() > _deadline)                                                                        \
                                fail_msg("in vain: %s", #condition);                                                               \
                        turn(fixture);                                                                                             \
                }                                                                                                                  \
        } while (0)

static unsigned retransmissions(int fd)
{
        struct tcp_info info = { 0 };
        socklen_t size = sizeof(info);

        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
        return info.tcpi_total_retrans;
}

static int connect_error(int fd)
{
        int error = 0;
        socklen_t size = sizeof(error);

        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
        return error;
}

static uint64_t counted(const struct fixture *fixture, const char *verdict, const char *reason)
{
        struct hold_counter counters[HOLD_COUNTERS_MAX];
        size_t n = hold_counters(fixture->hold, counters);

        for (size_t i = 0; i < n; i++)
                if (strcmp(counters[i].verdict, verdict) == 0 && strcmp(counters[i].reason, reason) == 0)
                        return counters[i].value;
        fail_msg("no counter %s/%s", verdict, reason);
        return 0;
}

static void wake_once(struct fixture *fixture, const struct place *place)
{
        int client_fd = client(fixture, place, SOCK_STREAM), server_fd;
        uint64_t begin_ns;

        run_until(fixture, fixture->demands == 1);
        assert_int_equal(fixture->demand.from_this_host, !place->elsewhere);
        assert_int_equal(holding_parked(fixture->holding), 1);
        assert_false(is_writable(client_fd));

        server_fd = server(SOCK_STREAM);
        assert_int_equal(listen(server_fd, BACKLOG), 0);
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

        sleep_behind(fixture, (const char *[]){ "tcp/[::]:8080" }, 1, 60 * NSEC_PER_SEC);
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

        sleep_behind(fixture, (const char *[]){ "tcp/[::]:8080" }, 1, 60 * NSEC_PER_SEC);
        for (size_t i = 0; i < CLIENTS; i++)
                clients[i] = client(fixture, place, SOCK_STREAM);
        run_until(fixture, holding_parked(fixture->holding) == CLIENTS);

        server_fd = server(SOCK_STREAM);
        assert_int_equal(listen(server_fd, BACKLOG), 0);
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

                sleep_behind(fixture, (const char *[]){ "udp/[::]:8080" }, 1, 60 * NSEC_PER_SEC);
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

                sleep_behind(fixture, (const char *[]){ "udp/[::]:8080" }, 1, 60 * NSEC_PER_SEC);
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

static void who_waited_too_long_is_refused_as_without_lull(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                int fd;

                sleep_behind(fixture, (const char *[]){ "tcp/[::]:8080" }, 1, 20 * NSEC_PER_MSEC);
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
        int server_fd = server(SOCK_STREAM), fd;

        assert_int_equal(listen(server_fd, BACKLOG), 0);
        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fd = client(fixture, &places[0], SOCK_STREAM);
        run_until(fixture, fixture->demands == 1);
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

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fd = client(fixture, &places[0], SOCK_STREAM);
        run_until(fixture, fixture->demands == 1);
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
        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fixture->max_held = MAX_HELD;
        for (size_t i = 0; i < 6; i++) {
                int fd;

                fixture->demands = 0;
                assert_int_equal(holding_start(fixture->holding), 0);
                fd = client(fixture, &places[0], SOCK_STREAM);
                run_until(fixture, fixture->demands == 1);
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
        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:9090" }, 1, 60 * NSEC_PER_SEC);
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

static void an_address_that_comes_later_is_held_too(void **state)
{
        static const struct place later = { "a neighbour", "192.0.2.99", true };
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
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

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fd = client(fixture, &places[0], SOCK_STREAM);
        run_until(fixture, fixture->demands == 1);
        holding_release(fixture->holding, 0); /* but nobody listens */
        turn(fixture);
        assert_int_equal(holding_start(fixture->holding), 0);
        turn(fixture);
        assert_int_equal(holding_parked(fixture->holding), 1);
        assert_false(is_writable(fd));

        server_fd = server(SOCK_STREAM);
        assert_int_equal(listen(server_fd, BACKLOG), 0);
        holding_release(fixture->holding, 0);
        run_until(fixture, fixture->drained == 1);
        assert_int_equal(connect_error(fd), 0);
        assert_int_equal(retransmissions(fd), 0);
        close(fd);
        close(server_fd);
}

static void the_next_daemon_goes_on_holding_and_knows_who_asked(void **state)
{
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fixture->hold = hold_suspend(fixture->hold);
        fixture->holding = holding_free(fixture->holding);
        fixture->event = sd_event_unref(fixture->event);

        fd = client(fixture, &places[0], SOCK_STREAM); /* nobody is there */
        assert_false(is_writable(fd));
        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        assert_true(holding_has_demand(fixture->holding));
        run_until(fixture, fixture->demands == 1);
        run_until(fixture, holding_parked(fixture->holding) == 1); /* its retransmission */
        close(fd);
}

static void frontends_nobody_takes_over_are_let_go(void **state)
{
        struct fixture *fixture = *state;
        int fd;

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:8080" }, 1, 60 * NSEC_PER_SEC);
        fixture->hold = hold_suspend(fixture->hold);
        fixture->holding = holding_free(fixture->holding);
        fixture->event = sd_event_unref(fixture->event);

        sleep_behind(fixture, (const char *[]){ "tcp/0.0.0.0:9090" }, 1, 60 * NSEC_PER_SEC);
        fd = client(fixture, &places[0], SOCK_STREAM);
        assert_true(is_writable(fd));
        assert_int_equal(connect_error(fd), ECONNREFUSED);
        close(fd);
}

#define hold_test(name) cmocka_unit_test_teardown(name, stop_holding)

int main(void)
{
        const struct CMUnitTest tests[] = {
                hold_test(first_connection_from_anywhere_is_answered_without_a_retransmission),
                hold_test(a_burst_from_this_host_fits_a_short_backlog),
                hold_test(a_burst_from_a_neighbour_fits_a_short_backlog),
                hold_test(first_datagrams_arrive_in_order),
                hold_test(what_was_sent_as_one_gso_packet_arrives_as_its_datagrams),
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
