/* SPDX-License-Identifier: Apache-2.0 */
/* One packet, one verdict: a row each, run by BPF_PROG_TEST_RUN on the real program. */
#include "hooks.h"
#include "packets.h"

#include <linux/netfilter.h>

enum { PASSES = -1 }; /* uncounted: of no interest */

enum slot { SLOT_TCP4, SLOT_UDP4, SLOT_TCP6, SLOT_UDP6, SLOT_WILD4, SLOT_WILD6, SLOT_IGNORES, SLOT_ALLOWS, SLOTS };

struct fixture {
        struct hold_hooks *hooks;
        int program;
        struct doorbell doorbell;
};

struct row {
        const char *name;
        struct packet packet;
        int expected; /* enum lull_counter or PASSES */
        void (*given)(struct fixture *fixture);
        enum slot slot; /* where the demand goes, if it is counted */
};

/* struct nf_hook_state, of which TEST_RUN wants the hook and the family; for LOCAL_OUT the data begins at the IP header. */
struct hook_state {
        uint8_t hook, family;
        uint64_t pointers[5];
};

static int run(struct fixture *fixture, const void *data, size_t length, bool ipv6, int repeat)
{
        struct hook_state state = { NF_INET_LOCAL_OUT, ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4, {} };
        LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = data, .data_size_in = length, .ctx_in = &state,
                    .ctx_size_in = sizeof(state), .repeat = repeat);

        assert_int_equal(bpf_prog_test_run_opts(fixture->program, &options), 0);
        return options.retval;
}

static const struct packet syn_4 = {}, syn_6 = { .ipv6 = true }, dns_4 = { .udp = true };
static const struct packet syn_ignores = { .destination_port = 81 }, syn_allows = { .destination_port = 82 };

static void given_pass(struct fixture *fixture, int64_t expiry_ns)
{
        struct lull_flow flow = make_flow("198.51.100.7", 40000, "192.0.2.1", 80, IPPROTO_TCP);

        add_pass(fixture->hooks, &flow, now_monotonic_ns() + expiry_ns);
}

static void live_pass(struct fixture *fixture)
{
        given_pass(fixture, 60 * (int64_t)NSEC_PER_SEC);
}

static void expired_pass(struct fixture *fixture)
{
        given_pass(fixture, -1);
}

static void pass_of_another_flow(struct fixture *fixture)
{
        struct lull_flow flow = make_flow("198.51.100.7", 40001, "192.0.2.1", 80, IPPROTO_TCP);

        add_pass(fixture->hooks, &flow, UINT64_MAX);
}

static void stale(struct fixture *fixture)
{
        hold_hooks_control(fixture->hooks)->heartbeat_ns -= (LULL_HEARTBEAT_MAX_MS + 1) * NSEC_PER_MSEC;
}

static void nearly_stale(struct fixture *fixture)
{
        hold_hooks_control(fixture->hooks)->heartbeat_ns -= (LULL_HEARTBEAT_MAX_MS - 500) * NSEC_PER_MSEC;
}

static void planned(struct fixture *fixture)
{
        stale(fixture);
        hold_hooks_control(fixture->hooks)->hold_until_ns = now_monotonic_ns() + 20 * NSEC_PER_SEC;
}

static void planned_is_over(struct fixture *fixture)
{
        stale(fixture);
        hold_hooks_control(fixture->hooks)->hold_until_ns = now_monotonic_ns() - 1;
}

static void planned_with_pass(struct fixture *fixture)
{
        planned(fixture);
        live_pass(fixture);
}

static void ignored(struct fixture *fixture)
{
        add_rule(fixture->hooks, HOLD_MAP_IGNORED, SLOT_IGNORES, "198.51.100.0", 96 + 24);
}

static void ignored_and_planned(struct fixture *fixture)
{
        ignored(fixture);
        planned(fixture);
}

static void another_ignored(struct fixture *fixture)
{
        add_rule(fixture->hooks, HOLD_MAP_IGNORED, SLOT_IGNORES, "198.51.100.0", 96 + 30);
        add_rule(fixture->hooks, HOLD_MAP_IGNORED, SLOT_ALLOWS, "198.51.100.0", 96 + 24);
}

static void rule_left_behind(struct fixture *fixture)
{
        add_rule(fixture->hooks, HOLD_MAP_IGNORED, SLOT_TCP4, "198.51.100.0", 96 + 24);
}

static void allowed(struct fixture *fixture)
{
        add_rule(fixture->hooks, HOLD_MAP_ALLOWED, SLOT_ALLOWS, "198.51.100.7", 128);
}

static void another_allowed(struct fixture *fixture)
{
        add_rule(fixture->hooks, HOLD_MAP_ALLOWED, SLOT_ALLOWS, "198.51.100.8", 128);
}

static void quota_spent(struct fixture *fixture)
{
        struct lull_demand *demand = hold_hooks_demand(fixture->hooks, SLOT_TCP4);

        demand->published = 110;
        demand->consumed = 10;
        demand->limit = 100;
}

static void quota_not_spent(struct fixture *fixture)
{
        quota_spent(fixture);
        hold_hooks_demand(fixture->hooks, SLOT_TCP4)->consumed++;
}

static void ring_full(struct fixture *fixture)
{
        uint8_t bytes[PACKET_BYTES_MAX];
        size_t length = packet_build(&syn_6, bytes);

        hold_hooks_demand(fixture->hooks, SLOT_TCP6)->limit = UINT64_MAX;
        run(fixture, bytes, length, true, LULL_RING_BYTES / LULL_PACKET_SMALL);
}

#define HELD LULL_COUNTER_HELD
#define MALFORMED LULL_COUNTER_PASS_MALFORMED
#define FRAGMENT LULL_COUNTER_PASS_FRAGMENT
#define V6 .ipv6 = true
#define UDP .udp = true
#define EXTENSIONS(...) .extensions = { __VA_ARGS__ }, .n_extensions = sizeof((uint8_t[]){ __VA_ARGS__ })

static const struct row rows[] = {
        /* what opens a flow */
        { "SYN", { .ttl = 1 }, .expected = HELD, .slot = SLOT_TCP4 },
        { "SYN, IPv6", { V6 }, .expected = HELD, .slot = SLOT_TCP6 },
        { "SYN with ECN", { .tcp_flags = SYN | ECE | CWR }, .expected = HELD, .slot = SLOT_TCP4 },
        { "SYN with PSH and URG", { .tcp_flags = SYN | PSH | URG }, .expected = HELD, .slot = SLOT_TCP4 },
        { "SYN with data (TCP fast open)", { .payload = 1000 }, .expected = HELD, .slot = SLOT_TCP4 },
        { "SYN with TCP options", { .tcp_words = 15, .payload = 40 }, .expected = HELD, .slot = SLOT_TCP4 },
        { "SYN with IP options", { .option_words = 10 }, .expected = HELD, .slot = SLOT_TCP4 },
        { "UDP", { UDP, .payload = 30 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "UDP, empty", { UDP }, .expected = HELD, .slot = SLOT_UDP4 },
        { "UDP, IPv6", { UDP, V6, .payload = 30 }, .expected = HELD, .slot = SLOT_UDP6 },
        { "UDP with IP options", { UDP, .option_words = 3, .payload = 30 }, .expected = HELD, .slot = SLOT_UDP4 },
        /* what does not */
        { "SYN+ACK", { .tcp_flags = SYN | ACK }, .expected = PASSES },
        { "ACK", { .tcp_flags = ACK }, .expected = PASSES },
        { "data", { .tcp_flags = ACK | PSH, .payload = 100 }, .expected = PASSES },
        { "FIN", { .tcp_flags = FIN | ACK }, .expected = PASSES },
        { "RST", { .tcp_flags = RST }, .expected = PASSES },
        { "SYN+RST", { .tcp_flags = SYN | RST }, .expected = PASSES },
        { "SYN+FIN", { .tcp_flags = SYN | FIN }, .expected = PASSES },
        { "no flags but URG", { .tcp_flags = URG }, .expected = PASSES },
        { "ACK, IPv6", { V6, .tcp_flags = ACK }, .expected = PASSES },
        { "ICMP", { .protocol = IPPROTO_ICMP }, .expected = PASSES },
        { "ICMPv6", { V6, .protocol = IPPROTO_ICMPV6 }, .expected = PASSES },
        { "SCTP", { .protocol = IPPROTO_SCTP }, .expected = PASSES },
        { "ESP, IPv6", { V6, .protocol = IPPROTO_ESP }, .expected = PASSES },
        { "no next header", { V6, .protocol = IPPROTO_NONE }, .expected = PASSES },
        /* IPv6 extension headers */
        { "hop-by-hop", { V6, EXTENSIONS(IPPROTO_HOPOPTS) }, .expected = HELD, .slot = SLOT_TCP6 },
        { "destination options", { V6, EXTENSIONS(IPPROTO_DSTOPTS) }, .expected = HELD, .slot = SLOT_TCP6 },
        { "authentication", { V6, EXTENSIONS(IPPROTO_AH) }, .expected = HELD, .slot = SLOT_TCP6 },
        { "routing, arrived", { V6, EXTENSIONS(IPPROTO_ROUTING) }, .expected = HELD, .slot = SLOT_TCP6 },
        { "routing, on its way", { V6, EXTENSIONS(IPPROTO_ROUTING), .segments_left = 1 }, .expected = PASSES },
        { "all of them",
          { V6, EXTENSIONS(IPPROTO_HOPOPTS, IPPROTO_DSTOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT, IPPROTO_AH, IPPROTO_DSTOPTS) },
          .expected = HELD,
          .slot = SLOT_TCP6 },
        { "UDP behind two",
          { V6, UDP, EXTENSIONS(IPPROTO_HOPOPTS, IPPROTO_DSTOPTS), .payload = 9 },
          .expected = HELD,
          .slot = SLOT_UDP6 },
        { "more than anybody sends", { V6, EXTENSIONS(60, 60, 60, 60, 60, 60, 60, 60, 60) }, .expected = MALFORMED },
        { "the same ACK behind one", { V6, EXTENSIONS(IPPROTO_HOPOPTS), .tcp_flags = ACK }, .expected = PASSES },
        /* fragments that nobody reassembled */
        { "IPv4, first",
          { UDP, .fragment = 0x2000, .payload = 1000, .udp_length_lie = 2000 },
          .expected = HELD,
          .slot = SLOT_UDP4 },
        { "IPv4, later", { UDP, .fragment = 0x2000 | 100, .payload = 1000 }, .expected = FRAGMENT },
        { "IPv4, last", { .fragment = 100, .payload = 1000 }, .expected = FRAGMENT },
        { "IPv4, later, of ICMP", { .fragment = 100, .protocol = IPPROTO_ICMP }, .expected = PASSES },
        { "IPv4, do not fragment", { .fragment = 0x4000 }, .expected = HELD, .slot = SLOT_TCP4 },
        { "IPv6, first",
          { V6, UDP, EXTENSIONS(IPPROTO_FRAGMENT), .fragment = 1, .payload = 1000, .udp_length_lie = 2000 },
          .expected = HELD,
          .slot = SLOT_UDP6 },
        { "IPv6, later", { V6, UDP, EXTENSIONS(IPPROTO_FRAGMENT), .fragment = 800 | 1, .payload = 1000 }, .expected = FRAGMENT },
        { "IPv6, last", { V6, EXTENSIONS(IPPROTO_HOPOPTS, IPPROTO_FRAGMENT), .fragment = 800 }, .expected = FRAGMENT },
        { "IPv6, atomic", { V6, EXTENSIONS(IPPROTO_FRAGMENT) }, .expected = HELD, .slot = SLOT_TCP6 },
        /* headers that make no sense */
        { "IPv4 that says 6", { .version = 6 }, .expected = MALFORMED },
        { "IPv6 that says 4", { V6, .version = 4 }, .expected = MALFORMED },
        { "IPv4 header of 4 words", { .ipv4_words = 4 }, .expected = MALFORMED },
        { "IPv4 length past the end", { .ip_length_lie = 1 }, .expected = MALFORMED },
        { "IPv4 length within the headers", { .ip_length_lie = -1 }, .expected = MALFORMED },
        { "IPv4 length of 0", { .ip_length_lie = -40 }, .expected = MALFORMED },
        { "IPv6 length past the end", { V6, .ip_length_lie = 1 }, .expected = MALFORMED },
        { "IPv6 length within the headers", { V6, .ip_length_lie = -1 }, .expected = MALFORMED },
        { "an ACK is not malformed, whatever it says", { .tcp_flags = ACK, .ip_length_lie = -40 }, .expected = PASSES },
        { "TCP header of 4 words", { .tcp_words = 4 }, .expected = MALFORMED },
        { "TCP header past the end", { .tcp_words = 6 }, .expected = MALFORMED },
        { "UDP length of 7", { UDP, .udp_length_lie = -1 }, .expected = MALFORMED },
        { "UDP length past the end", { UDP, .udp_length_lie = 1 }, .expected = MALFORMED },
        { "UDP length short of the end", { UDP, .payload = 30, .udp_length_lie = -10 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "an IPv4 address in IPv6 form", { V6, .destination = "::ffff:192.0.2.1" }, .expected = PASSES },
        { "from an IPv4 address in IPv6 form", { V6, .source = "::ffff:192.0.2.9" }, .expected = PASSES },
        /* who is asleep */
        { "another port", { .destination_port = 8888 }, .expected = PASSES },
        { "another address", { .destination = "192.0.2.2" }, .expected = PASSES },
        { "another protocol", { UDP, .destination_port = 80 }, .expected = PASSES },
        { "multicast", { UDP, .destination = "224.0.0.251", .destination_port = 8080 }, .expected = PASSES },
        { "wildcard", { .destination_port = 8080 }, .expected = HELD, .slot = SLOT_WILD4 },
        { "wildcard, another local address",
          { .destination = "192.0.2.77", .destination_port = 8080 },
          .expected = HELD,
          .slot = SLOT_WILD4 },
        { "wildcard, not local",
          { .destination = "203.0.113.1", .destination_port = 8080 },
          .expected = LULL_COUNTER_PASS_NOT_LOCAL },
        { "wildcard, multicast",
          { .destination = "224.0.0.251", .destination_port = 8080 },
          .expected = LULL_COUNTER_PASS_NOT_LOCAL },
        { "wildcard, IPv6", { V6, .destination_port = 8080 }, .expected = HELD, .slot = SLOT_WILD6 },
        { "wildcard, IPv6, not local",
          { V6, .destination = "2001:db8:9::1", .destination_port = 8080 },
          .expected = LULL_COUNTER_PASS_NOT_LOCAL },
        { "IPv4's wildcard is not IPv6's", { V6, .destination_port = 8084 }, .expected = PASSES },
        { "IPv6's wildcard is not IPv4's", { .destination_port = 8086 }, .expected = PASSES },
        /* exempt flows */
        { "exempt flow", syn_4, .expected = LULL_COUNTER_PASS_FLOW, .given = live_pass },
        { "no longer exempt", syn_4, .expected = HELD, .given = expired_pass, .slot = SLOT_TCP4 },
        { "another flow is exempt", syn_4, .expected = HELD, .given = pass_of_another_flow, .slot = SLOT_TCP4 },
        /* half-open probes, which another node's data plane may have led here */
        { "probe", { .sequence = LULL_PROBE_SEQUENCE }, .expected = LULL_COUNTER_PASS_FLOW },
        { "probe, IPv6", { V6, .sequence = LULL_PROBE_SEQUENCE }, .expected = LULL_COUNTER_PASS_FLOW },
        { "probe, planned restart", { .sequence = LULL_PROBE_SEQUENCE }, .expected = LULL_COUNTER_PASS_FLOW, .given = planned },
        { "a client with a probe's sequence number",
          { .sequence = LULL_PROBE_SEQUENCE, .tcp_words = 10, .payload = 20 },
          .expected = HELD,
          .slot = SLOT_TCP4 },
        { "nearly a probe", { .sequence = LULL_PROBE_SEQUENCE + 1 }, .expected = HELD, .slot = SLOT_TCP4 },
        /* the daemon */
        { "silent daemon", syn_4, .expected = LULL_COUNTER_PASS_STALE, .given = stale },
        { "daemon last heard of lately", syn_4, .expected = HELD, .given = nearly_stale, .slot = SLOT_TCP4 },
        { "planned restart", syn_4, .expected = LULL_COUNTER_HELD_PLANNED, .given = planned, .slot = SLOT_TCP4 },
        { "planned restart, UDP", dns_4, .expected = LULL_COUNTER_HELD_PLANNED, .given = planned, .slot = SLOT_UDP4 },
        { "planned restart that took too long", syn_4, .expected = LULL_COUNTER_PASS_STALE, .given = planned_is_over },
        { "planned restart, exempt flow", syn_4, .expected = LULL_COUNTER_PASS_FLOW, .given = planned_with_pass },
        /* who may wake */
        { "ignored source", syn_ignores, .expected = LULL_COUNTER_PASS_IGNORED, .given = ignored },
        { "ignored source, planned restart", syn_ignores, .expected = LULL_COUNTER_PASS_IGNORED, .given = ignored_and_planned },
        { "another source or frontend is ignored", syn_ignores, .expected = HELD, .given = another_ignored, .slot = SLOT_IGNORES },
        { "frontend without an ignore list", syn_4, .expected = HELD, .given = rule_left_behind, .slot = SLOT_TCP4 },
        { "allowed source", syn_allows, .expected = HELD, .given = allowed, .slot = SLOT_ALLOWS },
        { "another source is allowed", syn_allows, .expected = LULL_COUNTER_PASS_NOT_ALLOWED, .given = another_allowed },
        { "nobody is allowed", syn_allows, .expected = LULL_COUNTER_PASS_NOT_ALLOWED },
        /* bounds */
        { "quota spent", syn_4, .expected = LULL_COUNTER_PASS_QUOTA, .given = quota_spent, .slot = SLOT_TCP4 },
        { "quota nearly spent", syn_4, .expected = HELD, .given = quota_not_spent, .slot = SLOT_TCP4 },
        { "ring buffer full", syn_4, .expected = LULL_COUNTER_HELD_RING_FULL, .given = ring_full, .slot = SLOT_TCP4 },
        { "the longest small record", { UDP, .payload = LULL_PACKET_SMALL - 28 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "the shortest medium record", { UDP, .payload = LULL_PACKET_SMALL - 27 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "the longest medium record", { UDP, .payload = LULL_PACKET_MEDIUM - 28 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "the shortest large record", { UDP, .payload = LULL_PACKET_MEDIUM - 27 }, .expected = HELD, .slot = SLOT_UDP4 },
        { "3,400 bytes", { UDP, .payload = 3400 }, .expected = HELD, .slot = SLOT_UDP4 },
};

static const struct {
        const char *address;
        uint16_t port;
        uint8_t protocol;
        enum slot slot;
        uint32_t flags;
} frontends[] = {
        { "192.0.2.1", 80, IPPROTO_TCP, SLOT_TCP4, 0 },
        { "192.0.2.1", 53, IPPROTO_UDP, SLOT_UDP4, 0 },
        { "2001:db8::1", 80, IPPROTO_TCP, SLOT_TCP6, 0 },
        { "2001:db8::1", 53, IPPROTO_UDP, SLOT_UDP6, 0 },
        { "0.0.0.0", 8080, IPPROTO_TCP, SLOT_WILD4, 0 },
        { "::", 8080, IPPROTO_TCP, SLOT_WILD6, 0 },
        { "0.0.0.0", 8084, IPPROTO_TCP, SLOT_WILD4, 0 },
        { "::", 8086, IPPROTO_TCP, SLOT_WILD6, 0 },
        { "192.0.2.1", 81, IPPROTO_TCP, SLOT_IGNORES, LULL_FRONTEND_IGNORE_LIST },
        { "192.0.2.1", 82, IPPROTO_TCP, SLOT_ALLOWS, LULL_FRONTEND_ALLOW_LIST },
};

static void reset(struct fixture *fixture)
{
        clear_map(fixture->hooks, HOLD_MAP_PASS);
        clear_map(fixture->hooks, HOLD_MAP_IGNORED);
        clear_map(fixture->hooks, HOLD_MAP_ALLOWED);
        for (uint32_t slot = 0; slot < SLOTS; slot++)
                arm(fixture->hooks, slot, 10);
        doorbell_read(&fixture->doorbell);
}

static void read_counters(struct fixture *fixture, uint64_t counters[LULL_COUNTER_MAX])
{
        for (unsigned i = 0; i < LULL_COUNTER_MAX; i++)
                counters[i] = hold_hooks_counter(fixture->hooks, i);
}

/* Only the expected counter moved, by one. */
static void check_counters(struct fixture *fixture, const struct row *row, const uint64_t before[LULL_COUNTER_MAX])
{
        for (int i = 0; i < LULL_COUNTER_MAX; i++) {
                uint64_t moved = hold_hooks_counter(fixture->hooks, i) - before[i];

                if (moved != (i == row->expected))
                        fail_msg("%s: counter %d moved by %ju, the one expected was %d", row->name, i, (uintmax_t)moved,
                                 row->expected);
        }
}

static bool counts_as_demand(int expected)
{
        return expected == HELD || expected == LULL_COUNTER_HELD_PLANNED || expected == LULL_COUNTER_HELD_RING_FULL ||
               expected == LULL_COUNTER_PASS_QUOTA;
}

static void check_demand(struct fixture *fixture, const struct row *row, uint64_t started_ns)
{
        const struct lull_demand *demand = hold_hooks_demand(fixture->hooks, row->slot);
        uint8_t source[16];

        if (!counts_as_demand(row->expected)) {
                for (uint32_t slot = 0; slot < SLOTS; slot++)
                        if (hold_hooks_demand(fixture->hooks, slot)->packets != 0)
                                fail_msg("%s: counted as demand", row->name);
                return;
        }

        put_address(source, packet_source(&row->packet));
        if (demand->packets != 1 || demand->first_ns < started_ns || demand->last_ns != demand->first_ns ||
            memcmp(demand->source, source, 16) != 0 || demand->source_port != htons(40000))
                fail_msg("%s: its demand is wrong", row->name);
}

static void check_record(struct fixture *fixture, const struct row *row, const uint8_t *bytes, size_t length)
{
        const struct packet *packet = &row->packet;
        struct lull_flow flow = make_flow(packet_source(packet), 40000, packet_destination(packet), packet_port(packet),
                                          packet->udp ? IPPROTO_UDP : IPPROTO_TCP);
        const struct doorbell *doorbell = &fixture->doorbell;
        size_t capacity = length <= LULL_PACKET_SMALL    ? LULL_PACKET_SMALL
                          : length <= LULL_PACKET_MEDIUM ? LULL_PACKET_MEDIUM
                                                         : LULL_PACKET_LARGE;

        if (doorbell->packet.slot != row->slot || doorbell->packet.length != length || memcmp(doorbell->data, bytes, length) != 0 ||
            memcmp(&doorbell->packet.flow, &flow, sizeof(flow)) != 0 || doorbell->packet.flags != 0 ||
            doorbell->packet.gso_size != 0)
                fail_msg("%s: its record is wrong", row->name);
        if (doorbell->size != sizeof(struct lull_packet) + capacity)
                fail_msg("%s: its record has %zu bytes", row->name, doorbell->size);
}

static void run_row(struct fixture *fixture, const struct row *row)
{
        uint64_t counters[LULL_COUNTER_MAX], started_ns, published;
        uint8_t bytes[PACKET_BYTES_MAX];
        size_t length = packet_build(&row->packet, bytes);
        unsigned records;
        int verdict;

        reset(fixture);
        if (row->given)
                row->given(fixture);
        read_counters(fixture, counters);
        published = hold_hooks_demand(fixture->hooks, row->slot)->published;
        started_ns = now_monotonic_ns();

        verdict = run(fixture, bytes, length, row->packet.ipv6, 1);

        check_counters(fixture, row, counters);
        check_demand(fixture, row, started_ns);
        if (verdict != (row->expected >= 0 && row->expected <= LULL_COUNTER_HELD_UNREADABLE ? NF_DROP : NF_ACCEPT))
                fail_msg("%s: verdict %d", row->name, verdict);
        if (hold_hooks_demand(fixture->hooks, row->slot)->published - published != (row->expected == HELD))
                fail_msg("%s: not counted as published, or wrongly", row->name);

        records = doorbell_read(&fixture->doorbell);
        if (row->given == ring_full)
                return;
        if (records != (row->expected == HELD))
                fail_msg("%s: %u records", row->name, records);
        if (row->expected == HELD)
                check_record(fixture, row, bytes, length);
}

static void every_packet_gets_its_verdict_its_count_and_its_record(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                run_row(*state, &rows[i]);
}

/* TEST_RUN takes no less than an IPv4 header. */
static void a_packet_cut_anywhere_in_its_headers_passes(void **state)
{
        static const struct packet packets[] = {
                {},
                { .option_words = 5 },
                { UDP },
                { V6 },
                { V6, UDP, EXTENSIONS(IPPROTO_HOPOPTS, IPPROTO_ROUTING, IPPROTO_FRAGMENT, IPPROTO_AH) },
        };

        for (size_t i = 0; i < ELEMENTSOF(packets); i++) {
                uint8_t bytes[PACKET_BYTES_MAX];
                size_t length = packet_build(&packets[i], bytes);

                for (size_t cut = sizeof(struct in_addr) * 5; cut < length; cut++) {
                        struct row row = { "cut", packets[i], .expected = MALFORMED };

                        row.packet.cut = cut;
                        run_row(*state, &row);
                }
        }
}

static void what_cannot_be_injected_again_passes_and_counts_as_demand(void **state)
{
        struct fixture *fixture = *state;
        struct packet packet = { UDP, .payload = 3680 }; /* as much as TEST_RUN takes, without room for an Ethernet header */
        uint64_t before = hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_TOO_LARGE);
        uint8_t bytes[PACKET_BYTES_MAX];

        if (sysconf(_SC_PAGESIZE) != 4096)
                packet.payload = 0; /* the bound is far above what a test's packet has */
        reset(fixture);
        assert_int_equal(run(fixture, bytes, packet_build(&packet, bytes), false, 1), packet.payload ? NF_ACCEPT : NF_DROP);

        assert_int_equal(hold_hooks_counter(fixture->hooks, LULL_COUNTER_PASS_TOO_LARGE) - before, packet.payload ? 1 : 0);
        assert_int_equal(hold_hooks_demand(fixture->hooks, SLOT_UDP4)->packets, 1);
}

static void the_first_source_of_a_demand_stays_the_one_named(void **state)
{
        struct fixture *fixture = *state;
        struct packet second = { .source = "198.51.100.99" };
        const struct lull_demand *demand = hold_hooks_demand(fixture->hooks, SLOT_TCP4);
        uint8_t bytes[PACKET_BYTES_MAX], source[16];
        uint64_t first_ns;

        reset(fixture);
        run(fixture, bytes, packet_build(&syn_4, bytes), false, 1);
        first_ns = demand->first_ns;
        run(fixture, bytes, packet_build(&second, bytes), false, 1);

        put_address(source, "198.51.100.7");
        assert_memory_equal(demand->source, source, sizeof(source));
        assert_int_equal(demand->first_ns, first_ns);
        assert_true(demand->last_ns > first_ns);
        assert_int_equal(demand->packets, 2);
        assert_int_equal(demand->published, 2);
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        json_t *programs;

        machine_enter();
        assert_int_equal(hold_hooks_new(MACHINE_BPFFS, false, &fixture->hooks), 0);
        programs = hold_hooks_programs(fixture->hooks);
        fixture->program = bpf_prog_get_fd_by_id(json_integer_value(json_object_get(json_array_get(programs, 0), "id")));
        json_decref(programs);
        assert_true(fixture->program >= 0);

        for (size_t i = 0; i < ELEMENTSOF(frontends); i++)
                add_frontend(fixture->hooks, frontends[i].address, frontends[i].port, frontends[i].protocol, frontends[i].slot,
                             frontends[i].flags);
        add_local(fixture->hooks, "192.0.2.0", 96 + 24);
        add_local(fixture->hooks, "2001:db8::", 64);
        doorbell_open(&fixture->doorbell, fixture->hooks);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        if (!fixture)
                return 0;
        ring_buffer__free(fixture->doorbell.ring);
        close_fd(fixture->program);
        hold_hooks_free(fixture->hooks, false);
        free(fixture);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_packet_gets_its_verdict_its_count_and_its_record),
                cmocka_unit_test(a_packet_cut_anywhere_in_its_headers_passes),
                cmocka_unit_test(what_cannot_be_injected_again_passes_and_counts_as_demand),
                cmocka_unit_test(the_first_source_of_a_demand_stays_the_one_named),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
