# SPDX-License-Identifier: Apache-2.0
"""Datagrams: nothing retransmits them, so what is lost here is lost."""
import shutil
import socket

import pytest

from machine import policy
from machine.policy import server

LISTEN = ["udp/[::]:5300"]
SOL_UDP, UDP_SEGMENT = 17, 103
DNSMASQ = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin:/sbin:/bin") or "/usr/sbin/dnsmasq"


def udp_policy(*options, listen=LISTEN, **spec):
    return policy(listen=listen, command=server(*options, listen=listen), **spec)


def answers(sock, count):
    return [sock.recv(2048).decode() for _ in range(count)]


def test_first_datagrams_arrive_all_and_in_order(node, place):
    kind, family = place
    node.start(udp_policy("--wait", "200"))
    sock = node.client(kind).udp(5300, family)

    for number in range(10):
        sock.send(f"question {number}".encode())

    assert answers(sock, 10) == [f"{number} 10 question {number}" for number in range(10)]


def test_datagrams_of_many_clients_arrive(node):
    node.start(udp_policy("--wait", "200"))
    socks = [node.client(kind).udp(5300, family) for kind in node.network.clients for family in (4, 6)]

    for sock in socks:
        sock.send(b"question")

    assert [answer.split()[1:] for sock in socks for answer in answers(sock, 1)] == [["8", "question"]] * len(socks)


@pytest.mark.parametrize("kind", ["loopback", "routed"])
def test_a_segmented_send_arrives_as_the_datagrams_it_stands_for(node, kind):
    node.start(udp_policy("--wait", "200"))
    sock = node.client(kind).udp(5300, options=[(SOL_UDP, UDP_SEGMENT, 1000)])

    sock.send(b"a" * 1000 + b"b" * 1000 + b"c" * 500)

    assert answers(sock, 3) == ["0 1000 " + "a" * 32, "1 1000 " + "b" * 32, "2 500 " + "c" * 32]


@pytest.mark.parametrize("size", [2000, 3000])
def test_a_fragmented_first_datagram_arrives_whole(node, place, size):
    kind, family = place
    node.start(udp_policy("--wait", "200"))
    sock = node.client(kind).udp(5300, family)

    sock.send(b"q" * size)

    assert answers(sock, 1) == [f"0 {size} " + "q" * 32]


@pytest.mark.parametrize("kind", ["loopback", "own"])
def test_a_large_first_datagram_from_this_host_arrives_whole(node, kind):
    node.start(udp_policy("--wait", "200"))
    sock = node.client(kind).udp(5300)

    sock.send(b"q" * 20000)

    assert answers(sock, 1) == ["0 20000 " + "q" * 32]


def test_a_datagram_too_large_to_hold_still_wakes(node):
    node.start(udp_policy())
    sock = node.client("routed").udp(5300)

    sock.send(b"q" * 20000)

    node.control.until_phase("Awake")


def test_a_datagram_past_its_hold_timeout_is_refused_and_not_parked_again(node, place):
    kind, family = place
    node.start(udp_policy("--wait", "600000", wake={"holdTimeout": "1s"}))
    sock = node.client(kind).udp(5300, family)

    for _ in range(2):
        sock.send(b"question")
        with pytest.raises(ConnectionRefusedError):
            sock.recv(100)

    assert node.control.held() == []
    assert node.control.packets("held") == 1


def dnsmasq(port):
    return [DNSMASQ, "--keep-in-foreground", "--conf-file=/dev/null", f"--port={port}", "--no-resolv", "--no-hosts",
            "--user=root", "--group=root", "--pid-file=", "--log-facility=-",
            "--address=/service.example/192.0.2.80", "--address=/service.example/2001:db8::80"]


def test_a_resolver_asking_two_questions_from_one_socket_gets_both_answers(node, tmp_path):
    node.start(policy(listen=["udp/192.0.2.1:53"], command=dnsmasq(53)))
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text("nameserver 192.0.2.1\noptions timeout:10 attempts:1\n", encoding="ascii")
    nsswitch = tmp_path / "nsswitch.conf"
    nsswitch.write_text("hosts: dns\n", encoding="ascii")
    resolve = "import socket; print(sorted({a[4][0] for a in socket.getaddrinfo('service.example', 80)}))"

    answer = node.client("routed").namespace.run(
        "unshare", "--mount", "sh", "-ec", 'mount --bind "$1" /etc/resolv.conf; mount --bind "$2" /etc/nsswitch.conf; '
        'exec /usr/bin/python3 -c "$3"', "sh", resolv_conf, nsswitch, resolve)

    assert answer.stdout.strip() == str(["192.0.2.80", "2001:db8::80"])  # a lost question would have been a time-out


@pytest.mark.parametrize("transport", ["+notcp", "+tcp"])
def test_dig_is_answered_at_its_first_try(node, transport):
    node.start(policy(listen=["udp/0.0.0.0:53", "tcp/0.0.0.0:53"], command=dnsmasq(53)))

    answer = node.client("routed").namespace.run("dig", "@192.0.2.1", "service.example", "A", "+short", "+tries=1",
                                                 "+time=10", transport)

    assert answer.stdout.split() == ["192.0.2.80"]


def test_a_udp_service_goes_back_to_sleep_and_wakes_again(node):
    node.start(udp_policy(idle={"after": "1s"}))
    sock = node.client().udp(5300)
    sock.send(b"first")
    assert answers(sock, 1) == ["0 5 first"]
    node.control.until_phase("Asleep")
    node.control.until(lambda: node.pids("web") == [], 5, "the end of the process")

    sock.send(b"second")

    assert answers(sock, 1) == ["0 6 second"]  # another process: it counts from 0 again
