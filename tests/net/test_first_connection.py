# SPDX-License-Identifier: Apache-2.0
"""The first connection to a sleeping service is answered, and the wait is the server's, not TCP's."""
import socket

import pytest

from machine import policy
from machine.client import finish
from machine.policy import server

IPOPT_NOP, IPOPT_RECORD_ROUTE = 1, 7


def test_first_connection_is_answered_without_a_retransmission(node, place):
    kind, family = place
    node.start(policy(command=server("--wait", "200")))
    assert node.control.phase() == "Asleep"

    attempt = node.client(kind).connect(8080, family)

    assert attempt.connected, attempt
    assert attempt.retransmissions == 0
    assert b"200 OK" in attempt.ask()
    assert node.control.until_phase("Awake")["last_wake"]["cause"] == "packet"


def test_connections_after_the_first_are_not_held(node, place):
    kind, family = place
    node.start(policy())
    assert node.client(kind).connect(8080, family).connected
    node.control.until_phase("Awake")
    node.control.until(lambda: not node.control.status()["hold"]["attached"], 5, "the hooks' detachment")

    attempt = node.client(kind).connect(8080, family)

    assert b"200 OK" in attempt.ask()
    assert attempt.retransmissions == 0
    assert node.control.packets("held") == 1


@pytest.mark.parametrize("kind", ["loopback", "routed"])
def test_none_of_200_first_connections_to_a_backlog_of_5_is_refused_or_repeats_its_syn(node, kind):
    node.start(policy(command=server("--wait", "300", "--backlog", "5")))

    attempts = node.client(kind).connect_many(200, 8080)

    assert [str(attempt) for attempt in attempts if not attempt.connected] == []
    assert [str(attempt) for attempt in attempts if attempt.retransmissions] == []


def test_a_slow_acceptor_gets_connections_at_its_own_pace(node):
    node.start(policy(command=server("--wait", "100", "--backlog", "5", "--accept-every", "5")))

    attempts = node.client().connect_many(100, 8080)

    assert [str(attempt) for attempt in attempts if not attempt.connected] == []
    assert [str(attempt) for attempt in attempts if attempt.retransmissions] == []


def test_a_server_that_takes_three_seconds_is_waited_for(node):
    node.start(policy(command=server("--wait", "3000")))

    attempt = node.client().connect(8080)

    assert attempt.connected, attempt
    ready = node.control.until_phase("Awake")["last_wake"]["phases"]["ready"]
    assert 3 <= ready
    assert attempt.seconds - ready < 0.5  # released, not rescued by the next retransmission, which is a second apart


def test_a_server_that_speaks_first_is_heard(node, place):
    kind, family = place
    node.start(policy(command=server("--greet", "220 ready\r\n")))

    attempt = node.client(kind).connect(8080, family)

    assert attempt.receive() == b"220 ready\r\n"
    assert attempt.retransmissions == 0


def test_a_client_that_gives_up_harms_nobody(node):
    node.start(policy(command=server("--wait", "500")))
    impatient = node.client().begin(8080)
    node.control.until(node.control.held, 5, "a parked packet")
    impatient.close()

    patient = node.client().connect(8080)

    assert b"200 OK" in patient.ask()
    assert patient.retransmissions == 0
    node.control.until_phase("Awake")
    node.control.until(lambda: node.control.held() == [], 5, "the end of holding")


def test_clients_everywhere_are_answered_by_one_wake(node):
    node.start(policy(command=server("--wait", "300")))

    attempts = [node.client(kind).begin(8080, family) for kind in node.network.clients for family in (4, 6)]
    finish(attempts, 10)

    assert {attempt.ask() for attempt in attempts} == {attempts[0].ask()}  # the same process answered all
    assert [attempt.retransmissions for attempt in attempts] == [0] * len(attempts)


@pytest.mark.parametrize("kind", ["loopback", "routed"])
@pytest.mark.parametrize("options", [
    pytest.param(bytes([IPOPT_NOP] * 4), id="nop"),
    pytest.param(bytes([IPOPT_NOP, IPOPT_RECORD_ROUTE, 11, 4]) + bytes(8), id="record-route"),
])
def test_ipv4_options_do_not_hide_a_first_connection(node, kind, options):
    node.start(policy())

    attempt = node.client(kind).connect(8080, options=[(socket.IPPROTO_IP, socket.IP_OPTIONS, options)])

    assert attempt.connected, attempt
    assert attempt.retransmissions == 0


def test_a_frontend_on_one_address_leaves_the_others_alone(node):
    node.start(policy(listen=["tcp/192.0.2.1:8080"]))

    assert not node.client("loopback").connect(8080).connected
    assert node.control.phase() == "Asleep"
    assert node.client("routed").connect(8080).connected


@pytest.mark.parametrize("family", [4, 6])
def test_a_socket_for_each_family_will_do(node, family):
    listen = ["tcp/0.0.0.0:8080", "tcp/[::]:8080"]
    node.start(policy(listen=listen, command=server("--v6only", listen=listen)))

    attempt = node.client().connect(8080, family)

    assert attempt.connected, attempt
    assert attempt.retransmissions == 0
