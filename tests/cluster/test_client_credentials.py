# SPDX-License-Identifier: Apache-2.0
"""Credentials that end or are replaced while a client of a real API server is at work."""
import base64
import json
import time

import clients
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from lullcluster import certificates, layout

SHORT_SECONDS = 4
LEEWAY_SECONDS = 60  # the API server accepts a token for so long after it has expired (go-jose's DefaultLeeway)
SERVER_NAME = "rotating.test"


def base64url(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def sign(cluster, account, seconds):
    """A token as the API server issues it, but for less time than it would: 10 minutes are its least."""
    key = serialization.load_pem_private_key((cluster.where.certificates / "service-accounts.key").read_bytes(), None)
    now = int(time.time())
    metadata = account["metadata"]
    claims = {
        "iss": "https://kubernetes.default.svc", "aud": ["https://kubernetes.default.svc"], "iat": now - 3600, "nbf": now - 3600,
        "exp": now + seconds - LEEWAY_SECONDS, "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
        "kubernetes.io": {"namespace": metadata["namespace"],
                          "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]}},
    }
    signed = ".".join(base64url(json.dumps(part).encode()) for part in ({"alg": "ES256", "typ": "JWT"}, claims))
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@pytest.fixture(name="account")
def fixture_account(cluster, namespace):
    """A service account that may do everything in its namespace."""
    cluster.api.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", {
        "metadata": {"name": "all"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}]})
    account = cluster.api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    path = clients.CONFIG_MAPS.format(namespace)
    deadline = time.monotonic() + 10  # the authorizer learns of the binding by a watch of its own
    while not allowed(cluster, account, path):
        assert time.monotonic() < deadline
    return account


def allowed(cluster, account, path):
    review = cluster.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": f"system:serviceaccount:{account['metadata']['namespace']}:default",
        "resourceAttributes": {"namespace": path.split("/")[4], "verb": "watch", "resource": "configmaps"}}})
    return review["status"]["allowed"]


def ask(watcher, namespace):
    """The code that a small request is answered with."""
    return watcher.ask(f"get {clients.CONFIG_MAPS.format(namespace)}/kube-root-ca.crt", "answer")["code"]


def await_code(watcher, namespace, code, seconds=30):
    deadline = time.monotonic() + seconds
    while (said := ask(watcher, namespace)) != code:
        assert time.monotonic() < deadline, said
        time.sleep(0.1)  # an expiry cannot be awaited otherwise


def test_an_expired_token_is_replaced_by_the_one_in_the_file(cluster, namespace, account, watch, tmp_path):
    token = tmp_path / "token"
    certificates.write(token, sign(cluster, account, SHORT_SECONDS).encode())
    watcher = watch(clients.write_kubeconfig(cluster, tmp_path / "kubeconfig", {"tokenFile": token}))
    watcher.until("synced")
    assert ask(watcher, namespace) == 200
    await_code(watcher, namespace, 401)

    certificates.write(token, cluster.token(namespace).encode())

    assert ask(watcher, namespace) == 200
    clients.write_sentinel(cluster, namespace, "after")
    watcher.until("added", key=f"{namespace}/sentinel")
    assert watcher.counters()["relists"] == 0


def test_a_watch_refused_for_an_expired_token_resumes_with_the_next_one(cluster, namespace, account, watch, tmp_path):
    token = tmp_path / "token"
    certificates.write(token, sign(cluster, account, SHORT_SECONDS).encode())
    watcher = watch(clients.write_kubeconfig(cluster, tmp_path / "kubeconfig", {"tokenFile": token}))
    watcher.until("synced")
    await_code(watcher, namespace, 401)
    cluster.faults.refuse(*layout.CLIENT)
    clients.write_sentinel(cluster, namespace, "its event is acknowledged, and that reset")
    while not watcher.counters()["failures"]:
        time.sleep(0.1)
    cluster.faults.mend()
    while "401" not in (problem := watcher.counters()["problem"]):
        assert problem, "the watch is open with a token that has expired"
        time.sleep(0.1)

    clients.write_sentinel(cluster, namespace, "while it is away")
    certificates.write(token, cluster.token(namespace).encode())

    watcher.until("modified", key=f"{namespace}/sentinel", seconds=60)
    assert watcher.counters()["relists"] == 0


def test_a_client_certificate_is_replaced_by_the_one_in_the_file(cluster, namespace, watch, tmp_path):
    issuer = certificates.Authority(cluster.where.certificates)
    pair = issue(issuer, tmp_path, "client", SHORT_SECONDS)
    watcher = watch(clients.write_kubeconfig(cluster, tmp_path / "kubeconfig",
                                             {"client-certificate": pair[0], "client-key": pair[1]}))
    watcher.until("synced")
    assert ask(watcher, namespace) == 200
    await_code(watcher, namespace, 401)

    issue(issuer, tmp_path, "client", 3600)

    assert ask(watcher, namespace) == 200


def issue(authority, directory, file, seconds, names=()):
    """Writes them where they are wanted, not beside the authority."""
    elsewhere = certificates.Authority.__new__(certificates.Authority)
    elsewhere.directory, elsewhere.name = directory, authority.name
    elsewhere.key, elsewhere.certificate = authority.key, authority.certificate
    return elsewhere.issue(file, "admin", ("system:masters",), names, certificates.DAY * (seconds / 86400))


def test_the_servers_certificate_of_a_new_authority_is_trusted_once_the_file_says_so(cluster, namespace, watch, tmp_path):
    first, second = (certificates.Authority(tmp_path / name, name) for name in ("first", "second"))
    trusted = tmp_path / "trusted.crt"
    certificates.write(trusted, first.path.read_bytes())
    certificate, key = issue(first, tmp_path, "server", 3600, (SERVER_NAME,))
    try:
        cluster.restart_apiserver(f"--tls-sni-cert-key={certificate},{key}:{SERVER_NAME}")
        user = {f"client-{part}": cluster.where.certificates / f"admin.{end}" for part, end in (("certificate", "crt"), ("key", "key"))}
        watcher = watch(clients.write_kubeconfig(cluster, tmp_path / "kubeconfig", user, **{
            "certificate-authority": trusted, "tls-server-name": SERVER_NAME}))
        watcher.until("synced")

        issue(second, tmp_path, "server", 3600, (SERVER_NAME,))
        cluster.kill("kube-apiserver")
        cluster.await_server("kube-apiserver")
        clients.write_sentinel(cluster, namespace, "after")
        while "certificate" not in watcher.counters()["problem"]:
            time.sleep(0.1)
        certificates.write(trusted, second.path.read_bytes())

        watcher.until("added", key=f"{namespace}/sentinel", seconds=60)
    finally:
        cluster.restart_apiserver()
