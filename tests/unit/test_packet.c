/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "hold/packet.h"

enum { ROOM = 4096 };

/* Hexadecimal text with blanks, as a packet dump has it, in memory of exactly its size, so that ASan sees a read past its end. */
static uint8_t *bytes(const char *hex, size_t *ret_length)
{
        uint8_t *data = malloc(strlen(hex) / 2 + 1), *exact;
        size_t length = 0;
        unsigned value;

        assert_non_null(data);
        for (; *hex; hex++) {
                if (*hex == ' ')
                        continue;
                assert_int_equal(sscanf(hex++, "%2x", &value), 1);
                data[length++] = (uint8_t)value;
        }
        exact = malloc(length ? length : 1);
        assert_non_null(exact);
        memcpy(exact, data, length);
        free(data);
        *ret_length = length;
        return exact;
}

/* A SYN of 192.0.2.1:40000 to 192.0.2.2:80, one with IPv4 options, and so on. Checksums were computed apart from this code (Python). */
#define IPV4_SYN "45000028 1234 4000 40 06 0000 c0000201 c0000202"
#define TCP_SYN "9c40 0050 00000001 00000000 5002 faf0"
#define TCP_SYN_ALONE "9c40 0050 00000001 00000000 5002 ffff"
#define IPV6_ADDRESSES "20010db8000000000000000000000001 20010db8000000000000000000000002"

struct parse_row {
        const char *name, *hex;
        int result;
        unsigned transport, payload;
        uint16_t destination_port;
};

static const struct parse_row parse_rows[] = {
        { "IPv4 SYN", IPV4_SYN TCP_SYN "0000 0000", 0, 20, 40, 80 },
        { "IPv4 with options", "4600002c 1234 4000 40 06 0000 c0000201 c0000202 01010101" TCP_SYN "0000 0000", 0, 24, 44, 80 },
        { "IPv4 UDP", "4500001e 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 000a 0000 6869", 0, 20, 28, 53 },
        { "bytes past the packet", IPV4_SYN TCP_SYN "0000 0000 ffffffff", 0, 20, 40, 80 },
        { "UDP shorter than its packet", "45000020 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 000a 0000 6869 0000", 0, 20, 28,
          53 },
        { "IPv6 SYN", "60000000 0014 06 40" IPV6_ADDRESSES TCP_SYN "0000 0000", 0, 40, 60, 80 },
        { "IPv6 hop-by-hop and destination options",
          "60000000 0024 00 40" IPV6_ADDRESSES "3c00 010400000000 0600 010400000000" TCP_SYN "0000 0000", 0, 56, 76, 80 },
        { "IPv6 atomic fragment", "60000000 001c 2c 40" IPV6_ADDRESSES "0600 0000 00000007" TCP_SYN "0000 0000", 0, 48, 68, 80 },
        { "IPv6 authentication header",
          "60000000 0024 33 40" IPV6_ADDRESSES "0602 0000 00000001 00000001 00000000" TCP_SYN "0000 0000", 0, 56, 76, 80 },
        { "nothing", "", -EBADMSG, 0, 0, 0 },
        { "neither IPv4 nor IPv6", "50000028", -EBADMSG, 0, 0, 0 },
        { "IPv4 header cut", "45000028 1234 4000 40 06", -EBADMSG, 0, 0, 0 },
        { "IPv4 header too short", "44000028 1234 4000 40 06 0000 c0000201 c0000202" TCP_SYN "0000 0000", -EBADMSG, 0, 0, 0 },
        { "IPv4 options cut", "4f000028 1234 4000 40 06 0000 c0000201 c0000202" TCP_SYN "0000 0000", -EBADMSG, 0, 0, 0 },
        { "IPv4 packet cut", IPV4_SYN TCP_SYN "0000", -EBADMSG, 0, 0, 0 },
        { "IPv4 first fragment", "45000028 1234 2000 40 06 0000 c0000201 c0000202" TCP_SYN "0000 0000", -EPROTONOSUPPORT, 0, 0, 0 },
        { "IPv4 later fragment", "45000028 1234 0010 40 06 0000 c0000201 c0000202" TCP_SYN "0000 0000", -EPROTONOSUPPORT, 0, 0, 0 },
        { "ICMP", "4500001c 1234 4000 40 01 0000 c0000201 c0000202 0800 0000 0000 0000", -EPROTONOSUPPORT, 0, 0, 0 },
        { "TCP header cut", "45000027 1234 4000 40 06 0000 c0000201 c0000202" TCP_SYN "0000 00", -EBADMSG, 0, 0, 0 },
        { "TCP header too short", IPV4_SYN "9c40 0050 00000001 00000000 4002 faf0 0000 0000", -EBADMSG, 0, 0, 0 },
        { "TCP options cut", IPV4_SYN "9c40 0050 00000001 00000000 6002 faf0 0000 0000", -EBADMSG, 0, 0, 0 },
        { "UDP header cut", "4500001b 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 0008 00", -EBADMSG, 0, 0, 0 },
        { "UDP length too small", "4500001c 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 0007 0000", -EBADMSG, 0, 0, 0 },
        { "UDP length too large", "4500001c 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 0009 0000", -EBADMSG, 0, 0, 0 },
        { "IPv6 packet cut", "60000000 0014 06 40" IPV6_ADDRESSES TCP_SYN "0000", -EBADMSG, 0, 0, 0 },
        { "IPv6 extension header cut", "60000000 0008 00 40" IPV6_ADDRESSES "0602 010400000000", -EBADMSG, 0, 0, 0 },
        { "IPv6 ends in an extension header", "60000000 0004 00 40" IPV6_ADDRESSES "0600 0104", -EBADMSG, 0, 0, 0 },
        { "IPv6 fragment", "60000000 001c 2c 40" IPV6_ADDRESSES "0600 0001 00000007" TCP_SYN "0000 0000", -EPROTONOSUPPORT, 0, 0,
          0 },
        { "IPv6 encrypted", "60000000 0008 32 40" IPV6_ADDRESSES "0000000100000001", -EPROTONOSUPPORT, 0, 0, 0 },
        { "IPv6 nine extension headers",
          "60000000 0048 00 40" IPV6_ADDRESSES
          "0000010400000000 0000010400000000 0000010400000000 0000010400000000 0000010400000000"
          "0000010400000000 0000010400000000 0000010400000000 0600010400000000",
          -EPROTONOSUPPORT, 0, 0, 0 },
};

static void every_kind_of_header_is_parsed_or_refused(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(parse_rows); i++) {
                const struct parse_row *row = &parse_rows[i];
                struct packet packet = { 0 };
                size_t length;
                uint8_t *data = bytes(row->hex, &length);
                int r = packet_parse(data, length, &packet);

                if (r != row->result || packet.transport != row->transport || packet.payload != row->payload ||
                    packet.flow.destination_port != row->destination_port)
                        fail_msg("%s: result %d, transport at %u, payload at %u", row->name, r, packet.transport, packet.payload);
                free(data);
        }
}

static void a_packet_cut_anywhere_is_refused(void **state)
{
        struct packet packet;

        for (size_t i = 0; i < ELEMENTSOF(parse_rows); i++) {
                size_t length;
                uint8_t *data = bytes(parse_rows[i].hex, &length);

                if (parse_rows[i].result == 0 && packet_parse(data, length, &packet) == 0)
                        for (size_t cut = 0; cut < packet.length; cut++) {
                                uint8_t *part = malloc(cut ? cut : 1); /* of just that size: ASan sees a read past it */

                                memcpy(part, data, cut);
                                assert_true(packet_parse(part, cut, &(struct packet){ 0 }) < 0);
                                free(part);
                        }
                free(data);
        }
}

static void a_flow_is_what_the_headers_say(void **state)
{
        char text[FLOW_TEXT_MAX];
        struct packet packet;
        size_t length;
        uint8_t *data = bytes("60000000 0014 06 40" IPV6_ADDRESSES TCP_SYN "0000 0000", &length);

        assert_int_equal(packet_parse(data, length, &packet), 0);
        assert_string_equal(flow_format(&packet.flow, text), "tcp [2001:db8::1]:40000 > [2001:db8::2]:80");
        free(data);
}

static void expect_checksum(const char *hex, size_t offset, uint16_t expected)
{
        struct packet packet;
        size_t length;
        uint8_t *data = bytes(hex, &length);

        assert_int_equal(packet_parse(data, length, &packet), 0);
        packet_complete_checksum(data, &packet);
        assert_int_equal(data[offset] << 8 | data[offset + 1], expected);
        free(data);
}

static void partial_checksums_are_completed(void **state)
{
        expect_checksum(IPV4_SYN TCP_SYN "841e 0000", 36, 0x945c);
        expect_checksum("4500001f 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 000b 8420 686921", 26, 0x55f5);
        expect_checksum("60000000 000a 11 40" IPV6_ADDRESSES "9c40 0035 000a 5b90 6869", 46, 0x9f86);
}

static void a_udp_checksum_that_comes_to_zero_is_sent_as_all_ones(void **state)
{
        /* The pseudo header's sum, ports, length and the data add up to 0xffff. */
        expect_checksum("4500001e 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 000a 841f df60", 26, 0xffff);
}

/* The sum of all 16-bit words with the checksum in place is 0xffff when it is right (RFC 1071). */
static uint16_t fold(const uint8_t *data, size_t length, uint32_t sum)
{
        for (size_t i = 0; i < length; i++)
                sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return (uint16_t)sum;
}

static void check_datagram(const uint8_t *datagram, size_t length, bool checksum)
{
        bool ipv6 = datagram[0] >> 4 == 6;
        size_t header = ipv6 ? 40 : 20, addresses = ipv6 ? 8 : 12;
        struct packet packet;

        assert_int_equal(packet_parse(datagram, length, &packet), 0);
        assert_int_equal(packet.length, length);
        assert_int_equal(packet.end, length);
        if (!ipv6)
                assert_int_equal(fold(datagram, header, 0), 0xffff);
        if (checksum)
                assert_int_equal(fold(datagram + header, length - header,
                                      fold(datagram + addresses, header - addresses, (uint32_t)(length - header) + IPPROTO_UDP)),
                                 0xffff);
        else
                assert_true(packet_lacks_checksum(datagram, &packet));
}

static void expect_split(const char *header_hex, size_t payload, uint16_t gso_size, bool checksum, size_t expected)
{
        struct packet packet;
        size_t header;
        uint8_t *start = bytes(header_hex, &header), *data = malloc(header + payload), buffer[ROOM];
        size_t seen = 0;

        memcpy(data, start, header);
        for (size_t i = 0; i < payload; i++)
                data[header + i] = (uint8_t)(i * 7);
        assert_int_equal(packet_parse(data, header + payload, &packet), 0);
        assert_int_equal(packet_datagrams(&packet, gso_size), expected);
        for (size_t i = 0; i < expected; i++) {
                size_t length = packet_datagram(data, &packet, gso_size, i, checksum, buffer);

                check_datagram(buffer, length, checksum);
                if (!packet.ipv6)
                        assert_int_equal(buffer[4] << 8 | buffer[5], (0xffff + i) & 0xffff); /* identification, wrapping */
                assert_memory_equal(buffer + header, data + header + seen, length - header);
                seen += length - header;
        }
        assert_int_equal(seen, payload);
        free(start);
        free(data);
}

static void a_large_datagram_is_split_as_the_kernel_would(void **state)
{
        expect_split("450009e0 ffff 4000 40 11 0000 c0000201 c0000202 9c40 0035 09cc 0000", 2500, 1000, true, 3);
        expect_split("450009e0 ffff 4000 40 11 0000 c0000201 c0000202 9c40 0035 09cc 0000", 2500, 1000, false, 3);
        expect_split("450007ec ffff 4000 40 11 0000 c0000201 c0000202 9c40 0035 07d8 0000", 2000, 1000, true, 2);
        expect_split("60000000 09cc 11 40" IPV6_ADDRESSES "9c40 0035 09cc 0000", 2500, 999, true, 3);
}

static void what_fits_one_datagram_is_not_split(void **state)
{
        struct packet packet;
        size_t length;
        uint8_t *data = bytes("4500001e 1234 4000 40 11 0000 c0000201 c0000202 9c40 0035 000a 0000 6869", &length);

        assert_int_equal(packet_parse(data, length, &packet), 0);
        assert_int_equal(packet_datagrams(&packet, 0), 1);
        assert_int_equal(packet_datagrams(&packet, 2), 1);
        assert_int_equal(packet_datagrams(&packet, 1), 2);
        assert_true(packet_lacks_checksum(data, &packet));
        free(data);
}

static void a_frame_names_its_device_and_protocol(void **state)
{
        static const uint8_t mac[PACKET_MAC] = { 2, 0, 0, 0, 0, 1 };
        uint8_t frame[PACKET_ETHERNET_HEADER];

        packet_ethernet_header(false, mac, frame);
        assert_memory_equal(frame, mac, PACKET_MAC);
        assert_int_equal(frame[6] & 3, 2); /* a source that is unicast and locally administered: bridges drop any other */
        assert_int_equal(frame[12] << 8 | frame[13], 0x0800);
        packet_ethernet_header(true, mac, frame);
        assert_int_equal(frame[12] << 8 | frame[13], 0x86dd);
}

/* Checksums were computed apart from this code (Python). */
static void a_syn_of_our_own_is_a_whole_packet(void **state)
{
        static const struct {
                const char *source, *destination, *hex;
        } rows[] = {
                { "192.0.2.1", "192.0.2.2", "45000028 0000 0000 40 06 f6cc c0000201 c0000202" TCP_SYN_ALONE "8f4d 0000" },
                { "2001:db8::1", "2001:db8::2", "60000000 0014 06 40" IPV6_ADDRESSES TCP_SYN_ALONE "b7dc 0000" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct flow flow = { .source_port = 40000, .destination_port = 80, .protocol = IPPROTO_TCP };
                size_t length;
                _cleanup_(freep) uint8_t *expected = bytes(rows[i].hex, &length);
                uint8_t syn[PACKET_SYN_MAX];

                assert_int_equal(address_parse(rows[i].source, &flow.source), 0);
                assert_int_equal(address_parse(rows[i].destination, &flow.destination), 0);
                assert_int_equal(packet_syn(&flow, 1, syn), length);
                assert_memory_equal(syn, expected, length);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_kind_of_header_is_parsed_or_refused),
                cmocka_unit_test(a_packet_cut_anywhere_is_refused),
                cmocka_unit_test(a_flow_is_what_the_headers_say),
                cmocka_unit_test(partial_checksums_are_completed),
                cmocka_unit_test(a_udp_checksum_that_comes_to_zero_is_sent_as_all_ones),
                cmocka_unit_test(a_large_datagram_is_split_as_the_kernel_would),
                cmocka_unit_test(what_fits_one_datagram_is_not_split),
                cmocka_unit_test(a_syn_of_our_own_is_a_whole_packet),
                cmocka_unit_test(a_frame_names_its_device_and_protocol),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
