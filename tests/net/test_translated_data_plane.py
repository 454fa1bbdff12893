# SPDX-License-Identifier: Apache-2.0
"""What is left to the data plane: flows that it must decide on, and the holding's end once it is proven to serve."""
import socket
import time

import pytest

from machine.client import finish
from translated import (FAMILIES, PARKING_PORT, PORT, SERVICE, assert_greeted, assert_served, begin_held, node_port, parking, pod_address,
                        service)


@pytest.mark.parametrize("option, word, state", [("wait", "", "data-plane-configured"), ("", "affinity", "data-plane-affinity")])
@pytest.mark.parametrize("family", FAMILIES)
def test_flows_wait_for_the_data_plane_where_that_must_decide(cluster, hold, option, word, state, family):
    holder, endpoint = hold(option).sleep(service(family, word)), cluster.endpoints["there"]
    attempts = [cluster.clients["client"].begin(PORT, family), cluster.clients["node"].begin(PORT, family)]
    holder.await_parked(2)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert [flow["state"] for flow in holder.state()["list"]] == [state] * 2

    cluster.program(endpoint, family)

    assert_greeted(attempts)
    assert len(endpoint.peers) == 2  # the probes were none of its business
    assert holder.counter("released/data-plane") == 2
    assert holder.counter("released/direct") == 0


@pytest.mark.parametrize("option, word", [("wait", ""), ("", "affinity")])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_flow_that_the_data_plane_leads_to_a_parking_port_is_not_refused(cluster, hold, option, word, family):
    """For about a second kube-proxy may know the pods, and yet not that nobody parks any more."""
    holder, endpoint = hold(option).sleep(service(family, word), parking(family)), cluster.endpoints["there"]
    attempts = [cluster.clients[client].begin(PORT, family) for client in ["client", "node"] * 10]
    holder.await_parked(20)
    endpoint.listen(family)
    for index in range(2):
        holder.do("endpoints", index, endpoint.where(family))

    cluster.program(endpoint, family, parked=2)

    holder.await_state(lambda state: state["counters"]["held/refusal"] >= 5)
    cluster.program(endpoint, family)
    assert_greeted(attempts)
    assert holder.counter("released/data-plane") == 20


def test_a_datagram_that_the_data_plane_leads_to_a_parking_port_is_not_refused(cluster, hold):
    holder, endpoint = hold("wait").sleep(service(4, protocol="udp"), parking(4, "udp")), cluster.endpoints["there"]
    server, client = endpoint.udp(), cluster.clients["client"].udp(PORT)
    client.send(b"question")
    holder.await_parked(1)
    for index in range(2):
        holder.do("endpoints", index, endpoint.where(4))
    cluster.program(endpoint, protocol="udp", parked=1000)

    holder.do("expect")

    holder.await_state(lambda state: state["counters"]["held/refusal"] >= 3)
    cluster.program(endpoint, protocol="udp")
    assert server.recv(100) == b"question"
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


@pytest.mark.parametrize("option, word", [("wait", ""), ("", "affinity")])
def test_what_is_led_to_a_parking_port_is_given_an_endpoint_whatever_else_is_configured(cluster, hold, option, word):
    holder, endpoint = hold(option).sleep(service(4, word), parking(4) + f" {word}"), cluster.endpoints["there"]
    attempt = cluster.clients["outside"].begin(PARKING_PORT)
    holder.await_parked(1)
    endpoint.listen()

    for index in range(2):
        holder.do("endpoints", index, endpoint.where(4))

    assert_served([attempt])
    assert holder.counter("released/direct") == 1


def test_parking_ports_are_served_for_as_long_as_they_are_there(cluster, hold):
    """Another node's data plane may learn later than this one's."""
    holder, endpoint = hold("wait").sleep(service(4), parking(4)), cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)
    endpoint.listen()
    for index in range(2):
        holder.do("endpoints", index, endpoint.where(4))
    holder.do("expect")

    cluster.program(endpoint)

    assert_served([attempt])
    holder.await_parked(0)
    assert holder.state()["attached"]
    assert_served([cluster.clients["outside"].begin(PARKING_PORT)])


def test_many_flows_go_on_at_a_bearable_pace_once_the_data_plane_is_proven(cluster, hold):
    holder, endpoint = hold("wait").sleep(service(4)), cluster.endpoints["here"]
    attempts = begin_held(cluster, holder, 50)
    endpoint.listen(backlog=5, accept_every=0.001)
    holder.do("endpoints", 0, endpoint.where(4))

    cluster.program(endpoint)

    assert_served(attempts)


@pytest.mark.parametrize("family", FAMILIES)
def test_flows_wait_where_nothing_translates(hold, cluster, family):
    cluster.stop_proxy()
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["here"]
    attempt = cluster.clients["client"].begin(PORT, family)
    holder.await_parked(1)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert [flow["state"] for flow in holder.state()["list"]] == ["data-plane-no-nat"]

    cluster.start_proxy()

    assert_served([attempt])
    assert holder.counter("released/direct") == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_proven_data_plane_ends_the_holding(cluster, hold, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints["there"]
    attempt = cluster.clients["client"].begin(PORT, family)
    holder.await_parked(1)
    endpoint.listen(family)
    holder.do("endpoints", 0, endpoint.where(family))
    assert_served([attempt])
    holder.do("expect")
    assert holder.state()["attached"]

    cluster.program(endpoint, family)

    holder.await_event("drained")
    assert not holder.state()["attached"]
    assert len(endpoint.peers) == 1  # no probe reached the application
    assert_served([cluster.clients["client"].begin(PORT, family)])


def test_a_frontend_known_to_be_served_is_let_go_at_once(cluster, hold):
    holder, endpoint = hold().sleep(service(4)), cluster.endpoints["there"]
    endpoint.listen()
    cluster.program(endpoint)
    attempt = cluster.clients["client"].begin(PORT)
    holder.await_parked(1)

    holder.do("release", 0)

    assert_served([attempt])
    holder.await_event("drained")
    assert holder.counter("released/data-plane") == 1


def test_a_probe_that_another_node_sent_is_no_demand(cluster, hold):
    """As when that node's data plane still leads to this node's parking address: it comes from anywhere, and nobody has announced it."""
    holder = hold().sleep(service(4))

    cluster.clients["client"].namespace.run("python3", "-c", PROBE, pod_address(1, 2)[4], SERVICE[4], str(PORT))
    attempt = cluster.clients["client"].begin(PORT)

    assert holder.await_event("demand")["flow"].startswith(f"tcp {pod_address(1, 2)[4]}:{attempt.socket.getsockname()[1]} ")
    assert holder.counter("passed/exempt-flow") == 1
    assert len(holder.state()["list"]) == 1


PROBE = """
import socket, struct, sys
source, target, port = sys.argv[1:]
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
raw.bind((source, 0))
def segment(checksum):
    return struct.pack("!HHIIBBHHH", 1383, int(port), 0x6c756c6c, 0, 5 << 4, 2, 65535, checksum, 0)
pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", socket.IPPROTO_TCP, 20) + segment(0)
total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
total = (total & 0xffff) + (total >> 16)
raw.sendto(segment(~(total + (total >> 16)) & 0xffff), (target, 0))
"""


def test_a_proven_node_port_ends_the_holding(cluster, hold):
    holder, endpoint = hold().sleep(node_port("masquerade"), service(4)), cluster.endpoints["here"]
    endpoint.listen()
    holder.do("endpoints", 0, endpoint.where(4))
    holder.do("endpoints", 1, endpoint.where(4))
    holder.do("expect")
    assert holder.state()["attached"]

    cluster.program(endpoint)

    holder.await_event("drained")
    assert endpoint.peers == []


def connect_for(client, seconds):
    """A connection every 5 ms, each told when it is made."""
    attempts, until = [], time.monotonic() + seconds
    while (now := time.monotonic()) < until:
        attempts.append(client.begin(PORT))
        finish(attempts, 0.005)
        time.sleep(max(0, now + 0.005 - time.monotonic()))
    return attempts


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("client", ["client", "node"])
def test_no_connection_is_refused_while_the_data_plane_learns(cluster, hold, client, where):
    holder, endpoint, caller = hold().sleep(service(4)), cluster.endpoints[where], cluster.clients[client]
    endpoint.listen()
    attempts = connect_for(caller, 0.1)

    holder.do("endpoints", 0, endpoint.where(4))
    finish(attempts, 5)
    later = finish(connect_for(caller, 0.3), 5)
    holder.do("expect")
    later += finish(connect_for(caller, 0.2), 5)
    cluster.program(endpoint)
    later += finish(connect_for(caller, 0.3), 5)

    assert_greeted(attempts + later)
    holder.await_event("drained")
    assert holder.counter("released/direct") < len(attempts + later)  # the last ones met no hook any more
    print(f"{len(attempts)} held, then {len(later)} more, of these {holder.counter('released/direct') - len(attempts)} given an endpoint; "
          f"the slowest took {max(attempt.seconds for attempt in later) * 1000:.1f} ms, "
          f"the median {sorted(attempt.seconds for attempt in later)[len(later) // 2] * 1000:.2f} ms")
