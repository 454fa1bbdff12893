/* SPDX-License-Identifier: Apache-2.0 */
/* Connection tracking entries as the kernel takes them: with one, a packet to an address that nobody has reaches whom it names. */
#include "machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "hold/conntrack.h"

enum { SERVICE_PORT = 80, ENDPOINT_PORT = 8080, CLIENT_PORT = 40000, TIMEOUT_S = 30 };

static const struct family {
        const char *client, *service, *endpoint, *other;
} families[] = {
        { "10.0.0.1", "10.96.0.10", "10.0.0.2", "10.0.0.3" },
        { "fd00::1", "fd96::10", "fd00::2", "fd00::3" },
};

struct fixture {
        sd_event *event;
        struct conntrack *conntrack;
        unsigned updated, destroyed;
        struct conntrack_entry last;
};

static void on_event(enum conntrack_event event, const struct conntrack_entry *entry, void *userdata)
{
        struct fixture *fixture = userdata;

        if (event == CONNTRACK_LOST)
                return;
        fixture->last = *entry;
        fixture->updated += event == CONNTRACK_UPDATED;
        fixture->destroyed += event == CONNTRACK_DESTROYED;
}

/* One host with all addresses but the service's, for which there is a route that leads nowhere. */
static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        machine_enter();
        shell("ip link add wire type veth peer name other && ip link set wire up && ip link set other up");
        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                const char *own[] = { families[i].client, families[i].endpoint, families[i].other };

                for (size_t j = 0; j < ELEMENTSOF(own); j++)
                        shell("ip addr add %s dev lo %s", own[j], i ? "nodad" : "");
                shell("ip route add %s dev wire src %s", families[i].service, families[i].client);
        }
        /* An empty chain would not do: the kernel tracks connections from the first rule on that has to do with them. */
        shell("nft 'table inet nat { chain output { type nat hook output priority -100; ct state new counter; }; }'");
        assert_int_equal(sd_event_new(&fixture->event), 0);
        assert_int_equal(conntrack_new(fixture->event, on_event, fixture, &fixture->conntrack), 0);
        assert_int_equal(conntrack_follow(fixture->conntrack, true), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        conntrack_free(fixture->conntrack);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static struct address address(const char *text)
{
        struct address parsed;

        assert_int_equal(address_parse(text, &parsed), 0);
        return parsed;
}

static struct flow flow_of(const struct family *family, uint8_t protocol)
{
        return (struct flow){
                .source = address(family->client),
                .destination = address(family->service),
                .source_port = CLIENT_PORT,
                .destination_port = SERVICE_PORT,
                .protocol = protocol,
        };
}

static struct conntrack_translation to_endpoint(const struct family *family, const struct address *masquerade)
{
        return (struct conntrack_translation){
                .endpoint = address(family->endpoint), .port = ENDPOINT_PORT, .masquerade = masquerade, .timeout_seconds = TIMEOUT_S
        };
}

static int bound(const char *text, uint16_t port, int type)
{
        struct address parsed = address(text);
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(&parsed, port, &name);
        int fd = socket(name.ss_family, type | SOCK_CLOEXEC, 0), on = 1;

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&name, size), 0);
        return fd;
}

static int connect_to(int fd, const char *text, uint16_t port)
{
        struct address parsed = address(text);
        struct sockaddr_storage name;
        socklen_t size = address_to_sockaddr(&parsed, port, &name);

        return connect(fd, (struct sockaddr *)&name, size) < 0 ? -errno : 0;
}

static void events(struct fixture *fixture)
{
        while (sd_event_run(fixture->event, 0) > 0)
                ;
}

static void connect_through_an_entry(struct fixture *fixture, const struct family *family, const char *masquerade)
{
        struct address source = address(masquerade ? masquerade : family->client), endpoint = address(family->endpoint);
        struct conntrack_translation translation = to_endpoint(family, masquerade ? &source : NULL);
        int server = bound(family->endpoint, ENDPOINT_PORT, SOCK_STREAM), client = bound(family->client, CLIENT_PORT, SOCK_STREAM);
        struct flow flow = flow_of(family, IPPROTO_TCP);
        struct conntrack_entry entry = { 0 };

        assert_int_equal(conntrack_create(fixture->conntrack, &flow, &translation), 0);
        assert_int_equal(conntrack_find(fixture->conntrack, &flow, &entry), 0);
        assert_int_equal(entry.tcp_state, TCP_CONNTRACK_NONE);
        assert_false(conntrack_is_answered(&entry));

        assert_int_equal(listen(server, 1), 0);
        fixture->updated = 0;
        assert_int_equal(connect_to(client, family->service, SERVICE_PORT), 0);
        assert_int_equal(conntrack_find(fixture->conntrack, &flow, &entry), 0);
        assert_int_equal(entry.tcp_state, TCP_CONNTRACK_ESTABLISHED);
        assert_true(conntrack_is_answered(&entry));
        assert_true(address_equal(&entry.reply.source, &endpoint));
        assert_int_equal(entry.reply.source_port, ENDPOINT_PORT);
        assert_true(address_equal(&entry.reply.destination, &source));

        events(fixture);
        assert_true(fixture->updated >= 1);
        assert_true(flow_equal(&fixture->last.original, &flow));
        assert_true(conntrack_is_answered(&fixture->last));
        close(client);
        close(server);
        assert_int_equal(conntrack_delete(fixture->conntrack, &flow), 0);
}

static void a_connection_follows_its_entry_to_the_endpoint(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(families); i++)
                connect_through_an_entry(*state, &families[i], NULL);
}

static void a_masqueraded_connection_comes_from_the_address_named(void **state)
{
        for (size_t i = 0; i < ELEMENTSOF(families); i++)
                connect_through_an_entry(*state, &families[i], families[i].other);
}

static void a_datagram_follows_its_entry_to_the_endpoint(void **state)
{
        struct fixture *fixture = *state;
        char received[16];

        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                struct conntrack_translation translation = to_endpoint(&families[i], NULL);
                int server = bound(families[i].endpoint, ENDPOINT_PORT, SOCK_DGRAM);
                int client = bound(families[i].client, CLIENT_PORT, SOCK_DGRAM);
                struct pollfd readable = { .fd = server, .events = POLLIN };
                struct flow flow = flow_of(&families[i], IPPROTO_UDP);

                assert_int_equal(conntrack_create(fixture->conntrack, &flow, &translation), 0);
                assert_int_equal(connect_to(client, families[i].service, SERVICE_PORT), 0);
                assert_int_equal(send(client, "question", 8, 0), 8);
                assert_int_equal(poll(&readable, 1, 2000), 1);
                assert_int_equal(recv(server, received, sizeof(received), 0), 8);
                close(client);
                close(server);
        }
}

static void an_entry_is_made_once_and_its_end_is_told(void **state)
{
        struct fixture *fixture = *state;

        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                struct conntrack_translation translation = to_endpoint(&families[i], NULL);
                struct flow flow = flow_of(&families[i], IPPROTO_TCP), answer;
                struct conntrack_entry entry;

                assert_int_equal(conntrack_find(fixture->conntrack, &flow, &entry), -ENOENT);
                assert_int_equal(conntrack_delete(fixture->conntrack, &flow), -ENOENT);
                assert_int_equal(conntrack_create(fixture->conntrack, &flow, &translation), 0);
                assert_int_equal(conntrack_create(fixture->conntrack, &flow, &translation), -EEXIST);
                assert_int_equal(conntrack_find(fixture->conntrack, &flow, &entry), 0);
                answer = entry.reply;
                assert_int_equal(conntrack_find(fixture->conntrack, &answer, &entry), -ENOENT);

                events(fixture);
                fixture->destroyed = 0;
                assert_int_equal(conntrack_delete(fixture->conntrack, &flow), 0);
                events(fixture);
                assert_int_equal(fixture->destroyed, 1);
                assert_true(flow_equal(&fixture->last.original, &flow));
        }
}

/* The socket of the requests is the first that conntrack_new() opened. */
static int request_socket(void)
{
        for (int fd = 3; fd < 64; fd++) {
                struct sockaddr_nl name = { 0 };
                socklen_t size = sizeof(name);

                if (getsockname(fd, (struct sockaddr *)&name, &size) == 0 && name.nl_family == AF_NETLINK)
                        return fd;
        }
        fail();
        return -1;
}

static void answers_of_requests_that_were_given_up_are_not_taken_for_others(void **state)
{
        struct fixture *fixture = *state;
        const struct {
                struct nlmsghdr header;
                struct nfgenmsg netfilter;
        } question = {
                .header = { .nlmsg_len = sizeof(question),
                            .nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
                .netfilter.nfgen_family = AF_INET,
        };
        struct conntrack_translation translation = to_endpoint(&families[0], NULL);
        struct flow flow = flow_of(&families[0], IPPROTO_TCP);
        struct conntrack_entry entry;

        for (int i = 0; i < 3; i++) /* of which flow it does not say, so the answer is an error */
                assert_int_equal(send(request_socket(), &question, sizeof(question), 0), sizeof(question));

        assert_int_equal(conntrack_create(fixture->conntrack, &flow, &translation), 0);
        assert_int_equal(conntrack_find(fixture->conntrack, &flow, &entry), 0);
        assert_int_equal(conntrack_delete(fixture->conntrack, &flow), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_connection_follows_its_entry_to_the_endpoint),
                cmocka_unit_test(a_masqueraded_connection_comes_from_the_address_named),
                cmocka_unit_test(a_datagram_follows_its_entry_to_the_endpoint),
                cmocka_unit_test(an_entry_is_made_once_and_its_end_is_told),
                cmocka_unit_test(answers_of_requests_that_were_given_up_are_not_taken_for_others),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
