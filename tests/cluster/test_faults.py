# SPDX-License-Identifier: Apache-2.0
"""The API server as it is on a bad day."""
import json
import socket
import time

import pytest

from lullcluster import api, layout

PATH = "/api/v1/namespaces/default"


@pytest.fixture(name="through_front")
def fixture_through_front(cluster):
    return api.Api(cluster.where, port=layout.FRONT_PORT)


def from_client_machine(cluster, timeout=2):
    """Whether a connection from the client machine is accepted: None says that nothing came back."""
    try:
        cluster.client.connect(layout.CONTROL_PLANE[0], layout.API_PORT, timeout).close()
        return True
    except socket.timeout:
        return None
    except ConnectionRefusedError:
        return False


def test_cut_off_swallows_packets_of_the_named_sources_only(cluster):
    assert from_client_machine(cluster) is True

    cluster.faults.cut_off(*layout.CLIENT)

    assert from_client_machine(cluster) is None
    cluster.nodes["n1"].connect(layout.CONTROL_PLANE[0], layout.API_PORT, 2).close()
    cluster.faults.mend()
    assert from_client_machine(cluster) is True


def test_cut_off_leaves_an_open_connection_half_open(cluster):
    connection = cluster.client.connect(layout.CONTROL_PLANE[0], layout.API_PORT, 1)
    with connection:
        cluster.faults.cut_off(*layout.CLIENT)
        connection.sendall(b"not TLS\r\n\r\n")
        with pytest.raises(socket.timeout):
            connection.recv(1)


def test_refuse_resets_and_refuses(cluster):
    with cluster.client.connect(layout.CONTROL_PLANE[0], layout.API_PORT, 2) as connection:
        cluster.faults.refuse(*layout.CLIENT)
        with pytest.raises(ConnectionResetError):
            connection.sendall(b"anything")
            connection.recv(1)
    assert from_client_machine(cluster) is False


def test_the_front_passes_on_what_no_rule_matches_in_the_senders_name(cluster, through_front):
    cluster.faults.too_many_requests(3, match="GET /api/v1/pods")

    review = through_front.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert review["status"]["userInfo"]["username"] == "admin"
    assert "system:masters" in review["status"]["userInfo"]["groups"]

    response, connection = through_front.open("GET", "/api/v1/pods")
    assert response.status == 429
    assert response.getheader("Retry-After") == "3"
    assert json.loads(response.read())["reason"] == "TooManyRequests"
    connection.close()


def test_a_token_passes_the_front_as_it_is(cluster, namespace):
    cluster.faults.answer(503, match="nothing")
    client = api.Api(cluster.where, port=layout.FRONT_PORT, token=cluster.token(namespace))

    review = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})

    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_rule_ends_after_the_times_it_was_given(cluster, through_front):
    cluster.faults.too_many_requests(1, times=2)

    codes = []
    for _ in range(3):
        response, connection = through_front.open("GET", PATH)
        codes.append(response.status)
        connection.close()

    assert codes == [429, 429, 200]
    assert cluster.faults.front()["answered"] >= 2


def test_a_diverted_client_meets_the_front_without_knowing_it(cluster):
    pki = cluster.where.certificates
    cluster.faults.too_many_requests(7)
    cluster.faults.divert(*layout.CLIENT)

    said = cluster.client.run("curl", "--silent", "--include", "--max-time", 10, "--cacert", pki / "ca.crt", "--cert",
                              pki / "admin.crt", "--key", pki / "admin.key",
                              f"https://{layout.CONTROL_PLANE[0]}:{layout.API_PORT}{PATH}")

    assert said.startswith("HTTP/1.1 429")
    assert "Retry-After: 7" in said


def test_a_slow_front_takes_its_time(cluster, through_front):
    through_front.get(PATH)
    cluster.faults.slow(0.2)

    started = time.monotonic()
    through_front.get(PATH)

    assert time.monotonic() - started > 0.8  # both ways, in the handshake and in the request


def test_a_paused_api_server_accepts_and_says_nothing(cluster):
    with cluster.paused("kube-apiserver"):
        assert from_client_machine(cluster) is True
        with pytest.raises(socket.timeout):
            cluster.api.get(PATH, timeout=1)
    cluster.await_server("kube-apiserver")
    cluster.api.get(PATH)


def test_the_api_server_takes_further_flags_and_loses_them_again(cluster):
    cluster.restart_apiserver("--profiling=false")
    with pytest.raises(api.ApiError, match="404"):
        cluster.api.raw("GET", "/debug/pprof/")
    cluster.restart_apiserver()
    assert b"goroutine" in cluster.api.raw("GET", "/debug/pprof/")
