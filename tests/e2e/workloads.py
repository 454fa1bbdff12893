# SPDX-License-Identifier: Apache-2.0
"""Workloads that sleep: a Deployment, a Service and a ScaleToZero, at zero replicas from the start."""
import contextlib
import dataclasses

from lullcluster import objects, up

import lull as deployed

DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
SERVICES = "/api/v1/namespaces/{}/services"


def policy(name="web", **spec):
    """Falls asleep when told otherwise only: a test of a wake must not meet a sleep. It holds for long: machines of tests are slow."""
    spec = {"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, **spec}
    spec["idle"] = {"after": "1h", **spec.get("idle", {})}
    spec["wake"] = {"holdTimeout": "2m", **spec.get("wake", {})}
    return {"apiVersion": "lull.dev/v1alpha1", "kind": "ScaleToZero", "metadata": {"name": name}, "spec": spec}


@dataclasses.dataclass
class Workload:
    """One that was made: where its clients find it."""

    lull: deployed.Lull
    namespace: str
    name: str
    service: dict

    @property
    def address(self):
        return self.service["spec"]["clusterIP"]

    @property
    def address6(self):
        return self.service["spec"]["clusterIPs"][1]

    @property
    def node_port(self):
        return self.service["spec"]["ports"][0]["nodePort"]

    def until_phase(self, *phases, timeout=60):
        return self.lull.until_phase(self.namespace, *phases, name=self.name, timeout=timeout)

    def until_asleep(self, timeout=60):
        """Waits until it sleeps and every node holds; returns the policy."""
        policy_asleep = self.until_phase("Asleep", timeout=timeout)
        self.lull.until_held(self.namespace, self.name)
        return policy_asleep

    def until_condition(self, kind, said="", timeout=60):
        """Waits for a condition of the policy that holds and says this; returns it."""
        def holding(policy):
            return [entry for entry in policy.get("status", {}).get("conditions", ())
                    if entry["type"] == kind and entry["status"] == "True" and said in entry["message"]]
        return holding(self.lull.until_policy(self.namespace, holding, self.name, timeout))[0]

    def status(self):
        return self.lull.policy(self.namespace, self.name)["status"]

    def change(self, spec):
        """Changes the policy's spec."""
        self.lull.api.patch(f"{deployed.STZ.format(self.namespace)}/{self.name}", {"spec": spec})

    def has_slept(self):
        return bool((self.status().get("lastSleep") or {}).get("time"))

    def replicas(self):
        return self.lull.api.get(f"{DEPLOYMENTS.format(self.namespace)}/{self.name}")["spec"]["replicas"]

    def until_replicas(self, count, timeout=60):
        return self.lull.api.until(
            DEPLOYMENTS.format(self.namespace),
            lambda found: found[f"{self.namespace}/{self.name}"]["spec"]["replicas"] == count, timeout)

    def pods(self, count=1, timeout=60):
        return self.lull.cluster.ready_pods(self.namespace, count, f"app={self.name}", timeout)


def answers(place, address):
    with contextlib.suppress(OSError), contextlib.closing(place.connect(address, 80)):
        return True
    return False


class Maker:
    """Makes workloads in a namespace, and removes them."""

    def __init__(self, lull, namespace):
        self.lull, self.api, self.namespace = lull, lull.api, namespace

    def __call__(self, name="web", node_port=False, change=lambda deployment: None, replicas=0, **options):
        """Makes one and waits until it sleeps and is held everywhere. @options are objects.deployment()'s, or the policy's spec's; change(deployment) may
        still change what is made."""
        workload = self.begin(name, node_port, change, replicas, **options)
        workload.until_asleep()
        return workload

    def awake(self, name="web", node_port=False, change=lambda deployment: None, replicas=1, **options):
        """Makes one whose pods run, and waits until they are Ready, and lull and every node's kube-proxy know. Only then it may be idle."""
        idle = options.pop("idle", None)
        workload = self.begin(name, node_port, change, replicas, **options)
        workload.pods(replicas)
        workload.until_phase("Awake")
        for node in self.lull.cluster.nodes.values():
            up.await_true(lambda node=node: answers(node, workload.address), "the Service")
        if idle:
            workload.change({"idle": idle})
        return workload

    def begin(self, name="web", node_port=False, change=lambda deployment: None, replicas=0, **options):
        """Makes one and awaits nothing."""
        spec = {key: options.pop(key) for key in ("idle", "wake", "services", "ignore") if key in options}
        deployment = objects.deployment(name, replicas, **options)
        change(deployment)
        *_, service = objects.create(self.api, self.namespace, deployment, objects.service(name, node_port))
        self.api.post(deployed.STZ.format(self.namespace), policy(name, **spec))
        return Workload(self.lull, self.namespace, name, service)

    def remove(self, timeout=60):
        """Targets first: what is not there has not to be woken before its policy may go."""
        self.api.delete(DEPLOYMENTS.format(self.namespace), timeout=timeout)
        self.api.delete(deployed.STZ.format(self.namespace), timeout=timeout)
        self.api.until(deployed.STZ.format(self.namespace), lambda found: not found, timeout)
