# SPDX-License-Identifier: Apache-2.0
"""Connections that go silent, and what must not wait for others."""
import json
import pathlib
import sys
import threading
import time

import pytest
from api_server import ApiServer, thing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from machine.namespace import Namespace  # noqa: E402

HALF_OPEN_SECONDS_MAX = 60


class Link:
    """A client and a server, each in a network namespace of its own, and what is between them."""

    client_address, server_address = "192.0.2.1", "192.0.2.2"

    def __init__(self):
        self.client, self.server = Namespace(), Namespace()
        self.client.ip("link add name wire type veth peer name wire2")
        self.client.run("ip", "link", "set", "wire2", "netns", self.server.path)
        self.client.ip(f"addr add {self.client_address}/24 dev wire", "link set wire up")
        self.server.ip(f"addr add {self.server_address}/24 dev wire2", "link set wire2 up")

    def cut(self):
        """Packets vanish, and nobody is told."""
        self.server.run("nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; policy drop; }; "
                        "add chain inet cut out { type filter hook output priority 0; policy drop; }")

    def mend(self):
        self.server.run("nft", "delete table inet cut")

    def close(self):
        self.client.close()
        self.server.close()


@pytest.fixture
def link():
    link = Link()
    yield link
    link.close()


@pytest.fixture
def far_server(authority, link):
    with link.server.entered():
        server = ApiServer(authority, link.server_address)
    yield server
    server.close()


def test_a_half_open_connection_is_noticed_within_a_minute(link, far_server, kubeconfig, watch):
    far_server.script = [lambda exchange: (exchange.initial([thing("a", 3)], 10), exchange.hold()),
                         lambda exchange: (exchange.begin(), exchange.hold())]
    watcher = watch(kubeconfig(url=far_server.url), prefix=link.client.command())
    watcher.until("current")
    began = time.monotonic()
    link.cut()

    watcher.until("stale", seconds=HALF_OPEN_SECONDS_MAX + 5)
    noticed = time.monotonic() - began
    link.mend()
    watcher.until("current", seconds=60)

    assert noticed < HALF_OPEN_SECONDS_MAX
    counters = watcher.counters()
    assert counters["relists"] == 0 and counters["version"] == "10"


def test_a_wake_over_a_half_open_connection_takes_another_one(link, far_server, kubeconfig, watch):
    """The connection is known to work, then a firewall forgets it: what belongs to it is dropped, a new one passes."""
    far_server.script = [lambda exchange: (exchange.initial([], 10), exchange.hold())]
    far_server.other = lambda exchange: exchange.answer(200, {"patched": exchange.method})
    watcher = watch(kubeconfig(url=far_server.url), prefix=link.client.command())
    watcher.until("current")
    assert watcher.ask("patch /scale {}", "answer")["code"] == 200
    sockets = link.client.run("ss", "-tnH", "state", "established", "dst", link.server_address).stdout
    ports = {line.split()[2].rsplit(":", 1)[1] for line in sockets.splitlines()}
    assert len(ports) == 2, "one for the watch, one for small requests"
    link.server.run("nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; "
                    f"add rule inet cut in tcp sport {{ {', '.join(ports)} }} drop")

    answer = watcher.ask("patch /scale {}", "answer")

    assert answer["code"] == 200 and 3 <= answer["seconds"] < 5
    assert watcher.ask("client")["retries"] == 1


def test_a_wake_does_not_wait_behind_a_list(server, watch):
    """A list that never gets on, over HTTP/1.1: nothing small may need its connection or its place in line."""
    listing = threading.Event()

    def stuck(exchange):
        exchange.begin()
        exchange.chunk(b'{"metadata": {"resourceVersion": "1"}, "items": [' + json.dumps(thing("a", 1)).encode())
        listing.set()
        exchange.hold()
    server.script = [lambda exchange: exchange.refuse(422), stuck]
    server.other = lambda exchange: exchange.answer(200, {"type": exchange.headers["content-type"], "body": json.loads(exchange.body)})
    watcher = watch()
    assert listing.wait(30)

    answer = watcher.ask('patch /apis/apps/v1/namespaces/default/deployments/web/scale {"spec":{"replicas":1}}', "answer")

    assert answer["body"] == {"type": "application/merge-patch+json", "body": {"spec": {"replicas": 1}}}
    assert answer["seconds"] < 1
    assert not watcher.counters()["synced"]


def test_a_plain_request_is_repeated_as_the_server_asks(server, watch):
    answers = [lambda exchange: exchange.refuse(429, retry_after=1), lambda exchange: exchange.refuse(503, retry_after=1),
               lambda exchange: exchange.answer(200, {"done": True})]
    server.script = [lambda exchange: (exchange.initial([], 1), exchange.hold())]
    server.other = lambda exchange: answers.pop(0)(exchange)
    watcher = watch()

    answer = watcher.ask("get /api/v1/nodes/n1", "answer")

    assert answer["body"] == {"done": True} and 2 <= answer["seconds"] < 4
    assert watcher.ask("client")["retries"] == 2


def test_a_refusal_without_retry_after_is_reported_at_once(server, watch):
    server.script = [lambda exchange: (exchange.initial([], 1), exchange.hold())]
    server.other = lambda exchange: exchange.refuse(409, "Conflict", message="the object has been modified")
    watcher = watch()
    watcher.until("current")

    answer = watcher.ask("patch /scale {}", "answer")

    assert (answer["code"], answer["message"]) == (409, "the object has been modified")
    requests = watcher.ask("client")["requests"]
    assert {("patch", 409, 1), ("watch", 200, 1)} == {(row["verb"], row["code"], row["requests"]) for row in requests}
