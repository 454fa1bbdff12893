# SPDX-License-Identifier: Apache-2.0
"""An API server that is killed under many clients: what they ask of it when it is back, next to client-go's reflectors."""
import dataclasses
import secrets
import signal
import statistics
import time

import clients
import pytest

CLIENTS = 20
OBJECTS = 5000         # that each client holds
OTHER_OBJECTS = 15000  # of the same kind, for the API server's cache alone
TRIES_FOR_A_REFUSAL = 5
AGENTS = {"lull": "lull/", "client-go": "client-go/"}
SETTLE_SECONDS = 2  # after the last is current again, for what comes late


@dataclasses.dataclass
class Recovery:
    """What one kill cost."""

    lists: int            # requests for all objects, answered with 2xx: lists, and watches that begin with one
    requests: int
    busiest_second: int   # most requests within a second
    refused: int          # with 429 or 5xx
    median_seconds: float  # from when the server was ready until a client saw what was written then
    last_seconds: float
    received: int         # bytes
    memory: int           # at most, of the process with all clients
    cpu_seconds: float


def is_list(request):
    _, verb, uri, code = request
    return 200 <= code < 300 and (verb == "list" or "sendInitialEvents" in uri)


def kill(cluster):
    """It is started again at once."""
    cluster.kill("kube-apiserver")


def kill_and_forget(cluster):
    """It stays away until etcd has forgotten all that was before, and something has happened since."""
    cluster.stop("kube-apiserver", signal.SIGKILL)
    etcd = clients.Etcd(cluster)
    etcd.fill("default", 1, lambda number: "new")
    etcd.compact()
    etcd.empty("default", 1)
    cluster.start("kube-apiserver")


def recover(cluster, namespace, audit, kind, fail):
    """One process with all clients, the API server failing beneath it."""
    watching = clients.Reflectors(cluster, namespace, CLIENTS, kind)
    try:
        watching.until_each("synced", 120)
        before, after = secrets.token_hex(4), secrets.token_hex(4)
        clients.write_sentinel(cluster, namespace, before)
        watching.until_each("sentinel", value=before)
        received, cpu = clients.bytes_received(cluster), watching.cpu_seconds()

        killed = time.time()
        fail(cluster)
        cluster.await_server("kube-apiserver")
        ready = time.time()
        clients.write_sentinel(cluster, namespace, after)
        seen = watching.until_each("sentinel", 120, value=after)
        time.sleep(SETTLE_SECONDS)

        requests = [request for request in audit.requests(AGENTS[kind], killed) if "/configmaps" in request[2]]
        delays = [max(0, line["at"] - ready) for line in seen.values()]
        return Recovery(
            lists=sum(map(is_list, requests)), requests=len(requests),
            busiest_second=clients.busiest_second([request[0] for request in requests]),
            refused=sum(request[3] == 429 or request[3] >= 500 for request in requests),
            median_seconds=statistics.median(delays), last_seconds=max(delays), received=clients.bytes_received(cluster) - received,
            memory=watching.memory()[1], cpu_seconds=watching.cpu_seconds() - cpu)
    finally:
        assert watching.end() == 0


@pytest.fixture(name="large_store", scope="module")
def fixture_large_store(running):
    """A namespace with OBJECTS, beside one with OTHER_OBJECTS."""
    etcd, namespace, other = clients.Etcd(running), running.make_namespace(), running.make_namespace()
    etcd.fill(namespace, OBJECTS, lambda number: f"{number}:" + "x" * 400)
    etcd.fill(other, OTHER_OBJECTS, lambda number: f"{number}:" + "x" * 400)
    yield namespace
    etcd.empty(namespace, OBJECTS)
    etcd.empty(other, OTHER_OBJECTS)
    running.remove_namespace(namespace)
    running.remove_namespace(other)


def compare(cluster, namespace, directory, fail):
    """One after the other, on the same objects. Returns what it cost with ours and with theirs."""
    with clients.Audit(cluster, directory) as audit:
        found = {kind: recover(cluster, namespace, audit, kind, fail) for kind in AGENTS}
    for kind, one in found.items():
        print(f"{fail.__name__}, {kind}: {one}")
    return found["lull"], found["client-go"]


def assert_not_worse(ours, theirs):
    """When a client comes back is left to chance, by as much as a back-off: what depends on it has that much slack, as one more
    refusal for each client."""
    assert ours.lists <= theirs.lists
    assert ours.requests <= theirs.requests + CLIENTS
    assert ours.busiest_second <= 1.5 * theirs.busiest_second
    assert ours.received <= 1.3 * theirs.received
    assert ours.memory <= theirs.memory
    assert ours.last_seconds <= 1.5 * theirs.last_seconds + 3


def test_a_killed_api_server_costs_no_more_than_with_client_go(cluster, large_store, tmp_path):
    ours, theirs = compare(cluster, large_store, tmp_path, kill)

    assert_not_worse(ours, theirs)


def test_after_a_compaction_each_client_lists_once(cluster, large_store, tmp_path):
    ours, theirs = compare(cluster, large_store, tmp_path, kill_and_forget)

    assert ours.lists == CLIENTS
    assert_not_worse(ours, theirs)


def test_a_cache_that_initialises_is_given_the_time_it_asks_for(cluster, large_store, tmp_path):
    with clients.Audit(cluster, tmp_path) as audit:
        watching = clients.Reflectors(cluster, large_store)
        watching.until_event("synced")
        for _ in range(TRIES_FOR_A_REFUSAL):
            killed = time.time()
            cluster.kill("kube-apiserver")
            cluster.await_server("kube-apiserver")
            clients.write_sentinel(cluster, large_store, str(killed))
            watching.until_event("sentinel", value=str(killed))
            requests = audit.requests(AGENTS["lull"], killed)
            if refused := [at for at, request in enumerate(requests) if request[3] == 429]:
                break
        assert watching.end() == 0

    assert refused, requests
    # The API server asks for at least 1 s, and for as much when it has just started.
    assert all(requests[at + 1][0] - requests[at][0] >= 1 for at in refused), requests
