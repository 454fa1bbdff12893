# SPDX-License-Identifier: Apache-2.0
"""Answers that are slow, cut off, garbage, compressed or huge."""
import gzip
import json
import os
import time

import pytest
from api_server import thing


def serve_list(data, headers=()):
    """A list whose answer is these chunks."""
    def step(exchange):
        exchange.begin(200, headers)
        for piece in data:
            exchange.chunk(piece)
        exchange.end()
    return step


def idle_watch(exchange):
    exchange.begin()
    exchange.hold()


def no_watch_list(exchange):
    exchange.refuse(422, "Invalid")


def listed(items, version=10):
    return json.dumps({"kind": "ThingList", "metadata": {"resourceVersion": str(version)}, "items": items}).encode()


def test_bytes_may_come_one_by_one(server, watch):
    data = listed([thing("a", 3, text='}{][\\"'), thing("b", 4)])
    server.script = [no_watch_list, serve_list([data[i:i + 1] for i in range(len(data))]), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert watcher.view() == {"default/a": "3", "default/b": "4"}


def test_a_compressed_answer_is_read(server, watch):
    items = [thing(f"thing-{i}", i + 1) for i in range(2000)]
    server.script = [no_watch_list, serve_list([gzip.compress(listed(items))], [("Content-Encoding", "gzip")]), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert len(watcher.view()) == 2000
    assert "gzip" in server.requests[0].headers["accept-encoding"]


@pytest.mark.parametrize("broken", [
    b"<html>not what you asked for</html>", b"\x00\xff\xfe", b"[]", b"{}", b'{"metadata": {"resourceVersion": "1"}}',
    b'{"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "x", "resourceVersion": "1"}} {}]}',
    b'{"metadata": {"resourceVersion": "1"}, "items": [{}]}', b'{"metadata": {"resourceVersion": "1"}, "items": [{"a": "\xff"}]}',
    b'{"metadata": {"resourceVersion": "1"}, "items": [',
])
def test_garbage_instead_of_a_list_is_survived(server, watch, broken):
    server.script = [no_watch_list, serve_list([broken]), serve_list([listed([thing("a", 3)])]), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert watcher.view() == {"default/a": "3"}
    assert watcher.counters()["failures"] == 2


@pytest.mark.parametrize("broken", [
    b"garbage\n", b"[]\n", b'{"type": "ADDED"}\n', b'{"type": "NEWS", "object": {}}\n', b'{"type": "ADDED", "object": {"metadata": {}}}\n',
    b'{"type": "ADDED", "object": {"metadata": {"name": "\xc3("}}}\n', b"}" * 10, b'{"type": "ADDED", "obj',
])
def test_garbage_in_a_watch_is_survived(server, watch, broken):
    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        exchange.chunk(broken)
        exchange.end()

    def second(exchange):
        exchange.begin()
        exchange.event("ADDED", thing("b", 12))
        exchange.hold()
    server.script = [first, second]
    watcher = watch()

    watcher.until("added", key="default/b")

    assert server.requests[1].query["resourceVersion"] == "10"
    assert watcher.counters()["relists"] == 0


def test_a_truncated_answer_is_not_a_complete_one(server, watch):
    data = listed([thing("a", 3)])

    def truncated(exchange):
        exchange.begin()
        exchange.chunk(data)
        exchange.cut()
    server.script = [no_watch_list, truncated, serve_list([listed([thing("b", 4)])]), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert watcher.view() == {"default/b": "4"}


def test_a_huge_object_is_read(server, watch):
    server.script = [lambda exchange: (exchange.initial([thing("a", 3, text="x" * 1_500_000)], 10), exchange.hold())]
    watcher = watch()

    watcher.until("current")

    assert watcher.view() == {"default/a": "3"}


def test_memory_is_that_of_an_object_and_not_of_the_answer(server, watch):
    """80 MB of list, of which the watcher keeps names."""
    item = [json.dumps(thing(f"thing-{i}", i + 1, text="x" * 20_000)).encode() for i in range(4000)]
    pieces = [b'{"metadata": {"resourceVersion": "5000"}, "items": [', *(one + b"," for one in item[:-1]), item[-1] + b"]}"]
    server.script = [no_watch_list, serve_list(pieces), idle_watch]
    watcher = watch(environment={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"})

    watcher.until("current", seconds=120)
    status = dict(line.split(":", 1) for line in open(f"/proc/{watcher.process.pid}/status", encoding="ascii") if ":" in line)

    assert len(watcher.view()) == 4000
    assert int(status["VmHWM"].split()[0]) < 40_000


def test_a_slow_drip_is_followed(server, watch):
    def drip(exchange):
        exchange.initial([], 10)
        for byte in json.dumps({"type": "ADDED", "object": thing("a", 11)}).encode():
            exchange.chunk(bytes([byte]))
            time.sleep(0.01)
        exchange.hold()
    server.script = [drip]
    watcher = watch()

    watcher.until("added", key="default/a")

    assert watcher.counters()["failures"] == 0


def test_a_watch_list_that_says_nothing_more_is_given_up(server, watch):
    """As of a server that knows watches but no initial events, on a quiet collection."""
    def silent(exchange):
        exchange.begin()
        exchange.event("ADDED", thing("a", 3))
        exchange.hold()
    server.script = [silent, lambda exchange: (exchange.initial([thing("a", 3)], 10), exchange.hold())]
    watcher = watch()

    first, second = server.await_requests(1), server.await_requests(2, seconds=45)
    watcher.until("current")

    assert 30 <= second.at - first.at < 40
    assert "resourceVersion" not in second.query


def test_a_server_that_sends_only_common_bookmarks_is_listed_in_the_end(server, watch):
    def old(exchange):
        exchange.begin()
        exchange.event("ADDED", thing("a", 3))
        exchange.bookmark(5)
        exchange.bookmark(6)
        exchange.hold()
    server.script = [old, old, old, serve_list([listed([thing("a", 3)])]), idle_watch]
    watcher = watch()

    watcher.until("current", seconds=60)

    assert server.requests[3].query["limit"] == "500"
