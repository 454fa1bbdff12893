# SPDX-License-Identifier: Apache-2.0
"""A client that dials endpoints: a real ingress controller, Traefik, on a machine that runs no agent."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

from lullcluster import build, up

import places as clients

PARKED = "endpointslice.kubernetes.io/managed-by=lull.dev"


class Ingress:
    """Traefik beside the cluster, as a load balancer would be: it reads the API, and connects to endpoints by their addresses."""

    def __init__(self, cluster, log):
        self.cluster, self.place = cluster, cluster.client
        self.process = self.place.start(
            build.ensure_program("traefik"), "--entryPoints.web.address=:8000", "--entryPoints.traefik.address=:8001",
            "--api.insecure=true", "--providers.kubernetesingress=true", "--providers.kubernetesingress.throttleduration=10ms",
            "--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=INFO",
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig())}, stdout=log, stderr=subprocess.STDOUT)

    def servers(self, workload):
        """The addresses that it would choose among, or None where it does not know the Service, or nothing yet."""
        with contextlib.suppress(OSError, ValueError):
            for service in json.loads(self.place.get("127.0.0.1", 8001, "/api/http/services?per_page=1000")):
                if service["name"].startswith(f"{workload.namespace}-{workload.name}-"):
                    return [server["url"] for server in service.get("loadBalancer", {}).get("servers", ())]
        return None

    def until_servers(self, workload, satisfied):
        return up.await_true(lambda: (servers := self.servers(workload)) is not None and satisfied(servers) and servers, "Traefik", 30)

    def end(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(10)


@pytest.fixture(scope="module", name="ingress")
def fixture_ingress(running, tmp_path_factory):
    with open(tmp_path_factory.mktemp("traefik") / "log", "wb") as log:
        ingress = Ingress(running, log)
    yield ingress
    ingress.end()


def publish(cluster, workload):
    cluster.api.post(f"/apis/networking.k8s.io/v1/namespaces/{workload.namespace}/ingresses", {
        "metadata": {"name": "web"}, "spec": {"rules": [{"http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": workload.name, "port": {"number": 80}}}}]}}]}})


def until_parked(workload, there):
    workload.lull.api.until(f"/apis/discovery.k8s.io/v1/namespaces/{workload.namespace}/endpointslices",
                            lambda slices: bool(slices) == there, labelSelector=PARKED)


def test_the_first_request_through_an_ingress_controller_is_answered(cluster, sleeping, ingress):
    workload = sleeping()
    publish(cluster, workload)
    until_parked(workload, True)
    ingress.until_servers(workload, bool)

    met = clients.dialling(ingress.place, "127.0.0.1", 8000, count=20).finish()

    assert clients.errors(met) == []
    assert all(one.text.startswith("web-") for one in met), {one.text for one in met}
    workload.until_phase("Awake")
    until_parked(workload, False)


def test_once_awake_an_ingress_controller_dials_the_pods_themselves(cluster, sleeping, ingress):
    workload = sleeping()
    publish(cluster, workload)
    until_parked(workload, True)
    ingress.until_servers(workload, bool)
    assert clients.dial(ingress.place, "127.0.0.1", 8000).text.startswith("web-")

    stream = clients.dialling(ingress.place, "127.0.0.1", 8000, count=None, every=0.05)
    [pod] = workload.pods()
    own = {f"http://[{ip['ip']}]:8080" if ":" in ip["ip"] else f"http://{ip['ip']}:8080" for ip in pod["status"]["podIPs"]}
    ingress.until_servers(workload, lambda servers: set(servers) == own)

    met = stream.halt()
    assert clients.errors(met) == []
    assert all(one.text.startswith("web-") for one in met)
