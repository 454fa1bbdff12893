/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>

#include "base/address.h"

static struct address address(const char *text)
{
        struct address address;

        assert_int_equal(address_parse(text, &address), 0);
        return address;
}

static struct frontend frontend(const char *text)
{
        struct frontend frontend;

        assert_int_equal(frontend_parse(text, &frontend), 0);
        return frontend;
}

static void addresses_are_read_and_written_back(void **unused)
{
        static const struct {
                const char *text, *written;
                bool ipv4, wildcard, loopback;
        } table[] = {
                { "192.0.2.1", "192.0.2.1", true, false, false },
                { "0.0.0.0", "0.0.0.0", true, true, false },
                { "127.0.0.1", "127.0.0.1", true, false, true },
                { "127.255.255.254", "127.255.255.254", true, false, true },
                { "128.0.0.1", "128.0.0.1", true, false, false },
                { "255.255.255.255", "255.255.255.255", true, false, false },
                { "::", "::", false, true, false },
                { "::1", "::1", false, false, true },
                { "::2", "::2", false, false, false },
                { "2001:DB8:0::1", "2001:db8::1", false, false, false },
                { "::ffff:192.0.2.1", "192.0.2.1", true, false, false },
                { "::ffff:0:0", "0.0.0.0", true, true, false },
                { "1111:2222:3333:4444:5555:6666:7777:8888", "1111:2222:3333:4444:5555:6666:7777:8888", false, false, false },
        };
        char buffer[ADDRESS_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct address read = address(table[i].text);

                assert_string_equal(address_format(&read, buffer), table[i].written);
                assert_int_equal(address_is_ipv4(&read), table[i].ipv4);
                assert_int_equal(address_is_wildcard(&read), table[i].wildcard);
                assert_int_equal(address_is_loopback(&read), table[i].loopback);
        }
}

static void what_is_no_address_is_refused_and_changes_nothing(void **unused)
{
        static const char *const table[] = {
                "",      "localhost", "1.2.3",    "1.2.3.4.5", "256.0.0.1", "01.2.3.4",
                "[::1]", "::1%lo",    " 1.2.3.4", "1.2.3.4 ",  "1:2",       ":::",
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct address before = address("192.0.2.9"), read = before;

                if (address_parse(table[i], &read) != -EINVAL || !address_equal(&read, &before))
                        fail_msg("\"%s\" was read", table[i]);
        }
}

static void prefixes_are_read_and_written_back(void **unused)
{
        static const struct {
                const char *text, *written;
                unsigned length;
        } table[] = {
                { "10.0.0.0/8", "10.0.0.0/8", 104 },
                { "192.0.2.1", "192.0.2.1/32", 128 },
                { "192.0.2.128/25", "192.0.2.128/25", 121 },
                { "0.0.0.0/0", "0.0.0.0/0", 96 },
                { "2001:db8::/32", "2001:db8::/32", 32 },
                { "::1", "::1/128", 128 },
                { "::/0", "::/0", 0 },
                { "::ffff:10.0.0.0/104", "10.0.0.0/8", 104 },
                { "1111:2222:3333:4444:5555:6666:7777:8888/128", "1111:2222:3333:4444:5555:6666:7777:8888/128", 128 },
        };
        char buffer[PREFIX_TEXT_MAX];
        struct prefix prefix;

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                assert_int_equal(prefix_parse(table[i].text, &prefix), 0);
                assert_int_equal(prefix.length, table[i].length);
                assert_string_equal(prefix_format(&prefix, buffer), table[i].written);
        }
}

static void what_is_no_prefix_is_refused_and_changes_nothing(void **unused)
{
        static const struct {
                const char *text;
                int error;
        } table[] = {
                { "", -EINVAL },
                { "/8", -EINVAL },
                { "10.0.0.0/", -EINVAL },
                { "10.0.0.0/33", -EINVAL },
                { "10.0.0.0/-1", -EINVAL },
                { "10.0.0.0/+8", -EINVAL },
                { "10.0.0.0/ 8", -EINVAL },
                { "10.0.0.0/8x", -EINVAL },
                { "10.0.0.0/8/8", -EINVAL },
                { "10.0.0.0/18446744073709551624", -EINVAL },
                { "::/129", -EINVAL },
                { "::/256", -EINVAL },
                { "10/8", -EINVAL },
                { "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa/8", -EINVAL },
                { "10.0.0.1/8", -ERANGE },
                { "10.0.0.0/6", -ERANGE },
                { "0.0.0.1/0", -ERANGE },
                { "2001:db8::1/32", -ERANGE },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct prefix prefix = { .length = 77 };

                if (prefix_parse(table[i].text, &prefix) != table[i].error || prefix.length != 77)
                        fail_msg("\"%s\"", table[i].text);
        }
}

static void a_prefix_contains_its_own_addresses_only(void **unused)
{
        static const struct {
                const char *prefix, *address;
                bool contains;
        } table[] = {
                { "10.0.0.0/8", "10.255.0.1", true },
                { "10.0.0.0/8", "11.0.0.0", false },
                { "192.0.2.128/25", "192.0.2.128", true },
                { "192.0.2.128/25", "192.0.2.255", true },
                { "192.0.2.128/25", "192.0.2.127", false },
                { "192.0.2.1", "192.0.2.1", true },
                { "192.0.2.1", "192.0.2.0", false },
                { "0.0.0.0/0", "192.0.2.1", true },
                { "0.0.0.0/0", "2001:db8::1", false },
                { "0.0.0.0/0", "::1", false },
                { "2001:db8::/32", "2001:db8:ffff::1", true },
                { "2001:db8::/32", "2001:db9::", false },
                { "2001:db8::/32", "192.0.2.1", false },
                { "::/0", "2001:db8::1", true },
                { "::/0", "192.0.2.1", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct address inside = address(table[i].address);
                struct prefix prefix;

                assert_int_equal(prefix_parse(table[i].prefix, &prefix), 0);
                if (prefix_contains(&prefix, &inside) != table[i].contains)
                        fail_msg("%s and %s", table[i].prefix, table[i].address);
        }
}

static void frontends_are_read_and_written_back(void **unused)
{
        static const struct {
                const char *text, *written;
                uint16_t port;
                uint8_t protocol;
        } table[] = {
                { "tcp/0.0.0.0:8080", "tcp/0.0.0.0:8080", 8080, IPPROTO_TCP },
                { "udp/[::]:5353", "udp/[::]:5353", 5353, IPPROTO_UDP },
                { "tcp/[2001:db8::1]:1", "tcp/[2001:db8::1]:1", 1, IPPROTO_TCP },
                { "udp/192.0.2.1:65535", "udp/192.0.2.1:65535", 65535, IPPROTO_UDP },
                { "tcp/[::ffff:192.0.2.1]:80", "tcp/192.0.2.1:80", 80, IPPROTO_TCP },
        };
        char buffer[FRONTEND_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct frontend read = frontend(table[i].text);

                assert_int_equal(read.port, table[i].port);
                assert_int_equal(read.protocol, table[i].protocol);
                assert_string_equal(frontend_format(&read, buffer), table[i].written);
        }
}

static void what_is_no_frontend_is_refused_and_changes_nothing(void **unused)
{
        static const struct {
                const char *text;
                int error;
        } table[] = {
                { "", -EINVAL },
                { "8080", -EINVAL },
                { "0.0.0.0:8080", -EINVAL },
                { "tcp/", -EINVAL },
                { "tcp/:80", -EINVAL },
                { "tcp/8080", -EINVAL },
                { "tcp/0.0.0.0", -EINVAL },
                { "tcp/0.0.0.0:", -EINVAL },
                { "tcp/0.0.0.0:0", -EINVAL },
                { "tcp/0.0.0.0:65536", -EINVAL },
                { "tcp/0.0.0.0:18446744073709551617", -EINVAL },
                { "tcp/0.0.0.0:-1", -EINVAL },
                { "tcp/0.0.0.0:80x", -EINVAL },
                { "tcp/0.0.0.0:http", -EINVAL },
                { "tcp/::1:80", -EINVAL },
                { "tcp/[::1]80", -EINVAL },
                { "tcp/[::1:80", -EINVAL },
                { "tcp/[]:80", -EINVAL },
                { "tcp/[0.0.0.0]:80", -EINVAL },
                { "tcp/localhost:80", -EINVAL },
                { "sctp/0.0.0.0:80", -EPROTONOSUPPORT },
                { "TCP/0.0.0.0:80", -EPROTONOSUPPORT },
                { "/0.0.0.0:80", -EPROTONOSUPPORT },
                { "tcp/[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc]:80", -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct frontend read = { .port = 77 };

                if (frontend_parse(table[i].text, &read) != table[i].error || read.port != 77 || read.protocol)
                        fail_msg("\"%s\"", table[i].text);
        }
}

static void frontends_overlap_where_one_packet_could_belong_to_both(void **unused)
{
        static const struct {
                const char *a, *b;
                bool overlap;
        } table[] = {
                { "tcp/192.0.2.1:80", "tcp/192.0.2.1:80", true },  { "tcp/192.0.2.1:80", "tcp/192.0.2.2:80", false },
                { "tcp/192.0.2.1:80", "udp/192.0.2.1:80", false }, { "tcp/192.0.2.1:80", "tcp/192.0.2.1:81", false },
                { "tcp/0.0.0.0:80", "tcp/192.0.2.1:80", true },    { "tcp/0.0.0.0:80", "tcp/[2001:db8::1]:80", false },
                { "tcp/[::]:80", "tcp/192.0.2.1:80", true },       { "tcp/[::]:80", "tcp/[2001:db8::1]:80", true },
                { "tcp/[::]:80", "tcp/0.0.0.0:80", true },         { "tcp/[::]:80", "udp/0.0.0.0:80", false },
                { "tcp/[::]:80", "tcp/0.0.0.0:81", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct frontend a = frontend(table[i].a), b = frontend(table[i].b);

                if (frontend_overlaps(&a, &b) != table[i].overlap || frontend_overlaps(&b, &a) != table[i].overlap)
                        fail_msg("%s and %s", table[i].a, table[i].b);
        }
}

static void a_frontend_matches_the_packets_sent_to_it(void **unused)
{
        static const struct {
                const char *frontend, *address;
                uint16_t port;
                uint8_t protocol;
                bool matches;
        } table[] = {
                { "tcp/192.0.2.1:80", "192.0.2.1", 80, IPPROTO_TCP, true },
                { "tcp/192.0.2.1:80", "192.0.2.2", 80, IPPROTO_TCP, false },
                { "tcp/192.0.2.1:80", "192.0.2.1", 81, IPPROTO_TCP, false },
                { "tcp/192.0.2.1:80", "192.0.2.1", 80, IPPROTO_UDP, false },
                { "tcp/0.0.0.0:80", "192.0.2.1", 80, IPPROTO_TCP, true },
                { "tcp/0.0.0.0:80", "::1", 80, IPPROTO_TCP, false },
                { "tcp/[::]:80", "::1", 80, IPPROTO_TCP, true },
                { "tcp/[::]:80", "192.0.2.1", 80, IPPROTO_TCP, true },
                { "tcp/[::1]:80", "::", 80, IPPROTO_TCP, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct frontend listening = frontend(table[i].frontend);
                struct address to = address(table[i].address);

                if (frontend_matches(&listening, &to, table[i].port, table[i].protocol) != table[i].matches)
                        fail_msg("%s and %s", table[i].frontend, table[i].address);
        }
}

static void socket_addresses_are_of_the_family_of_the_address(void **unused)
{
        struct address ipv4 = address("192.0.2.1"), ipv6 = address("2001:db8::1");
        struct sockaddr_storage storage;
        const struct sockaddr_in *in = (const struct sockaddr_in *)&storage;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&storage;
        struct address back;

        assert_int_equal(address_to_sockaddr(&ipv4, 80, &storage), sizeof(struct sockaddr_in));
        assert_int_equal(storage.ss_family, AF_INET);
        assert_int_equal(in->sin_port, htons(80));
        back = address_from_ipv4(in->sin_addr.s_addr);
        assert_true(address_equal(&back, &ipv4));

        assert_int_equal(address_to_sockaddr(&ipv6, 443, &storage), sizeof(struct sockaddr_in6));
        assert_int_equal(storage.ss_family, AF_INET6);
        assert_int_equal(in6->sin6_port, htons(443));
        back = address_from_bytes(AF_INET6, &in6->sin6_addr);
        assert_true(address_equal(&back, &ipv6));
}

static void the_longest_texts_fit_their_buffers(void **unused)
{
        struct flow flow = { .source_port = 65535, .destination_port = 65535, .protocol = 255 };
        struct frontend longest = { .port = 65535, .protocol = 255 };
        char flow_text[FLOW_TEXT_MAX], frontend_text[FRONTEND_TEXT_MAX];

        flow.source = flow.destination = longest.address = address("1111:2222:3333:4444:5555:6666:7777:8888");
        assert_string_equal(flow_format(&flow, flow_text), "unknown [1111:2222:3333:4444:5555:6666:7777:8888]:65535 > "
                                                           "[1111:2222:3333:4444:5555:6666:7777:8888]:65535");
        assert_string_equal(frontend_format(&longest, frontend_text), "unknown/[1111:2222:3333:4444:5555:6666:7777:8888]:65535");
}

static void flows_are_equal_in_all_five_parts(void **unused)
{
        const struct flow flow = {
                .source = address("192.0.2.1"),
                .destination = address("192.0.2.2"),
                .source_port = 40000,
                .destination_port = 80,
                .protocol = IPPROTO_TCP,
        };
        struct flow others[5] = { flow, flow, flow, flow, flow };
        char text[FLOW_TEXT_MAX];

        others[0].source = address("192.0.2.3");
        others[1].destination = address("192.0.2.3");
        others[2].source_port++;
        others[3].destination_port++;
        others[4].protocol = IPPROTO_UDP;

        assert_true(flow_equal(&flow, &flow));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_false(flow_equal(&flow, &others[i]));
        assert_string_equal(flow_format(&flow, text), "tcp 192.0.2.1:40000 > 192.0.2.2:80");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_are_read_and_written_back),
                cmocka_unit_test(what_is_no_address_is_refused_and_changes_nothing),
                cmocka_unit_test(prefixes_are_read_and_written_back),
                cmocka_unit_test(what_is_no_prefix_is_refused_and_changes_nothing),
                cmocka_unit_test(a_prefix_contains_its_own_addresses_only),
                cmocka_unit_test(frontends_are_read_and_written_back),
                cmocka_unit_test(what_is_no_frontend_is_refused_and_changes_nothing),
                cmocka_unit_test(frontends_overlap_where_one_packet_could_belong_to_both),
                cmocka_unit_test(a_frontend_matches_the_packets_sent_to_it),
                cmocka_unit_test(socket_addresses_are_of_the_family_of_the_address),
                cmocka_unit_test(the_longest_texts_fit_their_buffers),
                cmocka_unit_test(flows_are_equal_in_all_five_parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
