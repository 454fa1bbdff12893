# SPDX-License-Identifier: Apache-2.0
"""lull on the cluster, deployed by its own manifests as its users deploy it."""
import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys

from lullcluster import api, cgroups, layout, up

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
OVERLAY, WATCHING_GPUS = ROOT / "tests/e2e/overlay", ROOT / "tests/e2e/overlay-gpu"
NAMESPACE = "lull-system"
IMAGE = "lull.test/lulld:e2e"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
AGENT, CONTROLLER = "app.kubernetes.io/component=agent", "app.kubernetes.io/component=controller"
STZ = "/apis/lull.dev/v1alpha1/namespaces/{}/scaletozeros"
NODE_ACTIVITIES = "/apis/lull.dev/v1alpha1/nodeactivities"


def import_image(cluster):
    archive = cluster.where.directory / "lulld.tar"
    subprocess.run([sys.executable, ROOT / "tools/make-image", "--name", IMAGE, archive], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "BUILD": str(BUILD)})
    for node in cluster.where.nodes:
        up.import_image(cluster.where, node, archive)
    archive.unlink()


class ControlSocket(http.client.HTTPConnection):
    """An agent's, which is a file of its node."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Lull:
    """What is deployed: agents, controllers, and what they know."""

    def __init__(self, cluster):
        self.cluster, self.api = cluster, cluster.api

    # All of it

    def manifests(self, overlay=OVERLAY):
        return self.cluster.kubectl("kustomize", overlay)

    def apply(self, overlay=OVERLAY):
        """Objects only: nothing is awaited."""
        settings = {"CGROUPS": str(cgroups.unified() / self.cluster.where.cgroup.lstrip("/")),
                    "POD_RANGES": ",".join(layout.POD_RANGE)}
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "test-cluster", "namespace": NAMESPACE},
                      "data": settings}
        namespace, _, others = self.manifests(overlay).partition("\n---\n")
        self.cluster.kubectl("apply", "--server-side", "--filename", "-",
                             text="\n---\n".join([namespace, json.dumps(config_map), others]))

    def change_agents(self, overlay):
        """Applies other manifests, and waits until all agents are as these say."""
        self.apply(overlay)
        self.cluster.kubectl("--namespace", NAMESPACE, "rollout", "status", "daemonset/lull-agent", "--timeout=90s", timeout=100)
        self.ready()

    def is_there(self):
        return any(item["metadata"]["name"] == NAMESPACE for item in self.api.get("/api/v1/namespaces")["items"])

    def restart(self):
        """Anew, of an image that may be another by the same name."""
        for pod in self.api.get(PODS)["items"]:
            self.api.delete(f"{PODS}/{pod['metadata']['name']}")

    def ready(self, timeout=60):
        """Waits until every pod of it is Ready; returns them."""
        def satisfied(pods):
            ready = [pod for pod in pods if api.condition(pod, "Ready") == "True" and "deletionTimestamp" not in pod["metadata"]]
            return ready if len(ready) == len(pods) == len(self.cluster.where.nodes) + 2 else None
        return self.cluster.until_pods(NAMESPACE, satisfied, timeout=timeout)

    def remove(self):
        """As docs/kubernetes-install.md says."""
        self.cluster.kubectl("delete", "--ignore-not-found", "--filename", "-", text=self.manifests(), timeout=120)

    # Its pods

    def pods(self, selector):
        return self.api.get(PODS, labelSelector=selector)["items"]

    def agent(self, node):
        [pod] = [pod for pod in self.pods(AGENT) if pod["spec"]["nodeName"] == node and "deletionTimestamp" not in pod["metadata"]]
        return pod

    def controllers(self):
        return self.pods(CONTROLLER)

    def leader(self):
        """The controller's pod that leads."""
        [lease] = [item for item in self.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")["items"]
                   if not item["metadata"]["name"].startswith("lull-agent-")]
        holder = lease["spec"]["holderIdentity"]
        [pod] = [pod for pod in self.controllers() if holder.startswith(pod["metadata"]["name"])]
        return pod

    def kill(self, pod):
        """SIGKILL to its only process; the kubelet starts it again."""
        os.kill(self.cluster.container_pid(pod), 9)

    def cli(self, pod, *words):
        return self.cluster.kubectl("--namespace", NAMESPACE, "exec", pod["metadata"]["name"], "--", "lull", *words)

    def agent_says(self, node, path):
        """What its control socket answers, without the time that an exec takes."""
        where = self.cluster.where
        with contextlib.closing(ControlSocket(where.node_directory(where.node(node)) / "run/lull/control.sock")) as connection:
            connection.request("GET", path)
            return json.load(connection.getresponse())

    def holds(self, node, namespace, name, address):
        """Whether that node's agent holds first packets to a policy's frontends, one at @address among them."""
        with contextlib.suppress(OSError):
            for policy in self.agent_says(node, "/v1/policies")["policies"]:
                if policy["name"] == f"{namespace}/{name}":
                    return policy["held"]["holding"] and any(address in frontend for frontend in policy["listen"])
        return False

    def until_held(self, namespace, name="web", address=""):
        """Waits until every node holds. A policy that was put to sleep is Asleep only then; one whose target somebody else had scaled
        to zero is Asleep at once, and agents follow."""
        for node in self.cluster.nodes:
            up.await_true(lambda node=node: self.holds(node, namespace, name, address), f"the agent on {node}, to hold {namespace}/{name},", 20)

    def token(self, pod):
        """One as the pod itself has: bound to it, and so to its node."""
        metadata = pod["metadata"]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}}}
        account = pod["spec"]["serviceAccountName"]
        return self.api.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", request)["status"]["token"]

    def acting_as(self, pod):
        """The API, as a pod of it may use it."""
        return api.Api(self.cluster.where, token=self.token(pod))

    # What it says

    def policy(self, namespace, name="web"):
        return self.api.get(f"{STZ.format(namespace)}/{name}")

    def until_policy(self, namespace, satisfied, name="web", timeout=60):
        """Waits until satisfied(policy), and returns the policy."""
        def found(policies):
            policy = policies.get(f"{namespace}/{name}")
            return policy if policy and satisfied(policy) else None
        return self.api.until(STZ.format(namespace), found, timeout)

    def until_phase(self, namespace, *phases, name="web", timeout=60):
        return self.until_policy(namespace, lambda policy: policy.get("status", {}).get("phase") in phases, name, timeout)

    def story(self):
        """For a test that failed: what everyone said lately."""
        parts = []
        with contextlib.suppress(OSError, api.ApiError, http.client.HTTPException):
            for kind in ("scaletozeros", "nodeactivities"):
                parts += [(f"{found['kind']} {found['metadata']['name']}", json.dumps(found.get("status"), indent=1))
                          for found in self.api.get(f"/apis/lull.dev/v1alpha1/{kind}")["items"]]
            for pod in self.api.get(PODS)["items"]:
                for previous in ("false", "true"):
                    with contextlib.suppress(api.ApiError):
                        text = self.api.raw("GET", f"{PODS}/{pod['metadata']['name']}/log", tailLines=60, previous=previous).decode()
                        parts.append((f"{pod['metadata']['name']} on {pod['spec'].get('nodeName')}"
                                      + (", before its restart" if previous == "true" else ""), text))
        return parts
