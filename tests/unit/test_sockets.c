/* SPDX-License-Identifier: Apache-2.0 */
/* What sock_diag says of this very process's sockets. Ports are the kernel's choice, so that tests can run side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "hold/local.h"
#include "hold/sockets.h"

static struct address address(const char *text)
{
        struct address parsed;

        assert_int_equal(address_parse(text, &parsed), 0);
        return parsed;
}

/* Binds to @text, to port 0 if none is given, and listens with @backlog for TCP. */
static int open_server(int type, const char *text, int backlog, bool v6_only, uint16_t *port)
{
        struct address bound = address(text);
        struct sockaddr_storage sockaddr;
        socklen_t size = address_to_sockaddr(&bound, *port, &sockaddr);
        int fd = socket(sockaddr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

        assert_true(fd >= 0);
        if (v6_only)
                assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&sockaddr, size), 0);
        if (type == SOCK_STREAM)
                assert_int_equal(listen(fd, backlog), 0);
        size = sizeof(sockaddr);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&sockaddr, &size), 0);
        *port = ntohs(((struct sockaddr_in *)&sockaddr)->sin_port); /* at the same place in both families */
        return fd;
}

static int open_client(int type, const char *text, uint16_t port, struct flow *ret_flow)
{
        struct address server = address(text);
        struct sockaddr_storage sockaddr;
        socklen_t size = address_to_sockaddr(&server, port, &sockaddr);
        int fd = socket(sockaddr.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        assert_true(fd >= 0);
        (void)connect(fd, (struct sockaddr *)&sockaddr, size);
        size = sizeof(sockaddr);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&sockaddr, &size), 0);
        *ret_flow = (struct flow){ .source = server, /* both ends are the same host's loopback address */
                                   .destination = server,
                                   .source_port = ntohs(((struct sockaddr_in *)&sockaddr)->sin_port),
                                   .destination_port = port,
                                   .protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP };
        return fd;
}

static int set_up(void **state)
{
        return sockets_new((struct sockets **)state);
}

static int tear_down(void **state)
{
        sockets_free(*state);
        return 0;
}

struct listener_row {
        const char *bound;
        bool v6_only;
        const char *frontend;
        bool found;
};

static const struct listener_row listener_rows[] = {
        { "127.0.0.1", false, "127.0.0.1", true },
        { "127.0.0.1", false, "127.0.0.2", false },
        { "127.0.0.1", false, "0.0.0.0", false },
        { "0.0.0.0", false, "0.0.0.0", true },
        { "0.0.0.0", false, "127.0.0.1", true },
        { "0.0.0.0", false, "::1", false },
        { "0.0.0.0", false, "::", true },
        { "::", false, "::", true },
        { "::", false, "0.0.0.0", true },
        { "::", false, "127.0.0.1", true },
        { "::", false, "::1", true },
        { "::", true, "::", true },
        { "::", true, "::1", true },
        { "::", true, "0.0.0.0", false },
        { "::", true, "127.0.0.1", false },
        { "::1", false, "::1", true },
        { "::1", false, "::", false },
};

static void check_listeners(struct sockets *sockets, int type)
{
        for (size_t i = 0; i < ELEMENTSOF(listener_rows); i++) {
                const struct listener_row *row = &listener_rows[i];
                struct frontend frontend = { .address = address(row->frontend),
                                             .protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP };
                struct listener listener;
                int fd = open_server(type, row->bound, 7, row->v6_only, &frontend.port), r;

                r = sockets_find_listener(sockets, &frontend, &listener);
                if (r != (row->found ? 0 : -ENOENT) || (r == 0 && listener.count != 1))
                        fail_msg("%s for %s: %d", row->bound, row->frontend, r);
                if (r == 0 && type == SOCK_STREAM)
                        assert_int_equal(listener.queue_limit, 7);
                close(fd);
        }
}

static void a_tcp_listener_takes_what_its_address_covers(void **state)
{
        check_listeners(*state, SOCK_STREAM);
}

static void a_udp_socket_takes_what_its_address_covers(void **state)
{
        check_listeners(*state, SOCK_DGRAM);
}

static void a_bound_socket_that_does_not_listen_is_no_listener(void **state)
{
        struct frontend frontend = { .address = address("127.0.0.1"), .protocol = IPPROTO_TCP };
        struct listener listener;
        int listening = open_server(SOCK_STREAM, "127.0.0.1", 1, false, &frontend.port);

        shutdown(listening, SHUT_RDWR); /* back to bound only */
        assert_int_equal(sockets_find_listener(*state, &frontend, &listener), -ENOENT);
        close(listening);
}

static void sockets_that_share_a_port_are_counted(void **state)
{
        struct frontend frontend = { .address = address("127.0.0.1"), .protocol = IPPROTO_TCP };
        struct listener listener;
        int first = open_server(SOCK_STREAM, "127.0.0.1", 7, false, &frontend.port),
            second = open_server(SOCK_STREAM, "127.0.0.1", 7, false, &frontend.port);

        assert_int_equal(sockets_find_listener(*state, &frontend, &listener), 0);
        assert_int_equal(listener.count, 2);
        close(first);
        close(second);
}

static void the_accept_queue_is_what_waits_for_accept(void **state)
{
        static const char *const hosts[] = { "127.0.0.1", "::1" };

        for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
                struct frontend frontend = { .address = address(hosts[i]), .protocol = IPPROTO_TCP };
                struct listener listener;
                struct flow flow;
                int server = open_server(SOCK_STREAM, hosts[i], 7, false, &frontend.port), clients[3];

                for (size_t j = 0; j < ELEMENTSOF(clients); j++)
                        clients[j] = open_client(SOCK_STREAM, hosts[i], frontend.port, &flow);
                assert_int_equal(sockets_find_listener(*state, &frontend, &listener), 0);
                assert_int_equal(listener.queued, 3);
                close(accept(server, NULL, NULL));
                assert_int_equal(sockets_find_listener(*state, &frontend, &listener), 0);
                assert_int_equal(listener.queued, 2);
                for (size_t j = 0; j < ELEMENTSOF(clients); j++)
                        close(clients[j]);
                close(server);
        }
}

static void a_flow_is_told_by_its_server_end_or_by_who_would_take_it(void **state)
{
        static const struct {
                const char *bound, *host;
        } rows[] = { { "127.0.0.1", "127.0.0.1" }, { "::", "127.0.0.1" }, { "::", "::1" } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                enum connection_state connection;
                struct listener listener;
                uint16_t port = 0;
                struct flow flow;
                int server = open_server(SOCK_STREAM, rows[i].bound, 7, false, &port), client;

                client = open_client(SOCK_STREAM, rows[i].host, port, &flow);
                assert_int_equal(sockets_find_connection(*state, &flow, &connection), 0);
                assert_int_equal(connection, CONNECTION_ESTABLISHED);
                flow.source_port ^= 1; /* another's */
                assert_int_equal(sockets_probe_flow(*state, &flow, 0, &connection, &listener), 0);
                assert_int_equal(connection, CONNECTION_NONE);
                assert_int_equal(listener.count, 1);
                assert_int_equal(listener.queued, 1);
                assert_int_equal(listener.queue_limit, 7);
                close(server);
                assert_int_equal(sockets_probe_flow(*state, &flow, 0, &connection, &listener), 0);
                assert_int_equal(connection, CONNECTION_NONE);
                assert_int_equal(listener.count, 0);
                close(client);
        }
}

static void datagrams_fill_the_receive_buffer_of_the_socket_that_takes_them(void **state)
{
        enum connection_state connection;
        struct listener before, after;
        uint16_t port = 0;
        struct flow flow;
        int server = open_server(SOCK_DGRAM, "::", 0, false, &port), client = open_client(SOCK_DGRAM, "127.0.0.1", port, &flow);

        assert_int_equal(sockets_probe_flow(*state, &flow, 0, &connection, &before), 0);
        assert_int_equal(before.count, 1);
        assert_true(before.queue_limit > 0);
        assert_int_equal(send(client, "hello", 5, 0), 5);
        assert_int_equal(sockets_probe_flow(*state, &flow, 0, &connection, &after), 0);
        assert_true(after.queued >= before.queued + 5);
        close(client);
        close(server);
}

static uint64_t socket_inode(int fd)
{
        struct stat status;

        assert_int_equal(fstat(fd, &status), 0);
        return status.st_ino;
}

static void the_client_of_a_flow_is_found_on_this_host(void **state)
{
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM };

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                struct socket_owner owner;
                uint16_t port = 0;
                struct flow flow;
                int server = open_server(types[i], "127.0.0.1", 7, false, &port),
                    client = open_client(types[i], "127.0.0.1", port, &flow);

                assert_int_equal(sockets_find_client(*state, &flow, &owner), 0);
                assert_int_equal(owner.inode, socket_inode(client));
                assert_int_equal(owner.uid, geteuid());
                close(client);
                flow.source_port = 1; /* nobody's */
                assert_int_equal(sockets_find_client(*state, &flow, &owner), -ENOENT);
                close(server);
        }
}

static void local_addresses_are_those_the_routes_say(void **state)
{
        _cleanup_(local_prefixes_freep) struct local_prefixes *prefixes = NULL;
        struct address local = address("127.0.0.1"), anywhere = address("127.255.0.1"), far = address("192.0.2.77"),
                       wildcard = address("::");

        assert_int_equal(local_prefixes_read(&prefixes), 0);
        assert_true(local_prefixes_contain(&local, prefixes));
        assert_true(local_prefixes_contain(&anywhere, prefixes)); /* 127.0.0.0/8 is one route */
        assert_true(local_prefixes_contain(&wildcard, prefixes));
        assert_false(local_prefixes_contain(&far, prefixes));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tcp_listener_takes_what_its_address_covers),
                cmocka_unit_test(a_udp_socket_takes_what_its_address_covers),
                cmocka_unit_test(a_bound_socket_that_does_not_listen_is_no_listener),
                cmocka_unit_test(sockets_that_share_a_port_are_counted),
                cmocka_unit_test(the_accept_queue_is_what_waits_for_accept),
                cmocka_unit_test(a_flow_is_told_by_its_server_end_or_by_who_would_take_it),
                cmocka_unit_test(datagrams_fill_the_receive_buffer_of_the_socket_that_takes_them),
                cmocka_unit_test(the_client_of_a_flow_is_found_on_this_host),
                cmocka_unit_test(local_addresses_are_those_the_routes_say),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
