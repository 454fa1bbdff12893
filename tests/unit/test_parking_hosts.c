/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes' addresses, from the agents' pods: the reflector is real, its server the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/parking_hosts.h"
#include "unit/kube_fake.h"

#define POD(name, version, more)                                                                                                   \
        "{\"metadata\":{\"namespace\":\"lull-system\",\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}," more "}"
#define ON(node, address)                                                                                                          \
        "\"spec\":{\"nodeName\":\"" node "\",\"hostNetwork\":true},\"status\":{\"podIPs\":[{\"ip\":\"" address "\"}]}"

static void on_changed(void *userdata)
{
        ++*(unsigned *)userdata;
}

static bool is_fresh(const char *node, void *userdata)
{
        return strcmp(node, "n9") != 0;
}

static void assert_nodes(const struct parking_hosts *hosts, const char *wanted)
{
        struct parking_node *nodes;
        size_t n, length = 0;
        char text[256] = "", address[ADDRESS_TEXT_MAX];

        assert_int_equal(parking_hosts_list(hosts, is_fresh, NULL, &nodes, &n), 0);
        for (size_t i = 0; i < n; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s", i ? ", " : "", nodes[i].node,
                                           address_format(&nodes[i].addresses[0], address));
        assert_string_equal(text, wanted);
        free(nodes);
}

static void nodes_are_where_agents_are(void **state)
{
        struct kube_client client = { 0 };
        _cleanup_(parking_hosts_freep) struct parking_hosts *hosts = NULL;
        struct kube_request *watch;
        unsigned changes = 0;

        LIST_INIT(&client.requests);
        assert_int_equal(sd_event_new(&client.event), 0);
        assert_int_equal(parking_hosts_new(&client, "lull-system", on_changed, &changes, &hosts), 0);
        watch = await(&client, "/api/v1/namespaces/lull-system/pods");
        watch->callbacks.opened(watch->userdata);
        event(watch, "ADDED", POD("a", "1", ON("n2", "192.0.2.2")));
        event(watch, "ADDED", POD("b", "2", ON("n1", "192.0.2.1")));
        event(watch, "ADDED", POD("c", "3", ON("n9", "192.0.2.9")));
        event(watch, "ADDED", POD("d", "4", "\"spec\":{\"nodeName\":\"n4\",\"hostNetwork\":true}"));
        event(watch, "ADDED", POD("e", "5", "\"spec\":{\"nodeName\":\"n5\"},\"status\":{\"podIPs\":[{\"ip\":\"10.1.0.1\"}]}"));
        synced(watch);
        assert_nodes(hosts, "n1 192.0.2.1, n2 192.0.2.2"); /* none without address, of a pod network, or that is not fresh */
        assert_int_equal(changes, 3);

        event(watch, "MODIFIED", POD("b", "6", ON("n1", "192.0.2.1")));
        assert_int_equal(changes, 3);
        event(watch, "ADDED", POD("f", "7", ON("n1", "192.0.2.1"))); /* its successor */
        assert_nodes(hosts, "n1 192.0.2.1, n2 192.0.2.2");
        event(watch, "DELETED", POD("b", "8", ON("n1", "192.0.2.1")));
        assert_nodes(hosts, "n1 192.0.2.1, n2 192.0.2.2");
        event(watch, "DELETED", POD("a", "9", ON("n2", "192.0.2.2")));
        assert_nodes(hosts, "n1 192.0.2.1");
        event(watch, "MODIFIED", POD("f", "10", ON("n1", "192.0.2.7")));
        assert_nodes(hosts, "n1 192.0.2.7");
        assert_int_equal(changes, 7);

        hosts = parking_hosts_free(hosts);
        assert_true(LIST_EMPTY(&client.requests));
        sd_event_unref(client.event);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nodes_are_where_agents_are),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
