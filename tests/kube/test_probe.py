# SPDX-License-Identifier: Apache-2.0
"""Readiness probes, run as the kubelet runs them, only more often."""
import os
import pathlib
import socket
import time

import pytest
from h2_server import H2Server
from probed import OK, UNAVAILABLE, App, Prober, free_port, redirect

TOOL = (pathlib.Path(__file__).resolve().parents[2] / os.environ.get("BUILD", "build") / "tests/kube/probe").resolve()
MANY = 200


@pytest.fixture
def app():
    apps = []

    def make(*answers, **settings):
        apps.append(App(*answers, **settings))
        return apps[-1]
    yield make
    for made in apps:
        made.close()


@pytest.fixture
def probe():
    """Starts probers, and ends them in good order: with a status of 0, so that a sanitizer's findings fail the test."""
    started = []

    def start(target=None, **settings):
        if target:
            settings = {"address": target.address, "port": target.port, **settings}
        started.append(Prober(TOOL, **{"type": "http", "address": "127.0.0.1", "timeout": 20, **settings}))
        return started[-1]
    yield start
    try:
        for prober in started:
            assert prober.close() == 0
    finally:
        for prober in started:
            prober.kill()


@pytest.mark.parametrize("status", [200, 204, 304, 399])
def test_statuses_from_200_to_399_pass(app, probe, status):
    target = app(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())

    assert probe(target).next()["attempts"] == 1


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_other_statuses_fail_until_they_are_no_more(app, probe, status):
    target = app(*[f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()] * 3, OK)

    passed = probe(target).next()

    assert passed["attempts"] == 4 and passed["problem"] == f"HTTP status {status}"


def test_the_application_is_asked_as_the_kubelet_asks_it(app, probe):
    target = app(OK)
    probe(target, path="/healthz?full=1").next()

    head = target.requests[0]

    assert head.startswith("GET /healthz?full=1 HTTP/1.1\r\n")
    lines = head.split("\r\n")[1:-2]
    fields = dict(line.split(": ", 1) for line in lines)
    assert fields.pop("User-Agent").startswith("kube-probe/1.")
    assert fields == {"Host": f"127.0.0.1:{target.port}", "Accept": "*/*", "Connection": "close"}


def test_the_pods_own_headers_replace_and_remove(app, probe):
    target = app(OK)
    probe(target, host="web.example", headers=["X-Token: a b", "X-Empty:", "User-Agent: mine", "Accept:"]).next()

    lines = target.requests[0].split("\r\n")[1:-2]

    assert sorted(lines) == ["Connection: close", "Host: web.example", "User-Agent: mine", "X-Empty:", "X-Token: a b"]


@pytest.mark.parametrize("path, asked", [("healthz", "/healthz"), ("/a/../b", "/a/../b"), ("/a b", "/a%20b"), ("", "/")])
def test_a_path_is_asked_for_as_it_is_written(app, probe, path, asked):
    target = app(OK)
    probe(target, path=path).next()

    assert target.requests[0].startswith(f"GET {asked} HTTP/1.1\r\n")


@pytest.mark.parametrize("settings", [{"headers": ["X-Token: a\r\nX-Other: b"]}, {"headers": ["X-Token"]}, {"path": "/a\nb"}])
def test_what_cannot_be_sent_is_refused(probe, settings):
    assert probe(port=1, **settings).next("refused")["problem"] == "Invalid argument"


def test_no_proxy_of_the_environment_is_used(app, probe, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{free_port()}")

    assert probe(app(OK)).next()["attempts"] == 1


def test_every_attempt_has_a_connection_of_its_own(app, probe):
    target = app(UNAVAILABLE, UNAVAILABLE, OK)
    probe(target).next()

    assert len(target.connection_times(3)) == 3
    assert [target.ends.get(timeout=10) for _ in range(3)] == ["end"] * 3


def test_redirects_to_the_same_host_are_followed(app, probe):
    other = app(UNAVAILABLE, OK)
    target = app(redirect("/login"), redirect(f"http://127.0.0.1:{other.port}/there"))

    passed = probe(target).next()

    assert [head.split()[1] for head in target.requests] == ["/", "/login", "/"]
    assert [head.split()[1] for head in other.requests] == ["/there", "/there"]
    assert passed["attempts"] == 2 and passed["problem"] == "HTTP status 503"


def test_a_redirect_to_another_host_passes_and_is_not_followed(app, probe):
    other = app(UNAVAILABLE, address="127.0.0.2")

    assert probe(app(redirect(f"http://127.0.0.2:{other.port}/"))).next()["attempts"] == 1
    assert not other.times


def test_redirects_without_end_fail(app, probe):
    target = app(*[redirect("/again")] * 10, OK)

    passed = probe(target).next()

    assert passed["attempts"] == 2 and "redirect" in passed["problem"] and len(target.times) == 11


def test_all_requests_of_an_attempt_share_its_timeout(app, probe):
    def slow_redirect(connection):
        time.sleep(0.4)
        connection.sendall(redirect("/again"))

    def slow(connection):
        time.sleep(0.4)
        connection.sendall(OK)
    passed = probe(app(slow_redirect, slow, OK), timeout=0.6).next()

    assert passed["attempts"] == 2 and "timed out" in passed["problem"]


def test_no_more_of_the_body_is_read_than_10_kib(app, probe):
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 4096)

    assert probe(app(endless), timeout=10).next()["seconds"] < 5


def test_an_answer_that_does_not_end_fails_at_the_timeout(app, probe):
    def unfinished(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal")
        connection.recv(1)

    passed = probe(app(unfinished, OK), timeout=0.5).next()

    assert passed["attempts"] == 2 and passed["seconds"] >= 0.5 and "timed out" in passed["problem"]


@pytest.mark.parametrize("kind", ["http", "tcp"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_opens_passes_at_the_next_attempt(app, probe, kind, address):
    port = free_port(address)
    prober = probe(type=kind, address=address, port=port)
    state = prober.until_attempts(3)
    assert "refused" in state["problem"].lower()

    opened = time.monotonic()
    target = app(OK, address=address, port=port)
    prober.next()

    assert target.connection_times(1)[0] - opened < 0.5  # 25 ms and what a busy machine adds


def test_a_server_that_never_answers_is_bounded_by_the_timeout(app, probe):
    target = app(lambda connection: connection.recv(1))
    prober = probe(target, timeout=0.3)

    state = prober.until_attempts(4)

    assert "timed out" in state["problem"]
    times = target.connection_times(4)
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    assert min(gaps) < 0.6 and times[3] - times[0] >= 0.85


@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_a_lost_first_packet_costs_less_than_its_retransmission(probe, kind):
    """A listener whose queue is full drops SYNs, once it is empty it takes the next attempt's."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        filling = []
        while True:
            filling.append(socket.socket())
            filling[-1].settimeout(0.3)
            if filling[-1].connect_ex(listener.getsockname()) != 0:
                filling.pop().close()
                break
        prober = probe(type=kind, port=listener.getsockname()[1], timeout=10)
        state = prober.until_attempts(3)
        assert state["problem"] == "no connection in time"

        emptied = time.monotonic()
        listener.settimeout(20)
        taken = [listener.accept()[0] for _ in filling]
        if kind == "http":
            while not (connection := listener.accept()[0]).recv(65536):
                connection.close()
            connection.sendall(OK)
            taken.append(connection)
        prober.next()

        assert time.monotonic() - emptied < 0.9
        for connection in [*filling, *taken]:
            connection.close()


def test_attempts_come_every_25_ms(app, probe):
    target = app(UNAVAILABLE)
    probe(target)

    times = target.connection_times(41)

    assert 0.95 < times[40] - times[0] < 3


def test_attempts_that_take_longer_follow_each_other_at_once(app, probe):
    def slow(connection):
        time.sleep(0.03)
        connection.sendall(UNAVAILABLE)
    target = app(slow)
    probe(target)

    times = target.connection_times(41)

    assert 1.1 < times[40] - times[0] < 1.9  # with 25 ms in between it would be 2.2 s


def test_successes_count_only_in_a_row(app, probe):
    target = app(OK, OK, UNAVAILABLE, OK, OK, OK)

    assert probe(target, threshold=3).next()["attempts"] == 6


@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_nothing_is_asked_before_the_initial_delay(app, probe, kind):
    target = app(OK)

    assert 0.4 <= probe(target, type=kind, delay=0.4).next()["seconds"] < 2
    assert len(target.connection_times(1)) == 1


def test_a_tcp_probe_connects_and_closes_at_once(app, probe):
    target = app(OK)

    assert probe(target, type="tcp").next()["attempts"] == 1
    assert target.ends.get(timeout=10) == "end" and not target.requests


def test_nothing_of_https_is_verified(app, probe, authority):
    target = app(UNAVAILABLE, OK, certificate=authority.issue("somebody", host="else.example"))

    assert probe(target, tls=True).next()["attempts"] == 2


def test_https_asks_in_http_2_where_the_server_speaks_it(probe, authority):
    server = H2Server(authority)
    seen = []
    server.other = lambda stream: (seen.append(stream), stream.answer(200, {}))

    assert probe(address=server.address, port=int(server.url.rsplit(":", 1)[1]), tls=True, headers=["X-Token: a"]).next()["attempts"] == 1
    assert seen[0].headers["x-token"] == "a" and seen[0].headers["user-agent"].startswith("kube-probe/")
    server.close()


def test_http_asked_of_https_fails(app, probe, authority):
    target = app(OK, certificate=authority.issue("web", address="127.0.0.1"))

    assert probe(target).until_attempts(2)["problem"]


@pytest.mark.parametrize("kind", ["http", "tcp"])
def test_hundreds_of_probes_share_a_bounded_rate(app, probe, kind):
    port = free_port()
    prober = probe(type=kind, port=port, count=MANY)
    began = time.monotonic()
    attempts = prober.until_attempts(3)["attempts"]
    rate = (attempts - 1) * MANY / (time.monotonic() - began)
    assert rate < 1500  # each has its turn every 200 ms

    app(OK, port=port, backlog=512)

    for _ in range(MANY):
        prober.next()
