/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold/parked.h"

enum { SYN = 60, TIMEOUT_NS = 1000 };

struct fixture {
        struct parked *parked;
        struct parked_policy policy, other;
        struct parked_queue queue, other_queue;
};

static void set_up(struct fixture *fixture, uint32_t max_packets)
{
        assert_int_equal(parked_new(&fixture->parked), 0);
        parked_policy_init(&fixture->policy, max_packets, TIMEOUT_NS);
        parked_policy_init(&fixture->other, max_packets, TIMEOUT_NS / 2);
        parked_queue_init(&fixture->queue, &fixture->policy);
        parked_queue_init(&fixture->other_queue, &fixture->other);
}

static void remove_all(struct fixture *fixture, struct parked_policy *policy)
{
        struct parked_flow *flow;

        while ((flow = TAILQ_FIRST(&policy->by_age)))
                parked_remove(fixture->parked, flow);
}

/* Everything that was counted must be given back with the last packet. */
static void tear_down(struct fixture *fixture)
{
        remove_all(fixture, &fixture->policy);
        remove_all(fixture, &fixture->other);
        assert_int_equal(parked_packets(fixture->parked), 0);
        assert_int_equal(parked_memory(fixture->parked), 0);
        assert_int_equal(fixture->policy.memory + fixture->policy.n_packets + fixture->queue.n_waiting, 0);
        assert_int_equal(parked_deadline(fixture->parked), 0);
        parked_free(fixture->parked);
}

static enum parked_outcome add(struct fixture *fixture, struct parked_queue *queue, const char *source, uint16_t port,
                               uint8_t protocol, uint32_t length, uint64_t time_ns, struct parked_flow **ret_flow)
{
        struct lull_packet *packet = calloc(1, sizeof(*packet) + length);
        struct parked_flow *flow;
        struct address address;
        enum parked_outcome outcome;

        assert_non_null(packet);
        assert_int_equal(address_parse(source, &address), 0);
        packet->time_ns = time_ns;
        packet->length = length;
        packet->flow.source_port = htons(port);
        packet->flow.protocol = protocol;
        memcpy(packet->flow.source, address.bytes, sizeof(packet->flow.source));
        memset(packet->data, (int)time_ns, length);
        outcome = parked_add(fixture->parked, queue, packet, &flow);
        assert_int_equal(flow != NULL, outcome <= PARKED_REPLACED);
        if (ret_flow)
                *ret_flow = flow;
        free(packet);
        return outcome;
}

static enum parked_outcome add_syn(struct fixture *fixture, const char *source, uint16_t port, uint64_t time_ns)
{
        return add(fixture, &fixture->queue, source, port, IPPROTO_TCP, SYN, time_ns, NULL);
}

static void a_repeated_syn_takes_the_place_of_its_first_copy(void **state)
{
        struct fixture fixture;
        struct parked_flow *first, *again;

        set_up(&fixture, 100);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_TCP, SYN, 1, &first), PARKED_FIRST);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 2, 2), PARKED_FIRST);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_TCP, SYN + 12, 3, &again), PARKED_REPLACED);

        assert_ptr_equal(first, again);
        assert_ptr_equal(TAILQ_FIRST(&fixture.queue.waiting), first);
        assert_int_equal(first->first_ns, 1);
        assert_int_equal(first->n_packets, 1);
        assert_int_equal(first->bytes, SYN + 12);
        assert_int_equal(TAILQ_FIRST(&first->packets)->data[0], 3);
        assert_int_equal(parked_packets(fixture.parked), 2);
        tear_down(&fixture);
}

static void datagrams_of_a_flow_stay_in_order_and_are_few(void **state)
{
        struct fixture fixture;
        struct parked_flow *flow;
        const struct parked_packet *packet;
        uint8_t expected = 0;

        set_up(&fixture, 100);
        for (uint64_t i = 0; i < PARKED_FLOW_DATAGRAMS; i++)
                assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 100, i, &flow),
                                 i ? PARKED_ANOTHER : PARKED_FIRST);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 100, 99, NULL), PARKED_FLOW_FULL);
        TAILQ_FOREACH(packet, &flow->packets, link)
                assert_int_equal(packet->data[0], expected++);
        assert_int_equal(expected, PARKED_FLOW_DATAGRAMS);
        tear_down(&fixture);
}

static void a_flow_keeps_at_most_64_kib_of_datagrams(void **state)
{
        struct fixture fixture;

        set_up(&fixture, 100);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 65000, 1, NULL), PARKED_FIRST);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 537, 2, NULL), PARKED_FLOW_FULL);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 536, 3, NULL), PARKED_ANOTHER);
        tear_down(&fixture);
}

static void one_source_cannot_spend_what_belongs_to_another(void **state)
{
        static const struct {
                const char *flooder, *neighbour, *other;
        } rows[] = {
                { "192.0.2.1", "192.0.2.1", "192.0.2.2" },
                { "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1" }, /* a /64 is one source */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct fixture fixture;

                set_up(&fixture, 1024);
                for (uint16_t port = 0; port < 256; port++)
                        assert_int_equal(add_syn(&fixture, rows[i].flooder, port, port), PARKED_FIRST);
                assert_int_equal(add_syn(&fixture, rows[i].neighbour, 1000, 1000), PARKED_SOURCE_FULL);
                assert_int_equal(add_syn(&fixture, rows[i].flooder, 0, 1000), PARKED_REPLACED);
                assert_int_equal(add_syn(&fixture, rows[i].other, 1000, 1000), PARKED_FIRST);
                tear_down(&fixture);
        }
}

static void every_source_may_park_64_packets_within_its_policy(void **state)
{
        struct fixture fixture;

        set_up(&fixture, 100);
        for (uint16_t port = 0; port < PARKED_SOURCE_MIN; port++)
                assert_int_equal(add_syn(&fixture, "192.0.2.1", port, port), PARKED_FIRST);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 1000, 1000), PARKED_SOURCE_FULL);
        for (uint16_t port = PARKED_SOURCE_MIN; port < 100; port++)
                assert_int_equal(add_syn(&fixture, "192.0.2.2", port, port), PARKED_FIRST);
        assert_int_equal(add_syn(&fixture, "192.0.2.2", 1000, 1000), PARKED_POLICY_FULL);
        tear_down(&fixture);
}

static void a_source_may_park_again_what_was_released(void **state)
{
        struct fixture fixture;
        struct parked_flow *flow;

        set_up(&fixture, 64);
        for (uint16_t port = 0; port < 64; port++)
                assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", port, IPPROTO_TCP, SYN, port, &flow), PARKED_FIRST);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 1000, 1000), PARKED_SOURCE_FULL);
        parked_remove(fixture.parked, flow);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 1000, 1000), PARKED_FIRST);
        tear_down(&fixture);
}

static void bytes_are_bounded_for_a_policy_and_in_all(void **state)
{
        struct fixture fixture;
        struct parked_policy policies[8];
        struct parked_queue queues[8];
        enum parked_outcome outcome = PARKED_FIRST;
        char source[32];

        set_up(&fixture, 4096);
        for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
                parked_policy_init(&policies[i], 4096, TIMEOUT_NS);
                parked_queue_init(&queues[i], &policies[i]);
                for (uint16_t port = 0; port < 4096; port++) {
                        snprintf(source, sizeof(source), "192.0.2.%u", port % 250U);
                        outcome = add(&fixture, &queues[i], source, port + (uint16_t)(i * 4096), IPPROTO_UDP, 60000, port, NULL);
                        if (outcome != PARKED_FIRST)
                                break;
                }
                assert_int_equal(outcome, i < 4 ? PARKED_POLICY_FULL : PARKED_STORE_FULL);
                assert_true(policies[i].memory <= PARKED_POLICY_BYTES);
                assert_true(parked_memory(fixture.parked) <= PARKED_TOTAL_BYTES);
                if (i == 4)
                        break;
        }
        for (size_t i = 0; i < 5; i++)
                remove_all(&fixture, &policies[i]);
        tear_down(&fixture);
}

static void a_larger_copy_is_not_taken_past_the_bounds(void **state)
{
        struct fixture fixture;
        struct parked_flow *flow;
        uint16_t port = 0;

        set_up(&fixture, 4096);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 9, IPPROTO_TCP, SYN, 1, &flow), PARKED_FIRST);
        while (add(&fixture, &fixture.queue, "192.0.2.2", port++, IPPROTO_UDP, 60000, 2, NULL) == PARKED_FIRST)
                ;
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 9, IPPROTO_TCP, 60000, 3, NULL), PARKED_POLICY_FULL);
        assert_int_equal(TAILQ_FIRST(&flow->packets)->data[0], 1); /* the copy that was there stays */
        tear_down(&fixture);
}

static void what_is_put_back_waits_where_its_age_belongs(void **state)
{
        struct fixture fixture;
        struct parked_flow *flows[4], *flow;
        size_t i = 0;

        set_up(&fixture, 100);
        for (uint16_t port = 0; port < 4; port++)
                assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", port, IPPROTO_TCP, SYN, port, &flows[port]),
                                 PARKED_FIRST);
        parked_take(flows[0]);
        parked_take(flows[2]);
        parked_take(flows[3]);
        assert_int_equal(fixture.queue.n_waiting, 1);
        parked_put_back(flows[2]);
        parked_put_back(flows[3]);
        parked_put_back(flows[0]);
        TAILQ_FOREACH(flow, &fixture.queue.waiting, in_queue)
                assert_ptr_equal(flow, flows[i++]);
        assert_int_equal(i, 4);
        tear_down(&fixture);
}

static void the_earliest_deadline_of_all_policies_is_known(void **state)
{
        struct fixture fixture;
        struct parked_flow *flow;

        set_up(&fixture, 100);
        assert_int_equal(parked_deadline(fixture.parked), 0);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 1, 100), PARKED_FIRST);
        assert_int_equal(add(&fixture, &fixture.other_queue, "192.0.2.1", 2, IPPROTO_TCP, SYN, 200, NULL), PARKED_FIRST);
        assert_int_equal(add_syn(&fixture, "192.0.2.1", 1, 300), PARKED_REPLACED); /* no later for it */

        assert_int_equal(parked_deadline(fixture.parked), 700);
        assert_null(parked_expired(fixture.parked, 699));
        flow = parked_expired(fixture.parked, 700);
        assert_int_equal(ntohs(flow->key.source_port), 2);
        parked_remove(fixture.parked, flow);
        assert_int_equal(parked_deadline(fixture.parked), 1100);
        flow = parked_expired(fixture.parked, 5000);
        assert_int_equal(ntohs(flow->key.source_port), 1);
        parked_take(flow); /* also what is in flight has its deadline */
        assert_ptr_equal(parked_expired(fixture.parked, 5000), flow);
        tear_down(&fixture);
}

static void what_moves_to_another_policy_keeps_its_age_and_counts_there(void **state)
{
        struct fixture fixture;
        struct parked_flow *first, *second;

        set_up(&fixture, 100);
        fixture.other.max_packets = 2;
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 100, 1, &first), PARKED_FIRST);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 1, IPPROTO_UDP, 100, 2, &first), PARKED_ANOTHER);
        assert_int_equal(add(&fixture, &fixture.queue, "192.0.2.1", 2, IPPROTO_UDP, 100, 3, &second), PARKED_FIRST);

        assert_int_equal(parked_move(fixture.parked, first, &fixture.other_queue), 0);
        assert_int_equal(parked_move(fixture.parked, second, &fixture.other_queue), -ENOSPC);

        assert_int_equal(fixture.policy.n_packets, 1);
        assert_int_equal(fixture.other.n_packets, 2);
        assert_int_equal(parked_packets(fixture.parked), 3);
        assert_ptr_equal(TAILQ_FIRST(&fixture.other_queue.waiting), first);
        assert_ptr_equal(TAILQ_FIRST(&fixture.queue.waiting), second);
        assert_int_equal(parked_deadline(fixture.parked), 1 + TIMEOUT_NS / 2); /* the other's timeout */
        tear_down(&fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_repeated_syn_takes_the_place_of_its_first_copy),
                cmocka_unit_test(datagrams_of_a_flow_stay_in_order_and_are_few),
                cmocka_unit_test(a_flow_keeps_at_most_64_kib_of_datagrams),
                cmocka_unit_test(one_source_cannot_spend_what_belongs_to_another),
                cmocka_unit_test(every_source_may_park_64_packets_within_its_policy),
                cmocka_unit_test(a_source_may_park_again_what_was_released),
                cmocka_unit_test(bytes_are_bounded_for_a_policy_and_in_all),
                cmocka_unit_test(a_larger_copy_is_not_taken_past_the_bounds),
                cmocka_unit_test(what_is_put_back_waits_where_its_age_belongs),
                cmocka_unit_test(what_moves_to_another_policy_keeps_its_age_and_counts_there),
                cmocka_unit_test(the_earliest_deadline_of_all_policies_is_known),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
