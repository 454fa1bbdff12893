# SPDX-License-Identifier: Apache-2.0
"""Datagrams to Services without endpoints."""
import socket
import time

import pytest

from translated import FAMILIES, PORT, SERVICE, service


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("family", FAMILIES)
def test_first_datagrams_reach_an_endpoint_in_order(cluster, hold, where, family):
    holder, endpoint = hold().sleep(service(family, protocol="udp")), cluster.endpoints[where]
    client = cluster.clients["client"].udp(PORT, family)
    for number in range(5):
        client.send(b"%d" % number)
    holder.await_state(lambda state: sum(flow["packets"] for flow in state["list"]) == 5)
    server = endpoint.udp(family)

    holder.do("endpoints", 0, endpoint.where(family))

    received = [server.recvfrom(100) for _ in range(5)]
    assert [datagram for datagram, _ in received] == [b"%d" % number for number in range(5)]
    server.sendto(b"answer", received[0][1])
    assert client.recv(100) == b"answer"


def test_an_entry_for_datagrams_that_the_data_plane_removes_is_made_again(cluster, hold):
    holder, endpoint = hold().sleep(service(4, protocol="udp")), cluster.endpoints["there"]
    client, server = cluster.clients["client"].udp(PORT), endpoint.udp()
    client.send(b"first")
    holder.await_parked(1)
    holder.do("endpoints", 0, endpoint.where(4))
    assert server.recv(100) == b"first"

    for number in range(3):
        cluster.delete_entries("-p", "udp", "-d", SERVICE[4])
        holder.state()  # it has had its turn
        client.send(b"%d" % number)
        assert server.recv(100) == b"%d" % number


def test_a_datagram_refused_by_its_endpoint_goes_to_another(cluster, hold):
    holder, dead, alive = hold().sleep(service(4, protocol="udp")), cluster.endpoints["here"], cluster.endpoints["here2"]
    clients = [cluster.clients["client"].udp(PORT) for _ in range(4)]
    for client in clients:
        client.send(b"question")
    holder.await_parked(4)
    server = alive.udp()

    holder.do("endpoints", 0, dead.where(4), alive.where(4))

    assert [server.recv(100) for _ in clients] == [b"question"] * 4
    for client in clients:
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


def test_a_udp_service_is_let_go_with_its_tcp_side(cluster, hold):
    holder, endpoint = hold().sleep(service(4), service(4, protocol="udp")), cluster.endpoints["there"]
    endpoint.listen()
    for index in (0, 1):
        holder.do("endpoints", index, endpoint.where(4))
    holder.do("expect")

    cluster.program(endpoint)

    holder.await_event("drained")


def test_a_service_of_datagrams_alone_is_let_go_after_a_grace(cluster, hold):
    holder, endpoint = hold().sleep(service(4, protocol="udp")), cluster.endpoints["there"]
    holder.do("endpoints", 0, endpoint.where(4))
    began = time.monotonic()
    holder.do("expect")

    holder.await_event("drained")

    assert time.monotonic() - began >= 2


def test_a_datagram_of_the_node_itself_is_left_alone(cluster, hold):
    cluster.stop_proxy()  # whose refusal would be an error to the sender, too
    cluster.node_2.ip(f"route add blackhole {SERVICE[4]}/32")
    holder = hold().sleep(service(4, protocol="udp"))

    cluster.clients["node"].udp(PORT).send(b"question")  # a drop would be EPERM

    assert holder.counter("held/published") == 0
