# SPDX-License-Identifier: Apache-2.0
"""The same promises against servers of other makes: Python's http.server, Go's net/http, gRPC, WebSocket."""
import asyncio
import os
import pathlib
import ssl
import subprocess
import sys
import threading
import urllib.request

import grpc
import pytest
import websockets

from clients import Http1, Http2, tls_context
from machine import Workload

SERVERS = pathlib.Path(__file__).parent / "servers"
ROOT = pathlib.Path(__file__).resolve().parents[2]

CGI = """#!/usr/bin/python3
import urllib.request
urllib.request.urlopen("http://127.0.0.1:9000/slow").read()
print("Content-Type: text/plain")
print()
print("ok")
"""


def run_slowly(request, backend, workload, seconds=2, after=lambda: None):
    slow = threading.Thread(target=request)
    slow.start()
    assert backend.asked.wait(20)
    workload.assert_open_for(seconds)
    backend.released.set()
    slow.join()
    after()
    workload.await_answered()


# ---- Python's http.server: HTTP/1.0, one answer a connection


@pytest.fixture(scope="module")
def http_server(machine, watch_tool, the_backend):
    workload = Workload(machine, "http-server", watch_tool, [8500])
    (workload.directory / "cgi-bin").mkdir()
    (workload.directory / "cgi-bin/slow").write_text(CGI)
    (workload.directory / "cgi-bin/slow").chmod(0o755)
    workload.start([sys.executable, "-m", "http.server", "--cgi", "8500"])
    yield workload
    workload.close()


def test_http_server_is_idle_after_its_answer(http_server):
    assert urllib.request.urlopen("http://localhost:8500/").status == 200
    http_server.await_answered()


def test_http_server_is_busy_while_its_program_runs(http_server, backend):
    run_slowly(lambda: urllib.request.urlopen("http://localhost:8500/cgi-bin/slow").read(), backend, http_server)


def test_a_connection_that_says_nothing_is_not_busy(http_server):
    before = http_server.read()["last"]
    with Http1(8500).connection.sock:
        http_server.assert_no_request_for(0.3)
        assert http_server.read()["connections"] == 1
        assert http_server.read()["last"] == before


# ---- Go's net/http: a single session ticket, SETTINGS after the request

GO_CLIENTS = {
    "http/1.1": lambda: Http1(8800),
    "http/1.1 over TLS": lambda: Http1(8801, tls_context()),
    "h2 over TLS 1.2": lambda: Http2(8801, tls_context(ssl.TLSVersion.TLSv1_2, ("h2",))),
    "h2 over TLS 1.3": lambda: Http2(8801, tls_context(ssl.TLSVersion.TLSv1_3, ("h2",))),
}


@pytest.fixture(scope="module")
def go_server(machine, watch_tool, certificate, the_backend):
    program = watch_tool.parent / "go-server"
    if not program.exists():
        environment = dict(os.environ, GO111MODULE="off", HOME=str(machine.directory))
        subprocess.run(["go", "build", "-o", program, SERVERS / "main.go"], check=True, env=environment)
    workload = Workload(machine, "go", watch_tool, [8800, 8801])
    workload.start([program, *certificate])
    yield workload
    workload.close()


@pytest.mark.parametrize("dress", GO_CLIENTS)
def test_go_is_busy_until_its_answer_and_idle_after(go_server, backend, dress):
    for requests_before in (0, 2):
        backend.reset()
        client = GO_CLIENTS[dress]()
        for _ in range(requests_before):
            client.request("/fast")
        run_slowly(lambda: client.request("/slow"), backend, go_server)
        go_server.assert_no_request_for(0.3)
        client.close()


@pytest.mark.parametrize("dress", [dress for dress in GO_CLIENTS if dress.startswith("h2")])
def test_pings_are_no_activity_for_go(go_server, dress):
    client = GO_CLIENTS[dress]()
    client.request("/fast")
    go_server.await_answered()
    before = go_server.read()["last"]
    for _ in range(5):
        client.ping()
    go_server.await_answered()
    assert go_server.read()["last"] == before
    client.close()


# ---- gRPC

KEEPALIVE = [("grpc.keepalive_time_ms", 100), ("grpc.keepalive_permit_without_calls", 1), ("grpc.http2.max_pings_without_data", 0),
             ("grpc.use_local_subchannel_pool", 1)]
# Over TLS, frames that share a record cannot be told from a request: without the client's bandwidth probes there are none.
NO_PROBES = [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1)]


@pytest.fixture(scope="module")
def grpc_server(machine, watch_tool, certificate, the_backend):
    workload = Workload(machine, "grpc", watch_tool, [8600, 8601])
    workload.start([sys.executable, SERVERS / "grpc_server.py", *certificate])
    yield workload
    workload.close()


@pytest.fixture(params=["plaintext", "TLS"])
def channel(request, grpc_server, certificate):
    if request.param == "plaintext":
        channel = grpc.insecure_channel("localhost:8600", options=KEEPALIVE)
    else:
        credentials = grpc.ssl_channel_credentials(certificate[0].read_bytes())
        channel = grpc.secure_channel("localhost:8601", credentials, options=NO_PROBES)
    yield channel
    channel.close()


@pytest.mark.parametrize("channel", ["plaintext"], indirect=True)
def test_grpc_is_idle_after_its_answer_whatever_keepalives_say(grpc_server, channel):
    for _ in range(3):
        assert channel.unary_unary("/t/fast")(b"x") == b"ok"
    grpc_server.await_answered()
    grpc_server.assert_no_request_for(1)
    assert grpc_server.read()["connections"] == 1


# Its client puts control frames into one record as its threads happen to run. That is taken for a request, in doubt, until the
# connection ends.
@pytest.mark.parametrize("channel", ["TLS"], indirect=True)
def test_grpc_over_tls_leaves_nothing_open_behind_its_connection(grpc_server, channel):
    for _ in range(3):
        assert channel.unary_unary("/t/fast")(b"x") == b"ok"
    channel.close()
    grpc_server.await_answered()


@pytest.mark.parametrize("channel", ["plaintext"], indirect=True)
@pytest.mark.parametrize("calls_before", [0, 2])
def test_grpc_is_busy_until_its_answer(grpc_server, channel, backend, calls_before):
    for _ in range(calls_before):
        channel.unary_unary("/t/fast")(b"x")
    run_slowly(lambda: channel.unary_unary("/t/slow")(b"x"), backend, grpc_server)


@pytest.mark.parametrize("channel", ["TLS"], indirect=True)
@pytest.mark.parametrize("calls_before", [0, 2])
def test_grpc_over_tls_is_busy_until_its_answer_at_least(grpc_server, channel, backend, calls_before):
    for _ in range(calls_before):
        channel.unary_unary("/t/fast")(b"x")
    run_slowly(lambda: channel.unary_unary("/t/slow")(b"x"), backend, grpc_server, after=channel.close)


def test_a_silent_grpc_stream_is_not_busy(grpc_server):
    channel = grpc.insecure_channel("localhost:8600", options=KEEPALIVE)
    stream = channel.unary_stream("/t/watch")(b"x")
    assert next(stream) == b"hello"
    grpc_server.await_answered()
    grpc_server.assert_no_request_for(0.5)
    stream.cancel()
    channel.close()


# ---- WebSocket


@pytest.fixture(scope="module")
def websocket_server(machine, watch_tool, certificate, the_backend):
    workload = Workload(machine, "websocket", watch_tool, [8700, 8701])
    workload.start([sys.executable, SERVERS / "websocket_server.py", *certificate])
    yield workload
    workload.close()


def in_websocket(url, conversation):
    async def converse():
        options = {"ssl": tls_context()} if url.startswith("wss") else {}
        async with websockets.connect(url, ping_interval=None, **options) as socket:
            await conversation(socket)

    asyncio.run(converse())


async def ask(socket, message):
    await socket.send(message)
    assert await socket.recv() == "answer to " + message


@pytest.mark.parametrize("url", ["ws://localhost:8700", "wss://localhost:8701"])
def test_a_websocket_message_is_activity_and_its_silence_is_not(websocket_server, url):
    async def conversation(socket):
        await ask(socket, "hi")
        await asyncio.to_thread(websocket_server.await_answered)
        before = websocket_server.read()["last"]
        await asyncio.sleep(1)  # the server of ws:// pings all the while
        assert websocket_server.read()["last"] == before
        assert websocket_server.read()["open"] == 0
        await ask(socket, "hi")
        assert websocket_server.read()["last"] > before

    in_websocket(url, conversation)


@pytest.mark.parametrize("url", ["ws://localhost:8700", "wss://localhost:8701"])
def test_a_slow_websocket_answer_is_an_open_request(websocket_server, backend, url):
    async def conversation(socket):
        await ask(socket, "hi")
        slow = asyncio.create_task(ask(socket, "slow"))
        assert await asyncio.to_thread(backend.asked.wait, 20)
        for _ in range(20):
            await asyncio.sleep(0.05)
            assert websocket_server.read()["open"] == 1
        backend.released.set()
        await slow
        await asyncio.to_thread(websocket_server.await_answered)

    in_websocket(url, conversation)
