/* SPDX-License-Identifier: Apache-2.0 */
/* What a single segment tells: a request only where it brings bytes that are new. */
#include "activity_bench.h"

#include <linux/tcp.h>
#include <poll.h>

#include "packets.h"

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
                htons(checksum(2 * (INADDR_LOOPBACK >> 16) + 2 * (INADDR_LOOPBACK & 0xffff) + IPPROTO_TCP + sizeof(segment),
                               (const uint8_t *)&segment, sizeof(segment)));
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROMISE(keepalives_are_no_activity),
                PROMISE(a_byte_that_was_seen_before_is_no_activity),
                PROMISE(payload_that_comes_with_the_handshake_opens_a_request),
                PROMISE(a_client_that_will_send_no_more_may_still_wait),
        };

        machine_enter();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
