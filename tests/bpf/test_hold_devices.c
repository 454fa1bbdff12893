/* SPDX-License-Identifier: Apache-2.0 */
/* Real packets on real devices: what the hook sees of them, and letting them in again.
 *
 * A neighbour in another network namespace sends over a veth pair, bare or into a bridge.
 */
#include "hooks.h"
#include "packets.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

enum { SLOT_TCP, SLOT_UDP, SLOTS, LIMIT = 100 };

#define OUR_MAC "02:00:00:00:00:01" /* every device's here */

struct fixture {
        struct hold_hooks *hooks;
        struct doorbell doorbell;
        int ours, theirs; /* network namespaces */
};

/* A device of ours, the address that is asked for there, and where the neighbour's packets come from. */
struct device {
        const char *name;
        const char *ours, *theirs;
        const char *seen_as; /* the device that the hook is told of */
};

static const struct device devices[] = {
        { "veth0", "192.0.2.1", "192.0.2.2", "veth0" },         { "veth0", "2001:db8::1", "2001:db8::2", "veth0" },
        { "br0", "203.0.113.1", "203.0.113.2", "br0" },         { "br0", "2001:db8:20::1", "2001:db8:20::2", "br0" },
        { "veth1", "203.0.113.1", "203.0.113.2", "br0" }, /* a port of br0 */
        { "veth1", "2001:db8:20::1", "2001:db8:20::2", "br0" },
};

static const struct device *const plain_4 = &devices[0];
static const struct device tun = { "tun0", "10.9.0.1", "10.9.0.2", "tun0" };

static int family_of(const struct device *device)
{
        return strchr(device->ours, ':') ? AF_INET6 : AF_INET;
}

static socklen_t socket_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address)
{
        struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)ret_address;
        struct sockaddr_in *ipv4 = (struct sockaddr_in *)ret_address;

        memset(ret_address, 0, sizeof(*ret_address));
        if (inet_pton(AF_INET6, text, &ipv6->sin6_addr) == 1) {
                ipv6->sin6_family = AF_INET6;
                ipv6->sin6_port = htons(port);
                return sizeof(*ipv6);
        }
        memset(ret_address, 0, sizeof(*ret_address));
        assert_int_equal(inet_pton(AF_INET, text, &ipv4->sin_addr), 1);
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons(port);
        return sizeof(*ipv4);
}

static int make_socket(int namespace, int home, int family, int type)
{
        int fd;

        assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
        fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(setns(home, CLONE_NEWNET), 0);
        assert_true(fd >= 0);
        return fd;
}

/* The neighbour begins to connect, or is set to send. */
static int neighbour(struct fixture *fixture, const struct device *device, int type)
{
        int fd = make_socket(fixture->theirs, fixture->ours, family_of(device), type);
        struct sockaddr_storage address;
        socklen_t length = socket_address(device->ours, type == SOCK_STREAM ? 80 : 53, &address);

        if (connect(fd, (struct sockaddr *)&address, length) < 0)
                assert_int_equal(errno, EINPROGRESS);
        return fd;
}

static int listener(const struct device *device)
{
        int fd = socket(family_of(device), SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage address;
        socklen_t length = socket_address(device->ours, 80, &address);

        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(fd, 5), 0);
        return fd;
}

/* Of a TCP packet without IP options or extension headers. */
static void complete_checksum(uint8_t *packet, size_t length)
{
        size_t header = packet[0] >> 4 == 4 ? 20 : 40, addresses = header == 20 ? 8 : 32;

        put_16(packet + header + 16, 0);
        put_16(packet + header + 16,
               checksum(IPPROTO_TCP + (length - header), packet + header - addresses, length - header + addresses));
}

static size_t make_frame(const void *packet, size_t length, uint8_t frame[static ETH_HLEN + PACKET_BYTES_MAX])
{
        memset(frame, 0, ETH_HLEN);
        frame[0] = 2;
        frame[5] = 1;
        frame[6] = frame[11] = 2; /* a bridge takes nothing from the zero address */
        put_16(frame + 12, *(const uint8_t *)packet >> 4 == 4 ? ETH_P_IP : ETH_P_IPV6);
        memcpy(frame + ETH_HLEN, packet, length);
        return ETH_HLEN + length;
}

static void rearm(struct fixture *fixture)
{
        for (uint32_t slot = 0; slot < SLOTS; slot++)
                arm(fixture->hooks, slot, LIMIT);
        clear_map(fixture->hooks, HOLD_MAP_PASS);
        doorbell_read(&fixture->doorbell);
}

static void check_seen(const struct doorbell *doorbell, const struct device *device)
{
        uint8_t source[16], destination[16];

        put_address(source, device->theirs);
        put_address(destination, device->ours);
        if (doorbell->packet.ifindex != if_nametoindex(device->seen_as) || doorbell->packet.flags & LULL_PACKET_LOOPBACK ||
            memcmp(doorbell->packet.flow.source, source, 16) != 0 ||
            memcmp(doorbell->packet.flow.destination, destination, 16) != 0)
                fail_msg("%s, %s: not what was sent", device->name, device->ours);
}

static void inject(struct fixture *fixture, const struct device *device, const void *packet, size_t length)
{
        uint8_t frame[ETH_HLEN + PACKET_BYTES_MAX];
        int r = hold_hooks_inject(fixture->hooks, if_nametoindex(device->name), frame, make_frame(packet, length, frame));

        if (r < 0)
                fail_msg("%s: %s", device->name, strerror(-r));
}

/* The whole way: held, then let in again, then answered. */
static void a_connection_held_and_let_in_again_is_established(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(devices); i++) {
                const struct device *device = &devices[i];
                int server = listener(device), client, error = -1;
                struct doorbell *doorbell = &fixture->doorbell;

                rearm(fixture);
                client = neighbour(fixture, device, SOCK_STREAM);
                doorbell_wait(doorbell);
                check_seen(doorbell, device);

                add_pass(fixture->hooks, &doorbell->packet.flow, UINT64_MAX);
                complete_checksum(doorbell->data, doorbell->packet.length);
                inject(fixture, device, doorbell->data, doorbell->packet.length);

                if (poll(&(struct pollfd){ client, POLLOUT, 0 }, 1, 900) != 1) /* before TCP's first retransmission */
                        fail_msg("%s, %s: not answered", device->name, device->ours);
                getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) });
                assert_int_equal(error, 0);
                close_fd(client);
                close_fd(server);
        }
}

static void without_its_exemption_a_packet_let_in_again_is_held_again(void **state)
{
        struct fixture *fixture = *state;
        struct packet packet = { .source = tun.theirs, .destination = tun.ours };
        uint8_t bytes[PACKET_BYTES_MAX];
        size_t length = packet_build(&packet, bytes);

        rearm(fixture);
        inject(fixture, &tun, bytes, length); /* has no MAC addresses */
        doorbell_wait(&fixture->doorbell);
        check_seen(&fixture->doorbell, &tun);
        assert_int_equal(fixture->doorbell.packet.length, length);
        assert_memory_equal(fixture->doorbell.data, bytes, length);
}

/* With the priority tag, VLAN 0, which needs no device of its own. */
static void a_vlan_tag_is_no_part_of_what_is_held(void **state)
{
        struct fixture *fixture = *state;
        static const struct device tagged = { "veth0", "192.0.2.1", "192.0.2.2", "veth0" };
        struct packet packet = { .source = tagged.theirs, .destination = tagged.ours };
        uint8_t bytes[PACKET_BYTES_MAX], frame[ETH_HLEN + PACKET_BYTES_MAX], with_tag[ETH_HLEN + 4 + PACKET_BYTES_MAX];
        size_t length = packet_build(&packet, bytes);

        make_frame(bytes, length, frame);
        memcpy(with_tag, frame, 12);
        put_16(with_tag + 12, ETH_P_8021Q);
        put_16(with_tag + 14, 5 << 13);
        memcpy(with_tag + 16, frame + 12, 2 + length);

        rearm(fixture);
        assert_int_equal(hold_hooks_inject(fixture->hooks, if_nametoindex("veth0"), with_tag, ETH_HLEN + 4 + length), 0);
        doorbell_wait(&fixture->doorbell);
        check_seen(&fixture->doorbell, &tagged);
        assert_int_equal(fixture->doorbell.packet.length, length);
        assert_memory_equal(fixture->doorbell.data, bytes, length);
}

static void letting_in_where_no_device_is_fails(void **state)
{
        struct fixture *fixture = *state;
        uint8_t frame[65536] = {};

        assert_true(hold_hooks_inject(fixture->hooks, 9999, frame, 100) < 0);
        assert_int_equal(hold_hooks_inject(fixture->hooks, if_nametoindex("veth0"), frame, sizeof(frame)), -EMSGSIZE);
}

static void a_checksum_left_to_the_device_is_told(void **state)
{
        struct fixture *fixture = *state;
        int client;

        rearm(fixture);
        client = neighbour(fixture, plain_4, SOCK_STREAM);
        doorbell_wait(&fixture->doorbell);
        assert_int_equal(fixture->doorbell.packet.flags, LULL_PACKET_CHECKSUM_PARTIAL);
        close_fd(client);
}

static void what_comes_from_this_host_is_told(void **state)
{
        static const struct device loopback[] = { { "lo", "127.0.0.1", "127.0.0.1", "lo" }, { "lo", "::1", "::1", "lo" } };
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(loopback); i++) {
                int client = socket(family_of(&loopback[i]), SOCK_DGRAM | SOCK_CLOEXEC, 0);
                static const uint8_t datagram[60000]; /* as large as lo's MTU lets through in one piece */
                struct sockaddr_storage address;
                socklen_t length = socket_address(loopback[i].ours, 53, &address);

                rearm(fixture);
                assert_int_equal(connect(client, (struct sockaddr *)&address, length), 0);
                assert_int_equal(send(client, datagram, sizeof(datagram), 0), sizeof(datagram));
                doorbell_wait(&fixture->doorbell);
                assert_true(fixture->doorbell.packet.flags & LULL_PACKET_LOOPBACK);
                assert_int_equal(fixture->doorbell.packet.ifindex, if_nametoindex("lo"));
                assert_true(fixture->doorbell.packet.length > sizeof(datagram));
                close_fd(client);
        }
}

static void send_datagram(struct fixture *fixture, const struct device *device, size_t length, int segment)
{
        int client = neighbour(fixture, device, SOCK_DGRAM);
        static const uint8_t datagram[8192];

        if (segment)
                assert_int_equal(setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
        assert_int_equal(send(client, datagram, length, 0), length);
        close_fd(client);
}

static void fragments_come_as_the_one_datagram_they_were(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < 2; i++) {
                rearm(fixture);
                send_datagram(fixture, &devices[i], 3000, 0);
                doorbell_wait(&fixture->doorbell);
                assert_int_equal(fixture->doorbell.packet.length, (family_of(&devices[i]) == AF_INET ? 20 : 40) + 8 + 3000);
                assert_int_equal(fixture->doorbell.packet.gso_size, 0);
        }
        assert_int_equal(hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_FRAGMENT), 0);
}

static void a_datagram_too_large_to_let_in_again_passes_and_counts_as_demand(void **state)
{
        struct fixture *fixture = *state;
        uint64_t before = hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_TOO_LARGE);
        int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage address;
        socklen_t length = socket_address(plain_4->ours, 53, &address);
        uint8_t datagram[8192];

        if (sysconf(_SC_PAGESIZE) != 4096)
                return; /* the bound is above what fits the test's datagram */
        rearm(fixture);
        assert_int_equal(bind(server, (struct sockaddr *)&address, length), 0);
        send_datagram(fixture, plain_4, 5000, 0);

        assert_int_equal(recv(server, datagram, sizeof(datagram), 0), 5000);
        assert_int_equal(hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_TOO_LARGE) - before, 1);
        assert_int_equal(hold_hooks_demand(fixture->hooks, SLOT_UDP)->packets, 1);
        assert_int_equal(doorbell_read(&fixture->doorbell), 0);
        close_fd(server);
}

static void a_gso_packet_is_held_whole_with_the_size_of_its_datagrams(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < 2; i++) {
                rearm(fixture);
                send_datagram(fixture, &devices[i], 5000, 1000);
                doorbell_wait(&fixture->doorbell);
                assert_int_equal(fixture->doorbell.packet.gso_size, 1000);
                assert_int_equal(fixture->doorbell.packet.length, (family_of(&devices[i]) == AF_INET ? 20 : 40) + 8 + 5000);
        }
}

static void a_wildcard_leaves_alone_what_is_routed_through(void **state)
{
        struct fixture *fixture = *state;
        static const struct device elsewhere = { "veth0", "192.0.2.99", "192.0.2.2", "veth0" };
        uint64_t before = hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_NOT_LOCAL);
        struct packet packet = { .source = elsewhere.theirs, .destination = "10.77.0.1", .destination_port = 80 };
        uint8_t bytes[PACKET_BYTES_MAX];

        rearm(fixture);
        inject(fixture, &elsewhere, bytes, packet_build(&packet, bytes));
        for (int i = 0; i < 1000 && hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_NOT_LOCAL) == before; i++)
                usleep(1000);
        assert_int_equal(hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_NOT_LOCAL) - before, 1);
        assert_int_equal(hold_hooks_demand(fixture->hooks, SLOT_TCP)->packets, 0);
}

static void make_our_devices(void)
{
        shell("ip link add veth0 address " OUR_MAC " type veth peer name peer0 netns /proc/$PPID/fd/%d", 100);
        shell("ip link add veth1 address " OUR_MAC " type veth peer name peer1 netns /proc/$PPID/fd/%d", 100);
        shell("ip link add br0 address " OUR_MAC " type bridge && ip link set veth1 master br0 && "
              "ip tuntap add tun0 mode tun");
        shell("for device in veth0 veth1 br0 tun0; do ip link set $device up || exit 1; done");
        shell("ip addr add 192.0.2.1/24 dev veth0 && ip addr add 2001:db8::1/64 dev veth0 nodad && "
              "ip addr add 203.0.113.1/24 dev br0 && ip addr add 2001:db8:20::1/64 dev br0 nodad && "
              "ip addr add 10.9.0.1/24 dev tun0");
}

static void make_their_devices(void)
{
        shell("for device in lo peer0 peer1; do ip link set $device up || exit 1; done");
        shell("ip addr add 192.0.2.2/24 dev peer0 && ip addr add 2001:db8::2/64 dev peer0 nodad && "
              "ip addr add 203.0.113.2/24 dev peer1 && ip addr add 2001:db8:20::2/64 dev peer1 nodad");
}

static void make_network(struct fixture *fixture)
{
        fixture->ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        assert_int_equal(unshare(CLONE_NEWNET), 0);
        fixture->theirs = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        assert_int_equal(dup2(fixture->theirs, 100), 100);
        assert_int_equal(setns(fixture->ours, CLONE_NEWNET), 0);
        make_our_devices();
        assert_int_equal(setns(fixture->theirs, CLONE_NEWNET), 0);
        make_their_devices();
        assert_int_equal(setns(fixture->ours, CLONE_NEWNET), 0);
        close_fd(100);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        static const char *const wildcards[] = { "0.0.0.0", "::" };

        machine_enter();
        make_network(fixture);
        assert_int_equal(hold_hooks_new(MACHINE_BPFFS, false, &fixture->hooks), 0);
        for (size_t i = 0; i < ELEMENTSOF(wildcards); i++) {
                add_frontend(fixture->hooks, wildcards[i], 80, IPPROTO_TCP, SLOT_TCP, 0);
                add_frontend(fixture->hooks, wildcards[i], 53, IPPROTO_UDP, SLOT_UDP, 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(devices); i++)
                add_local(fixture->hooks, devices[i].ours, 128);
        add_local(fixture->hooks, tun.ours, 128);
        add_local(fixture->hooks, "127.0.0.0", 96 + 8);
        add_local(fixture->hooks, "::1", 128);
        doorbell_open(&fixture->doorbell, fixture->hooks);
        assert_int_equal(hold_hooks_attach(fixture->hooks), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        if (!fixture)
                return 0;
        ring_buffer__free(fixture->doorbell.ring);
        hold_hooks_free(fixture->hooks, false);
        close_fd(fixture->ours);
        close_fd(fixture->theirs);
        free(fixture);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_connection_held_and_let_in_again_is_established),
                cmocka_unit_test(without_its_exemption_a_packet_let_in_again_is_held_again),
                cmocka_unit_test(a_vlan_tag_is_no_part_of_what_is_held),
                cmocka_unit_test(letting_in_where_no_device_is_fails),
                cmocka_unit_test(a_checksum_left_to_the_device_is_told),
                cmocka_unit_test(what_comes_from_this_host_is_told),
                cmocka_unit_test(fragments_come_as_the_one_datagram_they_were),
                cmocka_unit_test(a_datagram_too_large_to_let_in_again_passes_and_counts_as_demand),
                cmocka_unit_test(a_gso_packet_is_held_whole_with_the_size_of_its_datagrams),
                cmocka_unit_test(a_wildcard_leaves_alone_what_is_routed_through),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
