/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon leaves to the next, and what is gone once nobody watches any more. */
#include "activity_bench.h"

#include <bpf/bpf.h>

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                PROMISE(a_restart_of_the_daemon_loses_nothing),
                PROMISE(what_an_earlier_daemon_left_and_nobody_took_over_is_detached),
                PROMISE(a_workload_that_is_gone_cannot_be_read),
                PROMISE(nothing_is_left_once_it_is_given_up),
        };

        machine_enter();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
