# SPDX-License-Identifier: Apache-2.0
"""Agents under test: lulld agent on a node of the cluster, and by hand what a controller would write for it."""
import contextlib
import datetime
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from lullcluster import api, cgroups  # noqa: E402  pylint: disable=wrong-import-position
from machine.control import Control  # noqa: E402  pylint: disable=wrong-import-position

BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
CRDS = ROOT / "deploy/crds"
API = "/apis/lull.dev/v1alpha1"


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Agent:
    """lulld agent in a node's network and mounts, with the node's pods below its cgroup root. Its own directories are @directory's."""

    def __init__(self, cluster, node, namespace, directory, *options):
        self.cluster, self.node, self.namespace = cluster, node, namespace
        self.run_dir = pathlib.Path(directory) / f"run-{node}"
        self.options = options
        self.control = Control(self.run_dir / "control.sock")
        self.log = open(pathlib.Path(directory) / f"agent-{node}.log", "a", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = None

    def command(self):
        place = self.cluster.nodes[self.node]
        return place.inside(BUILD / "lulld", "agent", "--node", self.node, "--namespace", self.namespace, "--kubeconfig",
                            self.cluster.where.kubeconfig, "--cgroup", place.cgroup, "--bpffs", f"/sys/fs/bpf/{self.namespace}",
                            "--kubelet-cgroup", self.kubelet_cgroup(), "--run-dir", self.run_dir, "--metrics", "none", *self.options)

    def kubelet_cgroup(self):
        """Given, since all clusters of this machine have kubelets."""
        pid = self.cluster.server_pid(f"{self.node}-kubelet")
        lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
        return cgroups.unified() / next(line[3:] for line in lines if line.startswith("0::")).lstrip("/")

    def start(self, wanted=200):
        """Returns when it knows all policies; with wanted=503 as soon as it answers that it does not."""
        self.process = subprocess.Popen([str(word) for word in self.command()], stderr=self.log, start_new_session=True)
        tries = 400
        while True:
            try:
                if self.control.request("GET", "/readyz")[0] == wanted:
                    return self
            except OSError:
                pass
            assert self.process.poll() is None, f"the agent has ended: {self.said()}"
            tries -= 1
            assert tries, f"the agent is not ready: {self.said()}"
            signal.sigtimedwait([], 0.1)

    def said(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")

    def stop(self, number=signal.SIGTERM):
        """Returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=20)

    def forget(self):
        """After a stop: what the next agent would have taken over."""
        self.log.close()
        subprocess.run([str(word) for word in self.cluster.nodes[self.node].inside("rm", "-rf", f"/sys/fs/bpf/{self.namespace}")],
                       check=True)

    def policy(self, name):
        return self.control.policy(f"{self.namespace}%2F{name}")

    def until(self, name, holds, timeout=20):
        """Waits until holds(policy as the agent tells of it); returns the policy."""
        def check():
            seen = self.policy(name)
            return seen if holds(seen) else None
        return self.control.until(check, timeout, f"what is awaited of {name} on {self.node}")


class Policy:
    """A ScaleToZero object whose status the test writes, as a controller would."""

    def __init__(self, cluster, namespace, name, **spec):
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.path = f"{API}/namespaces/{namespace}/scaletozeros/{name}"
        self.status = {"phase": "Awake", "epoch": 1, "holding": False, "since": now(), "frontends": [], "endpoints": [],
                       "selector": f"app={name}", "ports": [], "ignored": [], "conditions": [], "observedGeneration": 1}
        cluster.api.post(f"{API}/namespaces/{namespace}/scaletozeros", {
            "apiVersion": "lull.dev/v1alpha1", "kind": "ScaleToZero", "metadata": {"name": name},
            "spec": {"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, **spec}})

    def write(self, **fields):
        """Merges fields into the status, writes it, and returns the object."""
        self.status.update(fields)
        if "phase" in fields:
            self.status["since"] = now()
        return self.cluster.api.patch(f"{self.path}/status", {"status": self.status})

    def sleep(self, phase="Asleep", **fields):
        return self.write(phase=phase, holding=True, epoch=self.status["epoch"] + 1, endpoints=[], **fields)

    def serves(self, service, backend="web/http", target_port=8080):
        """Takes its frontends from a Service."""
        port = service["spec"]["ports"][0]
        frontends = [{"address": address, "port": port["port"], "protocol": port.get("protocol", "TCP"), "origin": "ClusterIP",
                      "backend": backend, "local": False, "affinity": False} for address in service["spec"]["clusterIPs"]]
        if "nodePort" in port:
            frontends += [{"address": "::" if ":" in address else "0.0.0.0", "port": port["nodePort"],
                           "protocol": port.get("protocol", "TCP"), "origin": "NodePort", "backend": backend, "local": False,
                           "affinity": False} for address in service["spec"]["clusterIPs"]]
        self.status["frontends"] = frontends
        self.status["ports"] = [{"backend": backend, "port": target_port, "protocol": port.get("protocol", "TCP")}]

    def endpoints(self, pods, ready, probe=True, backend="web/http", port=8080, protocol="TCP"):
        """The status's form of pods, as soon as they have addresses."""
        return [{"address": address["ip"], "node": pod["spec"]["nodeName"], "pod": pod["metadata"]["name"],
                 "podUID": pod["metadata"]["uid"], "ready": ready,
                 "ports": [{"backend": backend, "port": port, "protocol": protocol}],
                 **({"probe": {"type": "HTTP", "port": port, "path": "/", "tls": False, "timeoutSeconds": 1,
                               "initialDelaySeconds": 0, "successThreshold": 1}} if probe else {})}
                for pod in pods for address in pod["status"].get("podIPs", ())]

    def pods_with_addresses(self, timeout=30):
        def satisfied(pods):
            return [pod for pod in pods if pod["status"].get("podIPs")]
        return self.cluster.until_pods(self.namespace, satisfied, f"app={self.name}", timeout)

    def scale(self, replicas):
        self.cluster.api.patch(f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}/scale",
                               {"spec": {"replicas": replicas}})


@contextlib.contextmanager
def schema(cluster, definition, during, after):
    """Another schema of a custom resource, for a while."""
    def write(wanted):
        version = {**cluster.api.get(definition)["spec"]["versions"][0], "schema": wanted}
        cluster.api.patch(definition, {"spec": {"versions": [version]}})
    write(during)
    try:
        yield
    finally:
        write(after)


def accepted(write, tries=200):
    """What write() returns, once the server takes it: a schema is in force a moment after it was written."""
    while True:
        try:
            return write()
        except api.ApiError as error:
            tries -= 1
            if error.code != 422 or not tries:
                raise
            signal.sigtimedwait([], 0.05)


def node_status(cluster, node):
    """The status of a node's NodeActivity."""
    return cluster.api.get(f"{API}/nodeactivities/{node}").get("status", {})


def until_node(cluster, node, holds, timeout=20):
    """Waits until holds(status of a node's NodeActivity); returns what that returned."""
    def satisfied(objects):
        return holds(objects.get(f"/{node}", {}).get("status", {}))
    return cluster.api.until(f"{API}/nodeactivities", satisfied, timeout, fieldSelector=f"metadata.name={node}")


def demand(status, policy):
    return next((entry for entry in status.get("demands", ()) if entry["policy"] == policy), None)


def workload(status, policy):
    return next((entry for entry in status.get("workloads", ()) if entry["policy"] == policy), None)
