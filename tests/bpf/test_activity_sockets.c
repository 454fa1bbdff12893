/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of a workload and of others, all held by this process: a socket belongs to the cgroup its maker was in. */
#include "machine.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "activity/activity.h"
#include "base/cgroup.h"
#include "base/time.h"

enum { PORT = 7000, OTHER_PORT = 7001, ELSEWHERE_PORT = 7002, DEADLINE_SECONDS = 20 };

/* The longest there is, at 100 Hz: times are as exact as that. */
#define CLOCK_TICK_NS (NSEC_PER_SEC / 100)

struct bound {
        uint16_t port;
        uint8_t protocol;
};

struct setup {
        char inside[256], outside[256]; /* cgroups */
        sd_event *event;
        struct activity *activity;
        struct workload *workload;
        struct workload_port ports[2];
        struct ignore_rule rule;
        struct policy policy;
        struct workload_settings settings;
        struct bound bound;
};

static void enter(const char *cgroup)
{
        char path[300];
        FILE *file;

        snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fprintf(file, "0") > 0);
        assert_int_equal(fclose(file), 0);
}

static void on_bound(struct workload *workload, uint16_t port, uint8_t protocol, void *userdata)
{
        struct setup *setup = userdata;

        setup->bound = (struct bound){ port, protocol };
}

static void start(struct setup *setup)
{
        static const struct activity_callbacks callbacks = { .bound = on_bound };

        assert_int_equal(activity_new(setup->event, MACHINE_BPFFS, &callbacks, &setup->activity), 0);
        assert_int_equal(workload_new(setup->activity, &setup->settings, setup->inside, setup, &setup->workload), 0);
}

static void stop(struct setup *setup, bool keep_pins)
{
        setup->workload = workload_free(setup->workload, keep_pins);
        setup->activity = activity_free(setup->activity, keep_pins);
}

static int set_up(void **state)
{
        struct setup *setup = calloc(1, sizeof(*setup));
        char *root;

        assert_int_equal(cgroup_find_root(&root), 0);
        snprintf(setup->inside, sizeof(setup->inside), "%s/lull-test-activity-%d", root, getpid());
        snprintf(setup->outside, sizeof(setup->outside), "%s/lull-test-outside-%d", root, getpid());
        free(root);
        assert_int_equal(mkdir(setup->inside, 0755), 0);
        assert_int_equal(mkdir(setup->outside, 0755), 0);
        enter(setup->outside);

        setup->ports[0] = (struct workload_port){ PORT, IPPROTO_TCP };
        setup->ports[1] = (struct workload_port){ PORT, IPPROTO_UDP };
        setup->policy = (struct policy){ .name = (char *)"web",
                                         .ignore = &setup->rule,
                                         .idle = { .after_ns = 60 * NSEC_PER_SEC, .request_timeout_ns = 60 * NSEC_PER_SEC } };
        setup->settings =
                (struct workload_settings){ .name = "web", .policy = &setup->policy, .ports = setup->ports, .n_ports = 2 };
        assert_int_equal(sd_event_new(&setup->event), 0);
        start(setup);
        *state = setup;
        return 0;
}

static int tear_down(void **state)
{
        struct setup *setup = *state;
        char path[300];

        stop(setup, false);
        sd_event_unref(setup->event);
        snprintf(path, sizeof(path), "%s/..", setup->outside);
        enter(path);
        rmdir(setup->inside);
        assert_int_equal(rmdir(setup->outside), 0);
        free(setup);
        return 0;
}

/* ---- sockets */

static struct sockaddr_in6 local_address(uint16_t port)
{
        return (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_ANY_INIT };
}

static int bound_socket(const char *cgroup, const struct setup *setup, int type, uint16_t port)
{
        struct sockaddr_in6 address = local_address(port);
        int fd, one = 1;

        enter(cgroup);
        fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
        enter(setup->outside);
        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        if (type == SOCK_STREAM)
                assert_int_equal(listen(fd, 16), 0);
        return fd;
}

static int connected_socket(const char *cgroup, const struct setup *setup, int type, uint16_t port)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };
        int fd;

        enter(cgroup);
        fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
        enter(setup->outside);
        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

struct pair {
        int listener, client, server;
};

static struct pair connect_pair(const struct setup *setup, const char *server, const char *client, uint16_t port)
{
        struct pair pair = { .listener = bound_socket(server, setup, SOCK_STREAM, port) };

        pair.client = connected_socket(client, setup, SOCK_STREAM, port);
        pair.server = accept(pair.listener, NULL, NULL);
        assert_true(pair.server >= 0);
        return pair;
}

static void close_pair(struct pair *pair)
{
        close(pair->client);
        close(pair->server);
        close(pair->listener);
}

static void say(int from, int to, const char *text)
{
        char buffer[256];

        assert_int_equal(send(from, text, strlen(text), 0), strlen(text));
        assert_int_equal(recv(to, buffer, sizeof(buffer), 0), strlen(text));
}

static struct workload_snapshot look(const struct setup *setup)
{
        struct workload_snapshot snapshot;

        assert_int_equal(workload_read(setup->workload, now_monotonic_ns(), &snapshot), 0);
        return snapshot;
}

/* ---- promises */

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

static uint32_t segments_in(int fd)
{
        struct tcp_info info = { 0 };
        socklen_t length = sizeof(info);

        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
        return info.tcpi_segs_in;
}

static void keepalives_are_no_activity(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT);
        uint64_t deadline = now_monotonic_ns() + DEADLINE_SECONDS * NSEC_PER_SEC, last;
        int one = 1;
        uint32_t segments;

        say(pair.client, pair.server, "question");
        say(pair.server, pair.client, "answer");
        last = look(setup).last_ns;
        segments = segments_in(pair.server);

        assert_int_equal(setsockopt(pair.client, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one)), 0);
        assert_int_equal(setsockopt(pair.client, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one)), 0);
        assert_int_equal(setsockopt(pair.client, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), 0);
        while (segments_in(pair.server) < segments + 2) {
                assert_true(now_monotonic_ns() < deadline);
                poll(NULL, 0, 10);
        }
        assert_int_equal(look(setup).last_ns, last);
        assert_int_equal(look(setup).open_requests, 0);
        close_pair(&pair);
}

/* The next sequence number of a direction, as a socket under repair tells it. */
static uint32_t queue_sequence(int fd, int queue)
{
        uint32_t sequence;
        socklen_t length = sizeof(sequence);
        int on = 1, off = 0;

        assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), 0);
        assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), 0);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &sequence, &length), 0);
        assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)), 0);
        return sequence;
}

static uint16_t checksum(const void *data, size_t length, uint32_t sum)
{
        const uint8_t *bytes = data;

        for (size_t i = 0; i < length; i++)
                sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return htons((uint16_t)~sum);
}

/* Sends @byte from @client's end at @sequence, past its socket. */
static void forge_byte(int client, uint32_t sequence, uint32_t acknowledged, char byte)
{
        struct sockaddr_in local, remote;
        socklen_t length = sizeof(local);
        struct {
                struct tcphdr header;
                char byte;
        } __attribute__((packed)) segment = { .byte = byte };
        int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP);

        assert_int_equal(getsockname(client, (struct sockaddr *)&local, &length), 0);
        assert_int_equal(getpeername(client, (struct sockaddr *)&remote, &length), 0);
        segment.header = (struct tcphdr){ .source = local.sin_port,
                                          .dest = remote.sin_port,
                                          .seq = htonl(sequence),
                                          .ack_seq = htonl(acknowledged),
                                          .doff = sizeof(segment.header) / 4,
                                          .ack = 1,
                                          .window = htons(1000) };
        segment.header.check =
                checksum(&segment, sizeof(segment),
                         2 * (INADDR_LOOPBACK >> 16) + 2 * (INADDR_LOOPBACK & 0xffff) + IPPROTO_TCP + sizeof(segment));
        remote.sin_port = 0;
        assert_int_equal(sendto(raw, &segment, sizeof(segment), 0, (struct sockaddr *)&remote, length), sizeof(segment));
        close(raw);
}

static void a_byte_that_was_seen_before_is_no_activity(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT);
        uint32_t sequence, acknowledged, segments;
        uint64_t last;

        say(pair.client, pair.server, "question");
        say(pair.server, pair.client, "answer");
        sequence = queue_sequence(pair.client, TCP_SEND_QUEUE);
        acknowledged = queue_sequence(pair.client, TCP_RECV_QUEUE);
        last = look(setup).last_ns;
        segments = segments_in(pair.server);

        forge_byte(pair.client, sequence - 1, acknowledged, 'x'); /* an old keepalive's garbage, or a retransmission */
        assert_int_equal(segments_in(pair.server), segments + 1);
        assert_int_equal(look(setup).last_ns, last);
        assert_int_equal(look(setup).open_requests, 0);
        assert_int_equal(look(setup).received_bytes, 8);

        forge_byte(pair.client, sequence, acknowledged, 'x');
        assert_int_equal(look(setup).open_requests, 1);
        close_pair(&pair);
}

static void payload_that_comes_with_the_handshake_opens_a_request(void **state)
{
        struct setup *setup = *state;
        struct pair pair = { .listener = bound_socket(setup->inside, setup, SOCK_STREAM, PORT) };
        int seconds = 10;

        assert_int_equal(setsockopt(pair.listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)), 0);
        pair.client = connected_socket(setup->outside, setup, SOCK_STREAM, PORT);
        assert_int_equal(send(pair.client, "question", 8, 0), 8);
        pair.server = accept(pair.listener, NULL, NULL);
        assert_int_equal(look(setup).open_requests, 1);
        assert_int_equal(look(setup).open_requests, 1);
        assert_int_equal(send(pair.server, "answer", 6, 0), 6);
        assert_int_equal(look(setup).open_requests, 0);
        close_pair(&pair);
}

static void a_client_that_will_send_no_more_may_still_wait(void **state)
{
        struct setup *setup = *state;
        struct pair pair = connect_pair(setup, setup->inside, setup->outside, PORT);

        say(pair.client, pair.server, "question");
        shutdown(pair.client, SHUT_WR);
        assert_int_equal(look(setup).open_requests, 1);
        close(pair.server);
        assert_int_equal(look(setup).open_requests, 0);
        close(pair.client);
        close(pair.listener);
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

static unsigned attached_programs(const struct setup *setup, enum bpf_attach_type type)
{
        __u32 ids[8], count = ELEMENTSOF(ids), flags;
        int fd = open(setup->inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(bpf_prog_query(fd, type, 0, &flags, ids, &count), 0);
        close(fd);
        return count;
}

static void a_restart_of_the_daemon_loses_nothing(void **state)
{
        struct setup *setup = *state;
        struct pair slow = connect_pair(setup, setup->inside, setup->outside, PORT), pair;

        say(slow.client, slow.server, "question");
        close(slow.listener);
        stop(setup, true);
        assert_int_equal(attached_programs(setup, BPF_CGROUP_INET_INGRESS), 1);

        pair = connect_pair(setup, setup->inside, setup->outside, PORT); /* nobody looks */
        say(pair.client, pair.server, "question");
        say(pair.server, pair.client, "answer");

        start(setup);
        assert_int_equal(attached_programs(setup, BPF_CGROUP_INET_INGRESS), 1);
        assert_int_equal(attached_programs(setup, BPF_CGROUP_SOCK_OPS), 1);
        assert_int_equal(look(setup).connections, 2);
        assert_int_equal(look(setup).connections_total, 2);
        assert_int_equal(look(setup).received_bytes, 16);
        assert_int_equal(look(setup).open_requests, 1);
        say(slow.server, slow.client, "answer");
        assert_int_equal(look(setup).open_requests, 0);
        assert_int_equal(look(setup).sent_bytes, 12);
        close(slow.client);
        close(slow.server);
        close_pair(&pair);
}

/* The kernel frees a link whose pin has gone when it gets to it. */
static void await_detached(const struct setup *setup, enum bpf_attach_type type)
{
        uint64_t deadline = now_monotonic_ns() + DEADLINE_SECONDS * NSEC_PER_SEC;

        while (attached_programs(setup, type) > 0) {
                assert_true(now_monotonic_ns() < deadline);
                usleep(1000);
        }
}

static void what_an_earlier_daemon_left_and_nobody_took_over_is_detached(void **state)
{
        struct setup *setup = *state;
        static const struct activity_callbacks callbacks = { 0 };

        stop(setup, true);
        assert_int_equal(activity_new(setup->event, MACHINE_BPFFS, &callbacks, &setup->activity), 0);
        activity_settle(setup->activity);
        await_detached(setup, BPF_CGROUP_INET_INGRESS);
        await_detached(setup, BPF_CGROUP_INET4_POST_BIND);
}

static void a_workload_that_is_gone_cannot_be_read(void **state)
{
        struct setup *setup = *state;
        struct workload_snapshot snapshot;

        assert_int_equal(rmdir(setup->inside), 0);
        assert_true(workload_read(setup->workload, now_monotonic_ns(), &snapshot) < 0);
}

static void nothing_is_left_once_it_is_given_up(void **state)
{
        struct setup *setup = *state;

        stop(setup, false);
        assert_int_equal(attached_programs(setup, BPF_CGROUP_INET_EGRESS), 0);
        assert_int_equal(attached_programs(setup, BPF_CGROUP_SOCK_OPS), 0);
        assert_int_equal(access(MACHINE_BPFFS "/activity", F_OK), -1);
}

#define PROMISE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

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
                PROMISE(keepalives_are_no_activity),
                PROMISE(a_byte_that_was_seen_before_is_no_activity),
                PROMISE(payload_that_comes_with_the_handshake_opens_a_request),
                PROMISE(a_client_that_will_send_no_more_may_still_wait),
                PROMISE(datagrams_are_activity_at_their_time),
                PROMISE(a_new_listener_rings_the_doorbell),
                PROMISE(a_restart_of_the_daemon_loses_nothing),
                PROMISE(what_an_earlier_daemon_left_and_nobody_took_over_is_detached),
                PROMISE(a_workload_that_is_gone_cannot_be_read),
                PROMISE(nothing_is_left_once_it_is_given_up),
        };

        machine_enter();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
