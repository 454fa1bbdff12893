# SPDX-License-Identifier: Apache-2.0
"""What the reflector makes of a server's answers."""
import threading
import time

from api_server import ApiServer, thing


def idle_watch(exchange):
    exchange.begin()
    exchange.hold()


def test_a_view_begins_with_a_watch_list_and_follows_its_events(server, watch):
    def serve(exchange):
        exchange.initial([thing("a", 3), thing("b", 9)], 10)
        exchange.event("MODIFIED", thing("a", 11))
        exchange.event("DELETED", thing("b", 12))
        exchange.event("ADDED", thing("c", 13))
        exchange.hold()
    server.script = [serve]
    watcher = watch()

    watcher.until("added", key="default/c")

    assert watcher.view() == {"default/a": "11", "default/c": "13"}
    first = server.requests[0]
    assert first.query["sendInitialEvents"] == "true" and first.query["resourceVersionMatch"] == "NotOlderThan"
    assert first.query["allowWatchBookmarks"] == "true" and 300 <= int(first.query["timeoutSeconds"]) <= 600
    assert "resourceVersion" not in first.query
    assert first.headers["user-agent"].startswith("lull/") and first.headers["authorization"] == "Bearer a-token"
    assert watcher.said("synced")[0]["count"] == 2


def test_a_server_without_watch_lists_is_listed(server, watch):
    server.script = [lambda exchange: exchange.refuse(422, "Invalid"), lambda exchange: exchange.list([thing("a", 3)], 10), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert server.requests[1].query == {"limit": "500", "resourceVersion": "0"}
    assert server.requests[2].query["resourceVersion"] == "10"
    assert watcher.view() == {"default/a": "3"}


def test_pages_are_put_together(server, watch):
    server.script = [lambda exchange: exchange.refuse(422, "Invalid"), lambda exchange: exchange.list([thing("a", 3)], 10, "next&="),
                     lambda exchange: exchange.list([thing("b", 4)], 10), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert server.requests[2].query == {"limit": "500", "continue": "next&="}
    assert watcher.view() == {"default/a": "3", "default/b": "4"}


def test_an_expired_page_leads_to_a_whole_list(server, watch):
    server.script = [lambda exchange: exchange.refuse(422, "Invalid"), lambda exchange: exchange.list([thing("a", 3)], 10, "next"),
                     lambda exchange: exchange.refuse(410, "Expired"), lambda exchange: exchange.list([thing("b", 4)], 11), idle_watch]
    watcher = watch()

    watcher.until("current")

    assert server.requests[3].query == {"resourceVersion": "0"}
    assert watcher.view() == {"default/b": "4"}


def test_a_watch_that_ends_is_resumed_without_a_list(server, watch):
    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        exchange.bookmark(20)
        exchange.end()
    server.script = [first, idle_watch]
    watcher = watch()

    server.await_requests(2)
    watcher.until("current")

    assert server.requests[1].query["resourceVersion"] == "20"
    assert "sendInitialEvents" not in server.requests[1].query
    assert watcher.counters()["relists"] == 0


def test_the_version_of_initial_events_is_not_resumed_from(server, watch):
    def first(exchange):
        exchange.begin()
        exchange.event("ADDED", thing("a", 33))
        exchange.cut()
    server.script = [first, lambda exchange: (exchange.initial([thing("a", 33)], 34), exchange.hold())]
    watcher = watch()

    watcher.until("synced")

    assert "resourceVersion" not in server.requests[1].query


def test_a_gone_version_is_listed_at_that_version_and_then_at_any(server, watch):
    def first(exchange):
        exchange.initial([thing("a", 3), thing("b", 3)], 10)
        exchange.error(410, "Expired")
        exchange.end()
    server.script = [first, lambda exchange: exchange.refuse(410, "Expired"),
                     lambda exchange: (exchange.initial([thing("a", 3), thing("c", 19)], 20), exchange.hold())]
    watcher = watch()

    watcher.until("synced", version="10")
    watcher.until("synced", version="20")

    assert server.requests[1].query["resourceVersion"] == "10"
    assert "resourceVersion" not in server.requests[2].query
    assert watcher.view() == {"default/a": "3", "default/c": "19"}
    assert not watcher.said("modified"), "what did not change is not reported"
    assert [line["key"] for line in watcher.said("deleted")] == ["default/b"]


def test_an_incomplete_list_changes_nothing(server, watch):
    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        exchange.error(410, "Gone")
        exchange.end()

    def second(exchange):
        exchange.begin()
        exchange.event("ADDED", thing("z", 11))
        exchange.cut()
    server.script = [first, second, lambda exchange: exchange.hold()]
    watcher = watch()

    server.await_requests(3)

    assert watcher.view() == {"default/a": "3"}


def test_retry_after_is_obeyed_and_nothing_listed_again(server, watch):
    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        exchange.end()
    server.script = [first, lambda exchange: exchange.refuse(429, "TooManyRequests", retry_after=2),
                     lambda exchange: exchange.refuse(503, retry_after=1), idle_watch]
    watcher = watch()

    server.await_requests(4)
    watcher.until("current")

    waits = [after.at - before.at for before, after in zip(server.requests[1:], server.requests[2:])]
    assert 2 <= waits[0] < 3.5 and 1 <= waits[1] < 2.5
    assert all(request.query["resourceVersion"] == "10" for request in server.requests[1:])
    assert watcher.counters()["relists"] == 0


def test_a_reset_connection_is_backed_off_from_and_resumed(server, watch):
    read = threading.Event()

    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        read.wait()
        exchange.reset()
    server.script = [first, lambda exchange: exchange.reset(), idle_watch]
    watcher = watch()
    watcher.until("current")
    began = time.monotonic()
    read.set()

    last = server.await_requests(3)

    assert server.requests[1].at - began >= 0.8 and last.at - server.requests[1].at >= 1.6
    assert last.query["resourceVersion"] == "10"
    assert watcher.counters()["relists"] == 0


def test_nobody_waits_on_once_the_server_has_answered_anything(authority, server, kubeconfig, watch):
    """A minute's outage must not be followed by another until the view is current."""
    server.close()
    watcher = watch(kubeconfig())
    while watcher.counters()["failures"] < 3:
        time.sleep(0.1)
    again = ApiServer(authority, port=server.port)  # the next try is 3.2 s away or more
    try:
        again.script = [lambda exchange: (exchange.initial([thing("a", 3)], 10), exchange.hold())]
        watcher.ask("get /api/v1/nodes/n1", "answer")
        answered = time.monotonic()

        watcher.until("current")

        assert time.monotonic() - answered < 2
    finally:
        again.close()


def test_short_empty_watches_are_backed_off_from(server, watch):
    def first(exchange):
        exchange.initial([], 10)
        exchange.end()

    def empty(exchange):
        exchange.begin()
        exchange.end()
    server.script = [first, empty, empty, idle_watch]
    watch()

    server.await_requests(4)

    waits = [after.at - before.at for before, after in zip(server.requests[1:], server.requests[2:])]
    assert waits[0] >= 0.8 and waits[1] >= 1.6


def test_an_object_that_cannot_be_read_is_counted_and_left_out(server, watch):
    server.script = [lambda exchange: (exchange.initial([thing("a", 3, unreadable=True), thing("b", 4)], 10), exchange.hold())]
    watcher = watch()

    watcher.until("current")

    assert watcher.view() == {"default/b": "4"}
    assert watcher.counters()["unreadable"] == 1
