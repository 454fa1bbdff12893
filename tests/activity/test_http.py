# SPDX-License-Identifier: Apache-2.0
"""HTTP in all its dresses against nginx: what is an unanswered request, and what is not."""
import ssl
import subprocess
import threading

import h2.events
import pytest

from clients import Http1, Http2, tls_context
from machine import Workload

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

NGINX = """
daemon off; error_log stderr; pid nginx.pid; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_timeout 600; proxy_buffering off;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  ssl_certificate {certificate}; ssl_certificate_key {key};
  server {{ listen 8080; location / {{ proxy_pass http://127.0.0.1:9000; }} }}
  server {{ listen 8082 http2; location / {{ proxy_pass http://127.0.0.1:9000; }} }}
  server {{ listen 8443 ssl; ssl_protocols TLSv1.2 TLSv1.3; location / {{ proxy_pass http://127.0.0.1:9000; }} }}
  server {{ listen 8445 ssl http2; ssl_protocols TLSv1.2 TLSv1.3; location / {{ proxy_pass http://127.0.0.1:9000; }} }}
}}
"""

CLIENTS = {
    "http/1.1": lambda: Http1(8080),
    "http/1.1 over TLS 1.2": lambda: Http1(8443, tls_context(TLS12)),
    "http/1.1 over TLS 1.3": lambda: Http1(8443, tls_context(TLS13)),
    "http/1.1 over TLS 1.3, HTTP/2 offered in vain": lambda: Http1(8443, tls_context(TLS13, ("h2", "http/1.1"))),
    "h2c": lambda: Http2(8082),
    "h2 over TLS 1.2": lambda: Http2(8445, tls_context(TLS12, ("h2",))),
    "h2 over TLS 1.3": lambda: Http2(8445, tls_context(TLS13, ("h2",))),
}
CURL = {
    "http/1.1": ["--http1.1", "http://localhost:8080"],
    "http/1.1 over TLS 1.2": ["--http1.1", "--tls-max", "1.2", "https://localhost:8443"],
    "http/1.1 over TLS 1.3": ["--http1.1", "https://localhost:8443"],
    "h2c": ["--http2-prior-knowledge", "http://localhost:8082"],
    "h2 over TLS 1.2": ["--http2", "--tls-max", "1.2", "https://localhost:8445"],
    "h2 over TLS 1.3": ["--http2", "https://localhost:8445"],
}


@pytest.fixture(scope="module")
def nginx(machine, watch_tool, certificate, the_backend):
    workload = Workload(machine, "nginx", watch_tool, [8080, 8082, 8443, 8445])
    configuration = workload.directory / "nginx.conf"
    configuration.write_text(NGINX.format(certificate=certificate[0], key=certificate[1]))
    workload.start(["nginx", "-p", workload.directory, "-c", configuration])
    yield workload
    workload.close()


@pytest.fixture(params=CLIENTS)
def client(request, nginx):
    client = CLIENTS[request.param]()
    yield client
    client.close()


def test_a_fast_answer_leaves_an_open_silent_connection_that_is_not_busy(nginx, client):
    for _ in range(3):
        client.request("/fast")
    nginx.await_answered()
    nginx.assert_no_request_for(0.3)
    assert nginx.read()["connections"] == 1


@pytest.mark.parametrize("requests_before", [0, 2])
def test_a_slow_answer_is_an_open_request_until_it_comes(nginx, client, backend, requests_before):
    for _ in range(requests_before):
        client.request("/fast")
    slow = threading.Thread(target=client.request, args=["/slow"])
    slow.start()
    assert backend.asked.wait(20)
    nginx.assert_open_for(2)
    backend.released.set()
    slow.join()
    nginx.await_answered()


@pytest.mark.parametrize("dress", CURL)
def test_curl_is_served_slowly(nginx, backend, dress):
    curl = subprocess.Popen(["curl", "-sk", *CURL[dress][:-1], CURL[dress][-1] + "/slow"], stdout=subprocess.PIPE)
    assert backend.asked.wait(20)
    nginx.assert_open_for(1)
    backend.released.set()
    assert curl.communicate()[0] == b"ok\n"
    nginx.await_answered()


@pytest.mark.parametrize("dress", [dress for dress in CLIENTS if dress.startswith("h2")])
def test_pings_are_no_activity(nginx, dress):
    client = CLIENTS[dress]()
    client.request("/fast")
    nginx.await_answered()
    before = nginx.read()["last"]
    for _ in range(5):
        client.ping()
    after = nginx.read()
    assert after["open"] == 0
    assert after["last"] == before
    client.close()


@pytest.mark.parametrize("dress", [dress for dress in CLIENTS if dress.startswith("h2")])
def test_pings_do_not_answer(nginx, backend, dress):
    client = CLIENTS[dress]()
    client.request("/fast")
    slow = threading.Thread(target=client.request, args=["/slow"])
    slow.start()
    assert backend.asked.wait(20)
    for _ in range(5):
        client.state.ping(b"12345678")
        client.flush()
        nginx.assert_open_for(0.2)
    backend.released.set()
    slow.join()
    nginx.await_answered()
    client.close()


@pytest.mark.parametrize("requests_before", [0, 2])
@pytest.mark.parametrize("dress", [dress for dress in CLIENTS if dress.startswith("h2")])
def test_a_slow_answer_is_open_beside_a_fast_one(nginx, backend, dress, requests_before):
    client = CLIENTS[dress]()
    for _ in range(requests_before):
        client.request("/fast")
    client.begin("/slow")
    assert backend.asked.wait(20)
    client.request("/fast")
    nginx.assert_open_for(1)
    client.request("/fast")
    nginx.assert_open_for(1)
    backend.released.set()
    client.until(h2.events.StreamEnded)
    if dress == "h2c":
        nginx.await_answered()
    else:
        nginx.assert_open_for(0.3)  # in doubt: which of them were answered cannot be told
    client.close()
    nginx.await_answered()


def test_server_sent_events_are_activity_and_their_silence_is_not(nginx, backend):
    client = Http1(8080)
    client.connection.request("GET", "/events")
    assert backend.asked.wait(20)
    nginx.await_answered()
    nginx.assert_no_request_for(0.3)
    before = nginx.read()["last"]
    backend.released.set()
    assert b"again" in client.connection.getresponse().read()
    assert nginx.read()["last"] > before
    client.close()


def test_ones_own_upstream_connections_are_outbound(nginx, backend):
    client = Http1(8080)
    slow = threading.Thread(target=client.request, args=["/slow"])
    slow.start()
    assert backend.asked.wait(20)
    assert nginx.read()["outbound"] == 1
    backend.released.set()
    slow.join()
    client.close()
