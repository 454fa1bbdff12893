/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a daemon, and how the next one takes over. */
#include "hooks.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PORT = 5353, SLOT = 3 };

static struct hold_hooks *start_daemon(void)
{
        struct hold_hooks *hooks = NULL;

        assert_int_equal(hold_hooks_new(MACHINE_BPFFS, false, &hooks), 0);
        return hooks;
}

static uint32_t program_id(const struct hold_hooks *hooks)
{
        json_t *programs = hold_hooks_programs(hooks);
        uint32_t id = json_integer_value(json_object_get(json_array_get(programs, 0), "id"));

        json_decref(programs);
        return id;
}

/* How many links keep the program attached. */
static unsigned count_links(uint32_t program)
{
        unsigned links = 0;
        uint32_t id = 0;

        while (bpf_link_get_next_id(id, &id) == 0) {
                struct bpf_link_info info = {};
                uint32_t length = sizeof(info);
                int fd = bpf_link_get_fd_by_id(id);

                if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &length) == 0 && info.prog_id == program)
                        links++;
                close_fd(fd);
        }
        return links;
}

/* The kernel lets go of what was removed a little later. */
static void expect_links(uint32_t program, unsigned expected)
{
        for (int i = 0; i < 2000 && count_links(program) != expected; i++)
                usleep(1000);
        assert_int_equal(count_links(program), expected);
}

static bool is_pinned(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", MACHINE_BPFFS, name);
        return access(path, F_OK) == 0;
}

static bool has_frontend(struct hold_hooks *hooks, const char *address)
{
        struct lull_frontend_key key = { .port = htons(PORT), .protocol = IPPROTO_UDP };
        struct lull_frontend value;

        put_address(key.address, address);
        return bpf_map_lookup_elem(hold_hooks_map(hooks, HOLD_MAP_FRONTENDS), &key, &value) == 0;
}

static void hold_loopback(struct hold_hooks *hooks)
{
        add_frontend(hooks, "127.0.0.1", PORT, IPPROTO_UDP, SLOT, 0);
        arm(hooks, SLOT, UINT64_MAX);
}

static int udp_socket(bool bound)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal((bound ? bind : connect)(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

static void the_first_daemon_adopts_nothing_and_the_next_one_everything(void **state)
{
        struct hold_hooks *first = start_daemon(), *second;

        assert_false(hold_hooks_adopted(first));
        hold_loopback(first);
        hold_hooks_demand(first, SLOT)->packets = 7;
        hold_hooks_free(first, true);

        second = start_daemon();
        assert_true(hold_hooks_adopted(second));
        assert_true(has_frontend(second, "127.0.0.1"));
        assert_int_equal(hold_hooks_demand(second, SLOT)->packets, 7);
        hold_hooks_free(second, false);
}

static void maps_of_another_layout_are_replaced(void **state)
{
        struct hold_hooks *first = start_daemon(), *second, *third;

        hold_loopback(first);
        hold_hooks_control(first)->layout = LULL_WIRE_LAYOUT + 1;
        hold_hooks_free(first, true);

        second = start_daemon();
        assert_false(hold_hooks_adopted(second));
        assert_false(has_frontend(second, "127.0.0.1"));
        hold_loopback(second);
        hold_hooks_free(second, true);

        third = start_daemon();
        assert_true(hold_hooks_adopted(third));
        assert_true(has_frontend(third, "127.0.0.1"));
        hold_hooks_free(third, false);
}

static void maps_of_another_shape_are_replaced(void **state)
{
        struct hold_hooks *first = start_daemon(), *second;
        int other = bpf_map_create(BPF_MAP_TYPE_HASH, "frontends", sizeof(struct lull_frontend_key), 16, 128, NULL);

        assert_true(other >= 0);
        hold_hooks_free(first, true);
        assert_int_equal(unlink(MACHINE_BPFFS "/frontends"), 0);
        assert_int_equal(bpf_obj_pin(other, MACHINE_BPFFS "/frontends"), 0);

        second = start_daemon();
        assert_false(hold_hooks_adopted(second));
        hold_loopback(second);
        hold_hooks_free(second, false);
        close_fd(other);
}

static void a_missing_map_has_all_replaced(void **state)
{
        struct hold_hooks *first = start_daemon(), *second;

        hold_loopback(first);
        hold_hooks_free(first, true);
        assert_int_equal(unlink(MACHINE_BPFFS "/pass"), 0);

        second = start_daemon();
        assert_false(hold_hooks_adopted(second));
        assert_false(has_frontend(second, "127.0.0.1"));
        hold_hooks_free(second, false);
}

static void attached_twice_is_attached_once(void **state)
{
        struct hold_hooks *hooks = start_daemon();

        assert_false(hold_hooks_attached(hooks));
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_true(hold_hooks_attached(hooks));
        expect_links(program_id(hooks), 2);
        hold_hooks_free(hooks, false);
}

static void detaching_leaves_no_link_and_lets_traffic_pass(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        int server = udp_socket(true), client = udp_socket(false);
        char byte;

        hold_loopback(hooks);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_int_equal(send(client, "1", 1, 0), 1);
        assert_int_equal(recv(server, &byte, 1, MSG_DONTWAIT), -1);

        hold_hooks_detach(hooks);
        hold_hooks_detach(hooks);
        assert_false(hold_hooks_attached(hooks));
        expect_links(program_id(hooks), 0);
        assert_false(is_pinned("hold_ipv4") || is_pinned("hold_ipv6"));
        assert_int_equal(send(client, "2", 1, 0), 1);
        assert_int_equal(recv(server, &byte, 1, 0), 1);
        assert_int_equal(byte, '2');

        close_fd(client);
        close_fd(server);
        hold_hooks_free(hooks, false);
}

static void what_this_host_sends_is_looked_at_only_where_frontends_are_translated(void **state)
{
        struct hold_hooks *hooks = NULL;

        assert_int_equal(hold_hooks_new(MACHINE_BPFFS, true, &hooks), 0);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_true(hold_hooks_attached(hooks));
        assert_true(is_pinned("hold_ipv4") && is_pinned("hold_ipv6") && is_pinned("hold_out_ipv4") && is_pinned("hold_out_ipv6"));
        hold_hooks_free(hooks, true);

        hooks = start_daemon(); /* which translates nothing */
        hold_hooks_detach(hooks);
        assert_false(is_pinned("hold_ipv4") || is_pinned("hold_ipv6") || is_pinned("hold_out_ipv4") || is_pinned("hold_out_ipv6"));
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_true(hold_hooks_attached(hooks));
        assert_false(is_pinned("hold_out_ipv4") || is_pinned("hold_out_ipv6"));
        hold_hooks_free(hooks, false);
}

static void hooks_outlive_the_daemon_and_give_way_to_the_next_ones(void **state)
{
        struct hold_hooks *hooks = start_daemon();

        assert_int_equal(hold_hooks_attach(hooks), 0);
        for (int i = 0; i < 3; i++) {
                uint32_t old = program_id(hooks);

                hold_hooks_free(hooks, true);
                expect_links(old, 2);

                hooks = start_daemon();
                assert_int_equal(hold_hooks_attach(hooks), 0);
                expect_links(old, 0);
                expect_links(program_id(hooks), 2);
        }
        hold_hooks_free(hooks, false);
}

static void a_daemon_that_holds_nothing_removes_what_the_last_one_attached(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        uint32_t old = program_id(hooks);

        assert_int_equal(hold_hooks_attach(hooks), 0);
        hold_hooks_free(hooks, true);

        hooks = start_daemon();
        hold_hooks_detach(hooks);
        expect_links(old, 0);
        hold_hooks_free(hooks, false);
}

static pid_t flood(void)
{
        pid_t child = fork();
        int client;

        if (child != 0)
                return child;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
        client = udp_socket(false);
        for (;;)
                send(client, "x", 1, 0);
}

static void nobody_slips_through_a_takeover(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        int server = udp_socket(true);
        pid_t flooder;
        char byte;

        hold_loopback(hooks);
        hold_hooks_control(hooks)->heartbeat_ns += 3600 * NSEC_PER_SEC; /* however long loading takes on this machine */
        assert_int_equal(hold_hooks_attach(hooks), 0);
        flooder = flood();
        for (int i = 0; i < 5; i++) {
                struct hold_hooks *next = start_daemon();

                assert_int_equal(hold_hooks_attach(next), 0);
                hold_hooks_free(hooks, true);
                hooks = next;
        }
        kill(flooder, SIGKILL);
        waitpid(flooder, NULL, 0);

        assert_true(hold_hooks_demand(hooks, SLOT)->packets > 1000);
        assert_int_equal(recv(server, &byte, 1, MSG_DONTWAIT), -1);
        close_fd(server);
        hold_hooks_free(hooks, false);
}

static void a_takeover_frees_the_quota_that_went_with_the_last_daemon(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        int client = udp_socket(false);
        struct lull_demand *demand;

        hold_loopback(hooks);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        for (int i = 0; i < 5; i++)
                assert_int_equal(send(client, "1", 1, 0), 1);
        hold_hooks_control(hooks)->hold_until_ns = now_monotonic_ns() + 20 * NSEC_PER_SEC;
        hold_hooks_free(hooks, true);

        hooks = start_daemon();
        demand = hold_hooks_demand(hooks, SLOT);
        assert_int_equal(demand->published, 5);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_int_equal(demand->consumed, 5);
        /* and what the last daemon planned stays planned until this one decides otherwise */
        assert_true(hold_hooks_control(hooks)->hold_until_ns > now_monotonic_ns() + 10 * NSEC_PER_SEC);
        close_fd(client);
        hold_hooks_free(hooks, false);
}

/* The old hooks go on publishing until they give way, into a ring buffer that nobody reads any more. */
static void what_is_published_during_a_takeover_is_settled_too(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        int client = udp_socket(false);
        struct lull_demand *demand;

        hold_loopback(hooks);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        hold_hooks_free(hooks, true);

        hooks = start_daemon();
        demand = hold_hooks_demand(hooks, SLOT);
        hold_hooks_control(hooks)->heartbeat_ns = now_monotonic_ns();
        assert_int_equal(send(client, "1", 1, 0), 1);
        assert_int_equal(demand->published, 1);
        assert_int_equal(demand->consumed, 0);
        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_int_equal(demand->consumed, 1);
        assert_int_equal(hold_hooks_control(hooks)->hold_until_ns, 0);
        close_fd(client);
        hold_hooks_free(hooks, false);
}

static void nothing_stays_pinned_unless_asked_for(void **state)
{
        struct hold_hooks *hooks = start_daemon();

        assert_int_equal(hold_hooks_attach(hooks), 0);
        assert_true(is_pinned("control") && is_pinned("hold_ipv4"));
        hold_hooks_free(hooks, false);
        assert_int_equal(rmdir(MACHINE_BPFFS), 0); /* empty */
}

static void a_directory_that_is_not_on_a_bpffs_is_refused(void **state)
{
        struct hold_hooks *hooks = NULL;

        assert_int_equal(hold_hooks_new("/tmp/elsewhere", false, &hooks), -ENOTSUP);
        assert_null(hooks);
}

static void maps_are_described_with_their_fill(void **state)
{
        struct hold_hooks *hooks = start_daemon();
        json_t *maps, *first;

        hold_loopback(hooks);
        add_frontend(hooks, "127.0.0.2", PORT, IPPROTO_UDP, SLOT, 0);
        maps = hold_hooks_maps(hooks);
        first = json_array_get(maps, HOLD_MAP_FRONTENDS);
        assert_int_equal(json_array_size(maps), HOLD_MAP_MAX);
        assert_string_equal(json_string_value(json_object_get(first, "name")), "frontends");
        assert_int_equal(json_integer_value(json_object_get(first, "entries")), 2);
        assert_int_equal(json_integer_value(json_object_get(first, "max_entries")), LULL_FRONTENDS_MAX);
        json_decref(maps);
        hold_hooks_free(hooks, false);
}

static int set_up(void **state)
{
        machine_enter();
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_daemon_adopts_nothing_and_the_next_one_everything),
                cmocka_unit_test(maps_of_another_layout_are_replaced),
                cmocka_unit_test(maps_of_another_shape_are_replaced),
                cmocka_unit_test(a_missing_map_has_all_replaced),
                cmocka_unit_test(attached_twice_is_attached_once),
                cmocka_unit_test(detaching_leaves_no_link_and_lets_traffic_pass),
                cmocka_unit_test(what_this_host_sends_is_looked_at_only_where_frontends_are_translated),
                cmocka_unit_test(hooks_outlive_the_daemon_and_give_way_to_the_next_ones),
                cmocka_unit_test(a_daemon_that_holds_nothing_removes_what_the_last_one_attached),
                cmocka_unit_test(nobody_slips_through_a_takeover),
                cmocka_unit_test(a_takeover_frees_the_quota_that_went_with_the_last_daemon),
                cmocka_unit_test(what_is_published_during_a_takeover_is_settled_too),
                cmocka_unit_test(nothing_stays_pinned_unless_asked_for),
                cmocka_unit_test(a_directory_that_is_not_on_a_bpffs_is_refused),
                cmocka_unit_test(maps_are_described_with_their_fill),
        };

        return cmocka_run_group_tests(tests, set_up, NULL);
}
