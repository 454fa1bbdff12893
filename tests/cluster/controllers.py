# SPDX-License-Identifier: Apache-2.0
"""Controllers from the build, run on the client machine; agents that say what a test wants; policies to watch."""
import contextlib
import datetime
import http.client
import json
import os
import secrets
import signal
import socket
import threading
import time

from lullcluster import api, objects

import clients

GROUP = "/apis/lull.dev/v1alpha1"
POLICIES = GROUP + "/namespaces/{}/scaletozeros"
ACTIVITIES = f"{GROUP}/nodeactivities"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
KINDS = {"Deployment": ("apps/v1", DEPLOYMENTS), "StatefulSet": ("apps/v1", "/apis/apps/v1/namespaces/{}/statefulsets"),
         "Job": ("batch/v1", "/apis/batch/v1/namespaces/{}/jobs")}
MERGE = "application/merge-patch+json"
LULLD = clients.TOOLS.parent / "lulld"
RENEW_SECONDS, LEASE_SECONDS = 1, 5


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def apply_crds(cluster):
    for name in ("scaletozeros", "nodeactivities"):
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", clients.ROOT / f"deploy/crds/{name}.yaml")
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}.lull.dev")


class Controller:
    """One replica."""

    def __init__(self, cluster, namespace, directory):
        self.identity = f"controller-{secrets.token_hex(3)}"
        self.directory = directory / self.identity
        self.directory.mkdir()
        self.log = open(self.directory / "log", "wb")
        self.process = cluster.client.start(
            LULLD, "controller", "--kubeconfig", cluster.kubeconfig(), "--namespace", namespace, "--identity", self.identity,
            "--run-dir", self.directory / "run", "--metrics", "none", stderr=self.log, stdout=self.log)

    def said(self):
        return (self.directory / "log").read_text(errors="replace")

    def story(self, namespace):
        """For a test that failed: how it sees things."""
        with contextlib.suppress(OSError):
            return json.dumps([self.ask("/v1/status"), [policy for policy in self.ask("/v1/policies")["policies"]
                                                        if policy["name"].startswith(f"{namespace}/")]], indent=1)
        return ""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """In good order: what a sanitizer finds is in the status."""
        if self.process.poll() is not None:
            return 0 if self.process.returncode == -signal.SIGKILL else self.process.returncode
        self.process.terminate()
        try:
            return self.process.wait(20)
        except Exception:
            self.kill()
            raise

    def ask(self, path, method="GET"):
        """Its control socket."""
        connection = http.client.HTTPConnection("lulld")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.directory / "run/control.sock"))
        with contextlib.closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            return json.loads(body) if "json" in answer.getheader("Content-Type", "") else body.decode()

    def until_idle(self, policy, satisfied, timeout=30):
        """What it knows of the policy's idleness is not in the API: it has to be asked."""
        deadline = time.monotonic() + timeout
        path = f"/v1/policies/{policy.namespace}%2F{policy.name}"
        while not satisfied(idle := self.ask(path)["idle"]):
            assert time.monotonic() < deadline, idle
            time.sleep(0.05)


class Agent:
    """Says for one node what a test wants, and that it is alive."""

    def __init__(self, cluster, namespace, node, alive=True):
        self.api, self.namespace, self.node = cluster.api, namespace, node
        self.name = f"lull-agent-{node}"
        self.demands, self.workloads, self.programmed = {}, {}, 0
        self.instance = self.said_by = f"{node}_{secrets.token_hex(8)}"  # the process that lives, and that wrote the status
        self.api.delete(f"{ACTIVITIES}/{node}")
        self.api.post(ACTIVITIES, {"apiVersion": "lull.dev/v1alpha1", "kind": "NodeActivity", "metadata": {"name": node}})
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.renew, daemon=True)
        self.thread_running = alive
        if alive:
            self.thread.start()

    def renew(self):
        path = LEASES.format(self.namespace)
        with contextlib.suppress(api.ApiError):
            self.api.post(path, {"metadata": {"name": self.name}, "spec": self.lease_spec(LEASE_SECONDS)})
        while not self.stopping.wait(RENEW_SECONDS):
            with contextlib.suppress(OSError, http.client.HTTPException, api.ApiError):
                self.renew_once()

    def start_anew(self):
        """Another process renews the Lease; what it has to say is yet to come. Returns once the Lease names it."""
        self.instance = f"{self.node}_{secrets.token_hex(8)}"
        self.api.until(LEASES.format(self.namespace), lambda items: items[f"{self.namespace}/{self.name}"]["spec"][
            "holderIdentity"] == self.instance)

    def renew_once(self, seconds=LEASE_SECONDS):
        self.api.patch(f"{LEASES.format(self.namespace)}/{self.name}", {"spec": self.lease_spec(seconds)})

    def lease_spec(self, seconds):
        return {"leaseDurationSeconds": seconds, "holderIdentity": self.instance, "renewTime": now()}

    def fall_silent(self):
        self.stopping.set()
        if self.thread_running:
            self.thread.join()

    def revive(self):
        self.stopping.clear()
        self.thread = threading.Thread(target=self.renew, daemon=True)
        self.thread.start()

    def write(self):
        status = {"instance": self.said_by, "programmed": self.programmed, "demands": list(self.demands.values()),
                  "workloads": list(self.workloads.values())}
        self.api.patch(f"{ACTIVITIES}/{self.node}/status", {"status": status})

    def workload(self, policy, state, quiet_epoch=-1, **more):
        self.workloads[policy.key] = {"policy": policy.key, "state": state, "quietEpoch": quiet_epoch, "since": now(), "pods": 10,
                                      "openRequests": 0, **more}
        self.write()

    def vote(self, policy, status, programmed=True):
        """Quiet, and holding."""
        if programmed:
            self.programmed = int(policy.version)
        self.workload(policy, "Idle", status["epoch"])

    def demand(self, policy, epoch, source="10.77.1.9:40000"):
        self.demands[policy.key] = {"policy": policy.key, "epoch": epoch, "firstPacket": now(), "held": 1, "source": source}
        self.write()

    def no_demand(self, policy):
        self.demands.pop(policy.key, None)
        self.write()

    def remove(self):
        self.fall_silent()
        self.api.delete(f"{ACTIVITIES}/{self.node}")


class Policy:
    """A ScaleToZero of a Deployment, or another kind of workload, with a Service, all of one name."""

    def __init__(self, cluster, namespace, name="web", target=None, kind="Deployment", **spec):
        self.cluster, self.api, self.namespace, self.name = cluster, cluster.api, namespace, name
        self.target = target or name
        self.path, self.version = POLICIES.format(namespace), None
        api_version, targets = KINDS[kind]
        self.targets = targets.format(namespace)
        spec = {"target": {"apiVersion": api_version, "kind": kind, "name": self.target}, "services": [self.target], **spec}
        spec["idle"] = {"after": "1s", "minAwake": "0", **spec.get("idle", {})}
        self.api.post(self.path, {"apiVersion": "lull.dev/v1alpha1", "kind": "ScaleToZero", "metadata": {"name": name}, "spec": spec})

    @property
    def key(self):
        return f"{self.namespace}/{self.name}"

    def until(self, satisfied, timeout=30):
        """Waits until satisfied(its status); returns the status."""
        def found(items):
            item = items.get(self.key)
            if not item or not satisfied(item.get("status", {})):
                return None
            self.version = item["metadata"]["resourceVersion"]
            return item["status"]
        return self.api.until(self.path, found, timeout, fieldSelector=f"metadata.name={self.name}")

    def until_phase(self, *phases, timeout=30):
        return self.until(lambda status: status.get("phase") in phases, timeout)

    def until_condition(self, kind, timeout=30):
        def holding(status):
            return [entry for entry in status.get("conditions", ()) if entry["type"] == kind and entry["status"] == "True"]
        return holding(self.until(holding, timeout))[0]

    def until_no_condition(self, kind, timeout=30):
        return self.until(lambda status: status and not any(entry["type"] == kind and entry["status"] == "True"
                                                            for entry in status.get("conditions", ())), timeout)

    def until_item(self, satisfied, timeout=30):
        self.api.until(self.path, lambda items: satisfied(items[self.key]), timeout)

    def write_status(self, **fields):
        self.api.patch(f"{self.path}/{self.name}/status", {"status": fields})

    def status(self):
        return self.object().get("status", {})

    def object(self):
        return self.api.get(f"{self.path}/{self.name}")

    def patch(self, body):
        return self.api.patch(f"{self.path}/{self.name}", body)

    def annotate(self, word):
        return self.patch({"metadata": {"annotations": {f"lull.dev/{word}": now()}}})

    def delete(self):
        self.api.delete(f"{self.path}/{self.name}")

    def until_gone(self, timeout=30):
        self.api.until(self.path, lambda items: self.key not in items, timeout)

    # Its target

    def scale(self, replicas):
        self.api.patch(f"{self.targets}/{self.target}/scale", {"spec": {"replicas": replicas}})

    def replicas(self):
        return replicas_of(self.api.get(f"{self.targets}/{self.target}"))

    def until_replicas(self, count, timeout=30):
        key = f"{self.namespace}/{self.target}"
        self.api.until(self.targets, lambda items: replicas_of(items[key]) == count, timeout)

    def events(self):
        return {event["reason"]: event["note"] for event in self.api.get(
            f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
            if event["regarding"]["name"] == self.name and event["regarding"]["kind"] == "ScaleToZero"}

    def until_event(self, reason, timeout=30):
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return self.api.until(path, lambda items: [event["note"] for event in items.values() if event["reason"] == reason
                                                   and event["regarding"]["name"] == self.name], timeout)[0]


def replicas_of(item):
    """As lull has them: those of a Job are none or one."""
    return int(not item["spec"].get("suspend")) if "suspend" in item["spec"] else item["spec"]["replicas"]


def workload(cluster, namespace, name="web", replicas=1, node="n1", kind="Deployment", **options):
    item = {**objects.deployment(name, replicas, node, **options), "apiVersion": KINDS[kind][0], "kind": kind}
    if kind == "StatefulSet":
        item["spec"]["serviceName"] = name
    if kind == "Job":
        template = item["spec"]["template"]
        item["spec"] = {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}
    cluster.api.post(KINDS[kind][1].format(namespace), item)
    objects.create(cluster.api, namespace, objects.service(name))


def put_to_sleep(policy, *agents, timeout=30):
    """All say Idle, then vote; returns the status Asleep."""
    for agent in agents:
        agent.workload(policy, "Idle")
    status = policy.until_phase("Sleeping", timeout=timeout)
    for agent in agents:
        agent.vote(policy, status)
    return policy.until_phase("Asleep", timeout=timeout)


def leader(replicas):
    return next(one for one in replicas if one.process.poll() is None and one.ask("/v1/status")["leader"]["this"])


def seconds_between(one, other):
    form = "%Y-%m-%dT%H:%M:%S.%fZ"
    return (datetime.datetime.strptime(other, form) - datetime.datetime.strptime(one, form)).total_seconds()


def pause():
    """For what must not happen: a few times as long as it would take."""
    time.sleep(3 * float(os.environ.get("LULL_TEST_SLOWNESS", "1")))


def release(policy):
    """Removes it, whoever runs: its finalizer is for controllers only."""
    with contextlib.suppress(api.ApiError):
        policy.patch({"metadata": {"finalizers": None}})
    policy.delete()


def agent_pod(cluster, namespace, node):
    """What tells a controller the addresses of a node: a pod in its host's network, labelled as the agents are."""
    cluster.api.post(f"/api/v1/namespaces/{namespace}/pods", {
        "metadata": {"name": f"agent-{node}", "labels": {"app.kubernetes.io/name": "lull", "app.kubernetes.io/component": "agent"}},
        "spec": {"hostNetwork": True, "nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [
            {"name": "pause", "image": "lull.test/pause:1", "imagePullPolicy": "Never"}]}})
