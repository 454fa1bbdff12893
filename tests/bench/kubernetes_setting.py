# SPDX-License-Identifier: Apache-2.0
"""What the Kubernetes benchmarks measure on: workloads with lull and without, clients, and what lull says about itself."""
import dataclasses
import json
import socket
import subprocess
import threading
import time

import lull as deployed
import workloads
from lullcluster import namespaces, objects

APP = "lull.test/probed:1"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"
FIRST_RETRY, LAST_RETRY = 0.05, 1.0  # seconds: what a well-meant client waits after a refusal, twice as long each time
CLIENT_NODE = "n2"


@dataclasses.dataclass
class App:
    """How an application starts, and what readiness probe it declares: periodSeconds, or None for no probe."""

    title: str
    period: int = None
    listens_after_ms: int = 0


@dataclasses.dataclass
class Answered:
    """What a client met: moments on time.monotonic()'s clock."""

    began: float
    answered: float
    refused: int    # connections before
    listening: float  # when the application was about to listen
    accepted: float   # when this connection was accepted there

    @property
    def seconds(self):
        return self.answered - self.began


def ask(place, address, port=80, timeout=60):
    """One request, retried after refusals as a client without lull must. The time is until the answer's first byte."""
    began, refused, pause = time.monotonic(), 0, FIRST_RETRY
    with namespaces.entered(place.namespace):
        while True:
            try:
                connection = socket.create_connection((address, port), timeout)
                break
            except ConnectionRefusedError:
                if time.monotonic() > began + timeout:
                    raise
                refused += 1
                time.sleep(pause)
                pause = min(2 * pause, LAST_RETRY)
        with connection:
            connection.sendall(b"GET /met HTTP/1.1\r\nHost: app\r\n\r\n")
            data = connection.recv(65536)
            answered = time.monotonic()
            while not data.endswith(b"}\n"):
                data += connection.recv(65536)
    met = json.loads(data.partition(b"\r\n\r\n")[2])
    return Answered(began, answered, refused, met["listening"] / 1e9, met["accepted"] / 1e9)


class ReadyWatch(threading.Thread):
    """When the API says that a Service has a ready endpoint of the family that the clients here use: begin it before the cause."""

    def __init__(self, api, namespace, service):
        super().__init__(daemon=True)
        self.api, self.path = api, SLICES.format(namespace)
        self.query = {"labelSelector": f"kubernetes.io/service-name={service}"}
        self.version = api.get(self.path, **self.query)["metadata"]["resourceVersion"]
        self.moment, self.seen = None, threading.Event()
        self.start()

    def run(self):
        for event in self.api.watch(self.path, self.version, 60, **self.query):
            managed_by = event["object"]["metadata"].get("labels", {}).get("endpointslice.kubernetes.io/managed-by", "")
            if event["object"].get("addressType") != "IPv4" or not managed_by.startswith("endpointslice-controller"):
                continue
            if event["type"] in ("ADDED", "MODIFIED") and any(
                    endpoint["conditions"].get("ready") for endpoint in event["object"].get("endpoints") or ()):
                self.moment = time.monotonic()
                self.seen.set()
                return

    def ready(self, timeout=60):
        if not self.seen.wait(timeout):
            raise TimeoutError("no endpoint became ready")
        return self.moment


class Setting:
    """A namespace for one measure; with it goes what was made."""

    def __init__(self, lull, places):
        self.lull, self.places, self.cluster, self.api = lull, places, lull.cluster, lull.api

    def __enter__(self):
        self.namespace = self.cluster.make_namespace()
        self.maker = workloads.Maker(self.lull, self.namespace)
        return self

    def __exit__(self, *_):
        self.maker.remove(timeout=300)
        self.cluster.remove_namespace(self.namespace)

    # Workloads

    def deployment(self, name, app, replicas=0, **options):
        options = {"image": APP, "arguments": (8080, app.listens_after_ms, 0), "ready_path": "/" if app.period else None,
                   "period_seconds": app.period, **options}
        return objects.deployment(name, replicas, **options)

    def with_lull(self, name, app, node=None, **policy):
        """One that sleeps."""
        spec = self.deployment(name, app, node=node)["spec"]
        made = self.maker(name, change=lambda deployment: deployment.update(spec=spec), **policy)
        made.pods(0)
        return made

    def without_lull(self, name, app, **options):
        """The same without a policy: its address."""
        *_, service = objects.create(self.api, self.namespace, self.deployment(name, app, **options), objects.service(name))
        return service["spec"]["clusterIP"]

    def scale(self, name, replicas):
        self.api.patch(f"{workloads.DEPLOYMENTS.format(self.namespace)}/{name}/scale", {"spec": {"replicas": replicas}})

    def until_gone(self, name):
        self.cluster.until_pods(self.namespace, lambda pods: not pods or None, f"app={name}")

    def put_down(self, name):
        """To zero by hand, which lull takes for asleep, until nothing of it is left."""
        self.scale(name, 0)
        self.until_gone(name)

    # Clients

    def until_refused(self, address, port=80):
        """Until the data plane of the client's node knows no pod any more: one that is gone answers nobody."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                self.client.connect(address, port, timeout=0.2).close()
            except ConnectionRefusedError:
                return
            except OSError:
                pass
            time.sleep(0.02)
        raise TimeoutError(f"{address} does not refuse")

    @property
    def client(self):
        return self.places.pod(CLIENT_NODE)

    # What lull says

    def pods(self):
        """{"agent" or "controller": its pods}"""
        return {"agent": self.lull.pods(deployed.AGENT), "controller": self.lull.controllers()}

    def last_wake(self, name):
        """The steps of the last wake, as the agent of the client's node saw them: seconds since the first packet."""
        words = [deployed.BUILD.resolve() / "lull", "-j", "policy", "show", f"{self.namespace}/{name}"]
        deadline = time.monotonic() + 10
        while True:
            done = subprocess.run(self.cluster.nodes[CLIENT_NODE].inside(*map(str, words)), check=True, capture_output=True, text=True)
            wake = json.loads(done.stdout)["last_wake"]
            if wake and wake["phases"].get("released") is not None:
                return wake["phases"]
            if time.monotonic() > deadline:
                raise TimeoutError(f"the agent knows of no release: {done.stdout}")
            time.sleep(0.05)
