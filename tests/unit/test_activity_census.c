/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>

#include "activity/workload.h"
#include "base/macros.h"

static struct activity_socket socket_from(const char *remote, uint16_t local_port)
{
        struct activity_socket socket = { .accepted = 1, .tuple.local_port = local_port };
        struct address address;

        assert_int_equal(address_parse(remote, &address), 0);
        memcpy(socket.tuple.remote, address.bytes, sizeof(socket.tuple.remote));
        return socket;
}

static struct activity_rule_key rule(const char *text, uint16_t port)
{
        struct activity_rule_key key = { .prefix_length = ACTIVITY_RULE_PREFIX, .port = port };
        struct prefix prefix;

        if (text) {
                assert_int_equal(prefix_parse(text, &prefix), 0);
                key.prefix_length += prefix.length;
                memcpy(key.address, prefix.address.bytes, sizeof(key.address));
        }
        return key;
}

/* Serves 80 and 443; 10.1.0.0/16 is ignored, 2001:db8::/32 on port 443 is, and everybody on 9090. */
static uint8_t classify(const struct activity_socket *socket)
{
        struct activity_port_key ports[] = { { .port = 80, .transport = IPPROTO_TCP },
                                             { .port = 443, .transport = IPPROTO_TCP },
                                             { .port = 53, .transport = IPPROTO_UDP } };
        struct activity_rule_key rules[] = { rule("10.1.0.0/16", 0), rule("2001:db8::/32", 443), rule(NULL, 9090) };
        struct keys keys = { .ports = ports, .n_ports = ELEMENTSOF(ports), .rules = rules, .n_rules = ELEMENTSOF(rules) };

        return keys_classify(&keys, socket);
}

static void changed_settings_class_connections_as_the_programs_will(void **state)
{
        static const struct {
                const char *remote;
                uint16_t local_port;
                enum activity_class class;
        } cases[] = {
                { "192.0.2.1", 80, ACTIVITY_SERVED },     { "2001:db9::1", 443, ACTIVITY_SERVED },
                { "10.1.255.1", 80, ACTIVITY_IGNORED },   { "10.2.0.1", 80, ACTIVITY_SERVED },
                { "2001:db8::1", 443, ACTIVITY_IGNORED }, { "2001:db8::1", 80, ACTIVITY_SERVED },
                { "192.0.2.1", 9090, ACTIVITY_IGNORED },  { "192.0.2.1", 8080, ACTIVITY_OTHER },
                { "192.0.2.1", 53, ACTIVITY_OTHER },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct activity_socket socket = socket_from(cases[i].remote, cases[i].local_port);

                assert_int_equal(classify(&socket), cases[i].class);
        }
}

static void what_a_workload_connected_itself_is_outbound_whatever_its_port(void **state)
{
        struct activity_socket socket = socket_from("192.0.2.1", 80);

        socket.accepted = 0;
        assert_int_equal(classify(&socket), ACTIVITY_OUTBOUND);
}

static void the_other_end_does_not_change_with_the_settings(void **state)
{
        struct activity_socket socket = socket_from("192.0.2.1", 80);

        socket.class = ACTIVITY_PROBE;
        assert_int_equal(classify(&socket), ACTIVITY_PROBE);
        socket.class = ACTIVITY_SELF;
        assert_int_equal(classify(&socket), ACTIVITY_SELF);
}

static void expect_request(const struct activity_socket *socket, uint64_t since_ns, uint64_t last_ns)
{
        uint64_t since, last;

        socket_request(socket, &since, &last);
        assert_int_equal(since, since_ns);
        assert_int_equal(last, last_ns);
}

static void a_request_is_open_while_anything_says_so(void **state)
{
        const struct activity_socket answered = {
                .protocol = ACTIVITY_PROTOCOL_TLS, .request_since_ns = 5, .request_last_ns = 7, .requests = 3, .answered = 3
        };
        struct activity_socket socket = answered;

        expect_request(&socket, 0, 0);
        socket.answered = 2;
        expect_request(&socket, 5, 7);

        socket = answered;
        socket.streams[1] = 1;
        expect_request(&socket, 0, 0); /* only HTTP/2 has streams */
        socket.protocol = ACTIVITY_PROTOCOL_HTTP2;
        expect_request(&socket, 5, 7);

        socket = answered;
        socket.received_flags = ACTIVITY_H2_CROWDED;
        expect_request(&socket, 5, 7);

        socket = answered;
        socket.doubt_ns = 6;
        expect_request(&socket, 6, 6);
}

static void a_plain_request_is_open_until_an_answer_acknowledges_it(void **state)
{
        struct activity_socket socket = { .protocol = ACTIVITY_PROTOCOL_PLAIN, .request_since_ns = 5, .request_last_ns = 7 };

        expect_request(&socket, 0, 0);
        socket.asked_seq = 10; /* sequence numbers wrap */
        socket.answered_seq = UINT32_MAX - 10;
        socket.received_flags = ACTIVITY_ASKED;
        expect_request(&socket, 5, 7);
        socket.sent_flags = ACTIVITY_ANSWERED;
        expect_request(&socket, 5, 7);

        socket.answered_seq = 10;
        expect_request(&socket, 0, 0);
        socket.answered_seq = 11; /* a ping or an end of the stream came after it */
        expect_request(&socket, 0, 0);

        socket.asked_seq = 12; /* within the tick of the answer */
        socket.answered_ns = 6;
        expect_request(&socket, 6, 7);
}

static void what_is_unanswered_for_more_than_sequence_numbers_can_tell_is_open(void **state)
{
        struct activity_socket socket = { .protocol = ACTIVITY_PROTOCOL_PLAIN,
                                          .request_since_ns = 5,
                                          .request_last_ns = 7,
                                          .received_flags = ACTIVITY_ASKED | ACTIVITY_ASKED_FAR,
                                          .sent_flags = ACTIVITY_ANSWERED,
                                          .answered_seq = 1,
                                          .far_answered = 1,
                                          .asked_seq = 3u << 30 };

        expect_request(&socket, 5, 7);
        socket.answered_seq = socket.asked_seq;
        expect_request(&socket, 0, 0);
}

static void expect_line(const char *line, const char *local, uint16_t local_port, const char *remote, uint16_t remote_port)
{
        struct address address;
        struct activity_tuple tuple;

        assert_true(connection_line_parse(line, &tuple));
        assert_int_equal(address_parse(local, &address), 0);
        assert_memory_equal(tuple.local, address.bytes, sizeof(address.bytes));
        assert_int_equal(address_parse(remote, &address), 0);
        assert_memory_equal(tuple.remote, address.bytes, sizeof(address.bytes));
        assert_int_equal(tuple.local_port, local_port);
        assert_int_equal(tuple.remote_port, remote_port);
        assert_int_equal(tuple.transport, IPPROTO_TCP);
}

/* As Linux 6.18 writes it on a little-endian machine. */
static void the_kernel_s_table_is_read_as_the_programs_see_connections(void **state)
{
        expect_line(
                "   1: 0100007F:1F90 0200630A:C350 01 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 20 4 30 10 -1\n",
                "127.0.0.1", 8080, "10.99.0.2", 50000);
        expect_line("   2: 010099FD000000000000000002000000:1F90 010099FD000000000000000001000000:C350 08 00000000:00000000 00:0",
                    "fd99:1::2", 8080, "fd99:1::1", 50000);
        expect_line("   3: 0000000000000000FFFF00000200630A:1F90 0000000000000000FFFF00000100630A:C350 01 00000000:00000000 00:0",
                    "10.99.0.2", 8080, "10.99.0.1", 50000);
}

static void only_open_connections_are_read_from_it(void **state)
{
        static const char *const lines[] = {
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
                "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000",
                "   0: 0100007F:1F90 0200630A:C350 06 00000000:00000000",
                "   0: 0100007F:1F90 0200630A:C350 02 00000000:00000000",
                "   0: 0100007F:1F90 0200630A",
                "   0: 0100007F 0200630A 01",
                "   0: x:1F90 y:C350 01",
                "",
        };
        struct activity_tuple tuple;

        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_false(connection_line_parse(lines[i], &tuple));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(changed_settings_class_connections_as_the_programs_will),
                cmocka_unit_test(what_a_workload_connected_itself_is_outbound_whatever_its_port),
                cmocka_unit_test(the_other_end_does_not_change_with_the_settings),
                cmocka_unit_test(the_kernel_s_table_is_read_as_the_programs_see_connections),
                cmocka_unit_test(only_open_connections_are_read_from_it),
                cmocka_unit_test(a_request_is_open_while_anything_says_so),
                cmocka_unit_test(a_plain_request_is_open_until_an_answer_acknowledges_it),
                cmocka_unit_test(what_is_unanswered_for_more_than_sequence_numbers_can_tell_is_open),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
