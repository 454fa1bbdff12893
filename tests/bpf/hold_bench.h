/* SPDX-License-Identifier: Apache-2.0 */
/* Real clients of a frontend that sleeps: what they notice of being held is the time it takes.
 *
 * Clients are on this host and in another network namespace behind a veth pair. Figures measured on the way are printed.
 */
#pragma once

#include "machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

static inline void on_demand(struct holding *holding, const struct hold_demand *demand, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->demand_ns = now_monotonic_ns();
        fixture->demand = *demand;
        fixture->demands++;
}

static inline void on_released(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        ((struct fixture *)userdata)->released++;
}

static inline void on_answered(struct holding *holding, const struct flow *flow, uint64_t at_ns, void *userdata)
{
        ((struct fixture *)userdata)->answered++;
}

static inline void on_drained(struct holding *holding, void *userdata)
{
        ((struct fixture *)userdata)->drained++;
}

static const struct hold_callbacks callbacks = {
        .demand = on_demand, .released = on_released, .answered = on_answered, .drained = on_drained
};

static inline int enter_machine(void **state)
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

static inline int leave_machine(void **state)
{
        struct fixture *fixture = *state;

        close(fixture->home);
        close(fixture->theirs);
        free(fixture);
        return 0;
}

/* Holds @listen on a machine where nobody listens. */
static inline void sleep_behind_until(struct fixture *fixture, const char *listen, uint64_t timeout_ns)
{
        struct hold_config config = { .bpffs = MACHINE_BPFFS };
        struct frontend frontend;
        struct holding_config holding = { .name = "web",
                                          .frontends = &frontend,
                                          .n_frontends = 1,
                                          .max_held = fixture->max_held,
                                          .hold_timeout_ns = timeout_ns };

        fixture->demands = fixture->released = fixture->answered = fixture->drained = 0;
        assert_int_equal(frontend_parse(listen, &frontend), 0);
        assert_int_equal(sd_event_new(&fixture->event), 0);
        config.event = fixture->event;
        assert_int_equal(hold_new(&config, &callbacks, fixture, &fixture->hold), 0);
        assert_int_equal(holding_new(fixture->hold, &holding, fixture, &fixture->holding), 0);
        assert_int_equal(holding_start(fixture->holding), 0);
        hold_settle(fixture->hold);
}

static inline void sleep_behind(struct fixture *fixture, const char *listen)
{
        sleep_behind_until(fixture, listen, 60 * NSEC_PER_SEC);
}

static inline int stop_holding(void **state)
{
        struct fixture *fixture = *state;

        fixture->holding = holding_free(fixture->holding);
        fixture->hold = hold_free(fixture->hold);
        fixture->event = sd_event_unref(fixture->event);
        return 0;
}

static inline socklen_t parse(const char *address, uint16_t port, struct sockaddr_storage *ret_address)
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
static inline int client(const struct fixture *fixture, const struct place *place, int type)
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
static inline int server(int type)
{
        struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
        int fd = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

        assert_true(fd >= 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
        return fd;
}

static inline int listening_server(void)
{
        int fd = server(SOCK_STREAM);

        assert_int_equal(listen(fd, BACKLOG), 0);
        return fd;
}

static inline bool is_writable(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

        return poll(&poll_fd, 1, 0) == 1;
}

static inline void turn(struct fixture *fixture)
{
        assert_true(sd_event_run(fixture->event, 1000) >= 0);
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

static inline unsigned retransmissions(int fd)
{
        struct tcp_info info = { 0 };
        socklen_t size = sizeof(info);

        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
        return info.tcpi_total_retrans;
}

static inline int connect_error(int fd)
{
        int error = 0;
        socklen_t size = sizeof(error);

        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
        return error;
}

static inline uint64_t counted(const struct fixture *fixture, const char *verdict, const char *reason)
{
        struct hold_counter counters[HOLD_COUNTERS_MAX];
        size_t n = hold_counters(fixture->hold, counters);

        for (size_t i = 0; i < n; i++)
                if (strcmp(counters[i].verdict, verdict) == 0 && strcmp(counters[i].reason, reason) == 0)
                        return counters[i].value;
        fail_msg("no counter %s/%s", verdict, reason);
        return 0;
}

#define hold_test(name) cmocka_unit_test_teardown(name, stop_holding)
