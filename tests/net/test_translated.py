# SPDX-License-Identifier: Apache-2.0
"""First connections to Services without endpoints: held on the client's node, and given to an endpoint before the data plane knows it."""
import pytest

from machine.client import finish
from machine.namespace import mount_bpffs, unmount
from translated import NODE, NODE_PORT, PORT, SERVICE, Cluster, Hold

FAMILIES = [4, 6]


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def hold(cluster, tmp_path):
    """Starts hold on the cluster's node: hold("wait")."""
    started = []
    mount_bpffs(tmp_path / "bpf")

    def start(*options):
        started.append(Hold(cluster, tmp_path / "bpf", *options))
        return started[-1]

    yield start
    for process in started:
        process.close()
    unmount(tmp_path / "bpf")


def service(family, *words, protocol="tcp"):
    address = SERVICE[family] if family == 4 else f"[{SERVICE[family]}]"
    return " ".join([f"{protocol}/{address}:{PORT}", *words])


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("client", ["client", "node"])
@pytest.mark.parametrize("family", FAMILIES)
def test_first_connection_is_answered_before_the_data_plane_knows(cluster, hold, client, where, family):
    holder, endpoint = hold().sleep(service(family)), cluster.endpoints[where]
    attempt = cluster.clients[client].begin(PORT, family)
    assert holder.await_event("demand")["local"] == (client == "node")
    endpoint.listen(family)

    holder.do("endpoints", 0, endpoint.where(family))

    finish([attempt], 5)
    assert attempt.connected and attempt.retransmissions == 0, str(attempt)
    assert attempt.receive() == b"hello"
    holder.await_event("answered")
    assert endpoint.peers == [attempt.socket.getsockname()[0]]
    assert holder.counter("released/direct") == 1
