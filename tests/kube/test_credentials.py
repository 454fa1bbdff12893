# SPDX-License-Identifier: Apache-2.0
"""Tokens, certificates and authorities that change while a client runs."""
import threading

from api_server import ApiServer, thing
from certificates import Authority


def accepting(tokens, step):
    """Answers 401 to other tokens than these."""
    def serve(exchange):
        if exchange.headers["authorization"] not in [f"Bearer {token}" for token in tokens]:
            exchange.refuse(401, "Unauthorized")
        else:
            step(exchange)
    return serve


def view_then(step, version=10):
    def serve(exchange):
        exchange.initial([thing("a", 3)], version)
        step(exchange)
    return serve


def test_a_refused_token_is_read_again_at_once(server, kubeconfig, tmp_path, watch):
    token = tmp_path / "token"
    token.write_text("old\n")
    rotated = threading.Event()

    def first(exchange):
        exchange.initial([thing("a", 3)], 10)
        rotated.wait()
        exchange.end()
    server.script = [accepting(["old"], first), accepting(["new"], lambda exchange: (exchange.begin(), exchange.hold()))]
    watcher = watch(kubeconfig(tokenFile="token"))
    watcher.until("current")
    token.write_text("new\n")
    rotated.set()

    refused, accepted = server.await_requests(2), server.await_requests(3)

    assert refused.headers["authorization"] == "Bearer old" and accepted.headers["authorization"] == "Bearer new"
    assert accepted.at - refused.at < 0.8, "without a back-off"
    assert watcher.ask("client")["unauthorized"] == 1
    assert watcher.counters()["failures"] == 0


def test_a_token_that_stays_refused_is_backed_off_with_and_recovers(server, kubeconfig, tmp_path, watch):
    token = tmp_path / "token"
    token.write_text("old")
    server.script = [accepting(["new"], view_then(lambda exchange: exchange.hold()))]
    watcher = watch(kubeconfig(tokenFile="token"))
    first, second = server.await_requests(2), server.await_requests(3)
    assert second.at - first.at >= 0.8
    assert "401" in watcher.counters()["problem"]

    token.write_text("new")

    watcher.until("current")
    assert watcher.view() == {"default/a": "3"}


def test_another_authority_is_not_believed(server, kubeconfig, tmp_path, watch):
    Authority(tmp_path, "stranger")
    server.script = [lambda exchange: exchange.list([], 1)]
    watcher = watch(kubeconfig(authority="stranger.crt"))

    while watcher.counters()["failures"] < 2:
        pass

    assert "certificate" in watcher.counters()["problem"]
    assert not server.requests


def test_a_new_authority_is_read_from_its_file(server, kubeconfig, tmp_path, watch):
    server.script = [view_then(lambda exchange: exchange.hold()), lambda exchange: (exchange.begin(), exchange.hold())]
    watcher = watch()
    watcher.until("current")

    successor = Authority(tmp_path, "successor")
    server.certify_anew(successor)
    (tmp_path / "authority.crt").write_bytes(successor.path.read_bytes())

    assert server.await_requests(2).query["resourceVersion"] == "10"


def test_a_renewed_client_certificate_is_used_for_what_follows(authority, tmp_path, kubeconfig, watch):
    clients = Authority(tmp_path, "clients")
    server = ApiServer(authority, client_authority=clients)
    serials, renewed = [], threading.Event()

    def note(exchange):
        serials.append(exchange.connection.getpeercert()["serialNumber"])

    def first(exchange):
        note(exchange)
        exchange.initial([thing("a", 3)], 10)
        renewed.wait()
        exchange.end()
    server.script = [first, lambda exchange: (note(exchange), exchange.begin(), exchange.hold())]
    certificate, key = clients.issue("agent")
    user = {"client-certificate": certificate.name, "client-key": key.name}
    watcher = watch(kubeconfig(url=server.url, **user))
    watcher.until("current")
    clients.issue("agent")
    renewed.set()

    server.await_requests(2)
    server.close()

    assert len(set(serials)) == 2


def test_the_certificate_is_verified_for_tls_server_name(server, kubeconfig, watch):
    server.script = [view_then(lambda exchange: exchange.hold())]
    url = f"https://localhost:{server.port}"
    refused = watch(kubeconfig(url=url))
    while refused.counters()["failures"] < 1:
        pass
    assert not server.requests

    watcher = watch(kubeconfig(url=url, cluster="tls-server-name: 127.0.0.1"))

    watcher.until("current")


def test_a_missing_file_is_named(server, kubeconfig, watch):
    server.script = [lambda exchange: exchange.hold()]
    watcher = watch(kubeconfig(tokenFile="nowhere"))

    while watcher.counters()["failures"] < 1:
        pass

    assert "nowhere cannot be read" in watcher.counters()["problem"]
