# SPDX-License-Identifier: Apache-2.0
"""First connections to Services without endpoints: held on the client's node, and given to an endpoint before the data plane knows it."""
import errno
import socket
import time

import pytest

from machine.client import finish
from translated import (FAMILIES, GATEWAY, NODE, NODE_PORT, PODS, POD_PORT, PORT, SERVICE, assert_greeted, assert_served,
                        begin_held, node_port, pod_address, service)


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("client", ["client", "node"])
@pytest.mark.parametrize("family", FAMILIES)
def test_first_connection_is_answered_before_the_data_plane_knows(cluster, hold, client, where, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints[where]
    attempt = cluster.clients[client].begin(PORT, family)
    assert holder.await_event("demand")["local"] == (client == "node")
    endpoint.listen(family)

    holder.do("endpoints", 0, endpoint.where(family))

    assert_greeted([attempt])
    holder.await_event("released")
    holder.await_event("answered")
    assert endpoint.peers == [attempt.socket.getsockname()[0]]
    assert holder.counter("released/direct") == 1


@pytest.mark.parametrize("where, seen_from", [("here", GATEWAY[4]), ("there", NODE[4])])
def test_a_node_port_is_served_by_way_of_this_node(cluster, hold, where, seen_from):
    holder, endpoint = hold().sleep(node_port("masquerade")), cluster.endpoints[where]
    attempt = cluster.clients["outside"].begin(NODE_PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted([attempt])
    assert endpoint.peers == [seen_from]


@pytest.mark.parametrize("options", [[], [f"cluster={PODS[4]}"], ["masquerade-all"]])
def test_whom_a_local_node_port_takes_in_is_seen_as_who_asks(cluster, hold, options):
    holder, endpoint = hold(*options).sleep(node_port("local", "as-it-is")), cluster.endpoints["here"]
    attempt = cluster.clients["outside"].begin(NODE_PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted([attempt])
    assert endpoint.peers == [attempt.socket.getsockname()[0]]


@pytest.mark.parametrize("options, seen_from", [([], NODE[4]), ([f"cluster={PODS[4]}"], GATEWAY[4]), (["masquerade-all"], GATEWAY[4])])
def test_sources_outside_the_cluster_are_masqueraded_where_that_is_asked_for(cluster, hold, options, seen_from):
    holder, endpoint = hold(*options).sleep(service(4)), cluster.endpoints["here"]
    attempt = cluster.clients["node"].begin(PORT)
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted([attempt])
    assert endpoint.peers == [seen_from]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pod_reaches_itself_by_its_service(cluster, hold, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["here"]
    endpoint.listen(family)
    attempt = cluster.clients["here"].begin(PORT, family)
    holder.await_parked(1)

    holder.do("endpoints", 0, endpoint.where(family))

    assert_greeted([attempt])
    assert endpoint.peers == [GATEWAY[family]]


@pytest.mark.parametrize("where", ["here", "there"])
def test_many_first_connections_to_a_short_backlog_wait_for_no_retransmission(cluster, hold, where):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints[where]
    attempts = begin_held(cluster, holder, 50)
    endpoint.listen(backlog=5, accept_every=0.001)

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted(attempts)


def test_answers_are_noticed_without_events_too(cluster, hold):
    cluster.node.set("netfilter/nf_conntrack_events", 0)
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempts = begin_held(cluster, holder, 10)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_served(attempts)
    for _ in attempts:
        holder.await_event("answered")


def test_first_connections_are_spread_over_all_endpoints(cluster, hold):
    holder = hold().sleep(service(4))
    attempts = begin_held(cluster, holder, 30)
    for endpoint in cluster.endpoints.values():
        endpoint.listen()

    holder.do("endpoints", 0, *(endpoint.where(4) for endpoint in cluster.endpoints.values()))

    assert_greeted(attempts)
    assert all(len(endpoint.peers) >= 5 for endpoint in cluster.endpoints.values())


@pytest.mark.parametrize("old", ["dead", "closed"])
def test_a_reused_source_port_is_not_bound_by_the_entry_of_another_time(cluster, hold, old):
    client = cluster.clients["client"]
    address = pod_address(1, 2)[4]
    target = cluster.endpoints["here" if old == "dead" else "there"].addresses[4]
    cluster.node.run("conntrack", "-I", "-p", "tcp", "-s", address, "-d", SERVICE[4], "--sport", 40000, "--dport", PORT,
                     "--dst-nat", f"{target}:{POD_PORT}", "-t", 100, "--state", "SYN_SENT" if old == "dead" else "TIME_WAIT")
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    attempt = client.begin(PORT, source=(address, 40000))
    holder.await_parked(1)
    endpoint.listen()

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted([attempt])


def test_a_client_that_has_its_port_in_use_towards_the_pod_itself_is_served_too(cluster, hold):
    """The pod's answers to both would look the same, had the kernel not chosen another port for the second."""
    client, address, endpoint = cluster.clients["client"], pod_address(1, 2)[4], cluster.endpoints["there"]
    shared = {"source": (address, 40001), "options": [(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)]}
    endpoint.listen()
    client.socket(socket.SOCK_STREAM, **shared).connect((endpoint.addresses[4], POD_PORT))
    holder = hold().sleep(service(4))
    attempts = [client.begin(PORT, **shared), *(client.begin(PORT) for _ in range(3))]
    holder.await_parked(4)

    holder.do("endpoints", 0, endpoint.where(4))

    assert_greeted(attempts)


def test_only_endpoints_of_this_node_serve_a_local_service(cluster, hold):
    holder, here, there = hold().sleep(service(4, "local")), cluster.endpoints["here"], cluster.endpoints["there"]
    attempts = begin_held(cluster, holder, 8)
    here.listen()
    there.listen()

    holder.do("endpoints", 0, there.where(4))
    assert {flow["state"] for flow in holder.state()["list"]} == {"parked"}
    holder.do("endpoints", 0, there.where(4), here.where(4))

    assert_served(attempts)
    assert there.peers == []


def test_a_local_service_without_an_endpoint_here_is_left_to_the_cluster(cluster, hold):
    holder, here, there = hold().sleep(service(4, "local")), cluster.endpoints["here"], cluster.endpoints["there"]
    here.swallow()
    holder.do("endpoints", 0, here.where(4))
    holder.do("expect")
    began, busy = time.monotonic(), holder.cpu_seconds()
    holder.do("endpoints", 0, there.where(4))
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)

    finish([attempt], 5)

    assert attempt.error == errno.ECONNREFUSED
    assert holder.cpu_seconds() - busy < (time.monotonic() - began) / 20  # it waited, and did not spin
    holder.await_event("drained")


def test_only_sources_in_both_lists_may_wake(cluster, hold):
    holder = hold()
    holder.do("from", "10.244.1.0/24")
    holder.sleep(node_port("masquerade", "range=10.244.1.2/32", "range=198.51.100.0/24"), service(4, "range=203.0.113.0/24"))
    node_addresses = {"outside": NODE[4], "client": NODE[4], "here": NODE[4]}
    for name, address in node_addresses.items():
        cluster.clients[name].addresses = {4: address}

    refused = [cluster.clients[name].connect(NODE_PORT, timeout=5) for name in ("outside", "here")]
    held = cluster.clients["client"].begin(NODE_PORT)
    holder.await_parked(1)
    cluster.clients["client"].addresses = SERVICE
    nobody = cluster.clients["client"].connect(PORT, timeout=5)

    assert [attempt.connected or attempt.under_way for attempt in (*refused, nobody)] == [False] * 3
    assert held.under_way
    assert holder.counter("passed/not-allowed") >= 3
