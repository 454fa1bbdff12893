/* SPDX-License-Identifier: Apache-2.0 */
/* How many probes there may be, and what their owner may do from within passed(). What they ask of servers: tests/kube/test_probe.py. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "agent/probe.h"
#include "base/time.h"

struct fixture {
        sd_event *event;
        struct prober *prober;
        int listener;
        uint16_t port;
        struct probe *probes[PROBES_MAX];
        unsigned passed;
        bool free_all; /* at the first that passes */
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);

        assert_int_equal(sd_event_new(&fixture->event), 0);
        assert_int_equal(prober_new(fixture->event, &fixture->prober), 0);
        fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fixture->listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(fixture->listener, PROBES_MAX), 0);
        assert_int_equal(getsockname(fixture->listener, (struct sockaddr *)&address, &length), 0);
        fixture->port = ntohs(address.sin_port);
        *state = fixture;
        return 0;
}

static void free_probes(struct fixture *fixture)
{
        for (size_t i = 0; i < PROBES_MAX; i++)
                fixture->probes[i] = probe_free(fixture->probes[i]);
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        free_probes(fixture);
        prober_free(fixture->prober);
        sd_event_unref(fixture->event);
        close(fixture->listener);
        free(fixture);
        return 0;
}

static void on_passed(struct probe *probe, uint64_t at_ns, void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->passed++;
        if (fixture->free_all)
                free_probes(fixture);
}

static int start(struct fixture *fixture, enum probe_type type, uint32_t threshold, struct probe **ret_probe)
{
        const struct probe_callbacks callbacks = { .passed = on_passed };
        const struct status_probe settings = { .type = type, .port = fixture->port, .success_threshold = threshold };
        struct address address;

        assert_int_equal(address_parse("127.0.0.1", &address), 0);
        return probe_new(fixture->prober, &settings, &address, 0, &callbacks, fixture, ret_probe);
}

static void run_until(struct fixture *fixture, unsigned passed)
{
        uint64_t until_ns = now_monotonic_ns() + 20 * NSEC_PER_SEC;

        while (fixture->passed < passed && now_monotonic_ns() < until_ns)
                assert_true(sd_event_run(fixture->event, 100000) >= 0);
        assert_int_equal(fixture->passed, passed);
}

static void a_pod_without_a_probe_is_none_to_be_probed(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(start(fixture, PROBE_NONE, 1, &fixture->probes[0]), -EINVAL);
        assert_null(fixture->probes[0]);
}

static void probes_are_bounded_and_one_that_ends_makes_room(void **state)
{
        struct fixture *fixture = *state;
        struct probe *probe = NULL;

        for (size_t i = 0; i < PROBES_MAX; i++)
                assert_int_equal(start(fixture, i % 2 ? PROBE_TCP : PROBE_HTTP, 1, &fixture->probes[i]), 0);
        assert_int_equal(start(fixture, PROBE_TCP, 1, &probe), -ENOBUFS);

        fixture->probes[0] = probe_free(fixture->probes[0]);
        assert_int_equal(start(fixture, PROBE_TCP, 1, &fixture->probes[0]), 0);
}

static void what_has_passed_is_asked_no_more(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(start(fixture, PROBE_TCP, 3, &fixture->probes[0]), 0);
        run_until(fixture, 1);
        assert_int_equal(probe_attempts(fixture->probes[0]), 3);

        assert_int_equal(start(fixture, PROBE_TCP, 10, &fixture->probes[1]), 0);
        run_until(fixture, 2);
        assert_int_equal(probe_attempts(fixture->probes[0]), 3);
        assert_string_equal(probe_problem(fixture->probes[0]), "");
}

static void all_may_be_freed_when_one_has_passed(void **state)
{
        struct fixture *fixture = *state;

        fixture->free_all = true;
        for (size_t i = 0; i < PROBES_MAX; i++) /* nobody answers the HTTP ones */
                assert_int_equal(start(fixture, i % 2 ? PROBE_TCP : PROBE_HTTP, 2, &fixture->probes[i]), 0);
        run_until(fixture, 1);
        assert_int_equal(sd_event_run(fixture->event, 400000), 0); /* nothing is left that could happen */
        assert_int_equal(fixture->passed, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_pod_without_a_probe_is_none_to_be_probed, setup, teardown),
                cmocka_unit_test_setup_teardown(probes_are_bounded_and_one_that_ends_makes_room, setup, teardown),
                cmocka_unit_test_setup_teardown(what_has_passed_is_asked_no_more, setup, teardown),
                cmocka_unit_test_setup_teardown(all_may_be_freed_when_one_has_passed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
