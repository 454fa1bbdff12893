# SPDX-License-Identifier: Apache-2.0
"""The client and a server that speaks HTTP/2."""
import time

import pytest
from api_server import thing
from h2_server import H2Server


@pytest.fixture
def server(authority):
    server = H2Server(authority)
    yield server
    server.close()


def test_small_requests_share_a_connection_that_is_not_the_watches(server, watch):
    server.script = [lambda stream: stream.initial(10)]
    watcher = watch()
    watcher.until("current")
    for _ in range(10):
        watcher.process.stdin.write("get /api/v1/nodes/n1\n")
    watcher.process.stdin.flush()
    for _ in range(10):
        assert watcher.until("answer")["body"] == {"done": True}

    assert [len(connection.streams) for connection in server.connections] == [1, 10]


def test_a_wake_is_answered_while_a_list_fills_its_connection(server, watch):
    """Nearly 15 MB of an object that does not end are on their way or read; then something is to be woken."""
    def flood(stream):
        stream.begin()
        stream.data(b'{"type": "ADDED", "object": {"text": "')
    server.script = [flood]
    watcher = watch()
    stream = server.await_requests(1)
    assert watcher.ask("patch /scale {}", "answer")["code"] == 200
    for _ in range(900):
        while stream.connection.state.local_flow_control_window(stream.number) < 16384:
            time.sleep(0.001)
        stream.data(b"x" * 16384)

    answer = watcher.ask("patch /scale {}", "answer")

    assert answer["code"] == 200 and answer["seconds"] < 1


@pytest.mark.parametrize("end", ["reset", "close"])
def test_a_watch_that_loses_its_stream_is_resumed(server, watch, end):
    server.script = [lambda stream: stream.initial(10), lambda stream: (stream.begin(), stream.event("ADDED", thing("a", 11)))]
    watcher = watch()
    watcher.until("current")
    first = server.requests[0]

    if end == "reset":
        first.reset()
    else:
        first.connection.close()
    watcher.until("added", key="default/a")

    assert "resourceVersion=10" in server.requests[1].target and "sendInitialEvents" not in server.requests[1].target
    assert watcher.counters()["relists"] == 0


def test_an_answer_may_come_before_the_request_was_sent(server, watch):
    """The server answers as soon as it has the headers; whether the client still sends then is chance."""
    server.script = [lambda stream: stream.initial(10)]
    watcher = watch()
    watcher.until("current")

    for _ in range(30):
        answer = watcher.ask("patch /scale {}", "answer")
        assert answer["code"] == 200 and answer["seconds"] < 2
        server.connections[-1].close()


def test_a_connection_that_is_sent_away_is_not_used_again(server, watch):
    server.script = [lambda stream: stream.initial(10)]
    watcher = watch()
    watcher.until("current")
    assert watcher.ask("patch /scale {}", "answer")["code"] == 200
    server.connections[1].goaway()

    answer = watcher.ask("patch /scale {}", "answer")

    assert answer["code"] == 200 and answer["seconds"] < 1
    assert [len(connection.streams) for connection in server.connections] == [1, 1, 1]


def test_a_small_request_survives_a_connection_that_was_closed_while_idle(server, watch):
    server.script = [lambda stream: stream.initial(10)]
    watcher = watch()
    watcher.until("current")
    assert watcher.ask("patch /scale {}", "answer")["code"] == 200
    server.connections[1].close()

    answer = watcher.ask("patch /scale {}", "answer")

    assert answer["code"] == 200 and answer["seconds"] < 1
