# SPDX-License-Identifier: Apache-2.0
"""Workloads with GPUs: who is awake for them, and what becomes free when one sleeps. Devices and driver are stand-ins, see gpus.py."""
import json
import threading

import pytest

import gpus as machines
import lull as deployed
import workloads
from lullcluster import api, objects, up

SOON = {"after": "2s", "minAwake": "0s"}
# The CPU alone keeps nothing awake here: what a GPU's idleness makes of it is asked.
SLEEP, REPORT = ({**SOON, "cpu": "8", "gpu": {"after": "30s", "onIdle": on_idle}} for on_idle in ("Sleep", "Report"))
# What is certain takes 30 s of nothing and a minute of confirmation; the rest is for slow machines.
CERTAIN = 240
PODS = "/api/v1/namespaces/{}/pods"


@pytest.fixture(scope="module", name="gpus")
def fixture_gpus(running):
    made = machines.Gpus(running, count=5)
    try:
        made.install()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module", name="watching")
def fixture_watching(installed, gpus):  # pylint: disable=unused-argument
    """lull with agents that watch GPUs."""
    installed.change_agents(deployed.WATCHING_GPUS)
    yield installed
    installed.change_agents(deployed.OVERLAY)


def worker(sleeping, name, idle, change=machines.with_gpu, **options):
    return sleeping.begin(name, replicas=1, change=change, image=machines.WORKER_IMAGE, arguments=[8080], idle=idle, **options)


class Crowd:
    """Five workloads that have all GPUs of the cluster, and a pod that waits for one. All windows pass side by side."""

    def __init__(self, lull, gpus, place):
        self.lull, self.gpus, self.place, self.cluster = lull, gpus, place, lull.cluster
        self.namespace = self.cluster.make_namespace()
        self.sleeping, self.all = workloads.Maker(lull, self.namespace), ()
        self.launching = self.blocked = self.spinning = self.reported = self.notebook = None

    def begin(self):
        self.launching, self.blocked, self.spinning, self.reported, self.notebook = (
            worker(self.sleeping, name, idle) for name, idle in (
                ("launching", SLEEP), ("blocked", SLEEP), ("spinning", SLEEP), ("reported", REPORT), ("notebook", SLEEP)))
        self.all = (self.launching, self.blocked, self.spinning, self.reported, self.notebook)
        for workload in self.all:
            workload.pods()
        self.begin_waiting()

    def begin_work(self):
        """The notebook last: when it is idle for long enough, so would all others be. What ran before a driver was probed is not known."""
        for workload in self.all:
            up.await_true(lambda workload=workload: self.is_probed(workload), f"the probes on {workload.name}'s driver")
            up.await_true(lambda workload=workload: workloads.answers(self.place, workload.address), f"the Service {workload.name}")
        for workload, what in ((self.launching, ["launch"]), (self.blocked, ["wait"]), (self.spinning, ["launch", "pause", "spin"]),
                               (self.reported, ["launch", "pause"]), (self.notebook, ["launch", "pause"])):
            for path in what:
                self.ask(workload, f"/{path}")

    def is_probed(self, workload):
        names = [entry["name"] for entry in self.lull.agent_says(machines.GPU_NODE, "/v1/gpus")["workloads"]
                 if (entry["calls"] or {}).get("coverage") == "full"]
        return any(name.startswith(f"{self.namespace}/{workload.name}-") for name in names)

    def ask(self, workload, path="/"):
        return self.place.get(workload.address, 80, path, timeout=60).strip()

    def begin_waiting(self):
        pod = objects.deployment("waiting", image=machines.WORKER_IMAGE, arguments=[8080])
        machines.with_gpu(pod)
        template = pod["spec"]["template"]
        self.cluster.api.post(PODS.format(self.namespace), {**template, "metadata": {"name": "waiting", **template["metadata"]}})

    def until_waiting(self, satisfied, timeout=60):
        return self.cluster.until_pods(self.namespace, lambda pods: [pod for pod in pods if satisfied(pod)], "app=waiting", timeout)[0]

    def seen(self, workload):
        """What "lull gpu show" says of its pod, in the agent's pod on its node."""
        [pod] = workload.pods()
        return json.loads(self.lull.cli(self.lull.agent(pod["spec"]["nodeName"]), "-j", "gpu", "show",
                                        f"{self.namespace}/{pod['metadata']['name']}"))

    def until_gpu(self, workload, state, timeout=60):
        """Waits until the node says so of the GPUs of a policy."""
        def found(activities):
            return [entry for entry in activities[f"/{machines.GPU_NODE}"].get("status", {}).get("workloads", ())
                    if entry["policy"] == f"{self.namespace}/{workload.name}" and entry.get("gpu", {}).get("state") == state]
        return self.lull.api.until(deployed.NODE_ACTIVITIES, found, timeout)[0]

    def remove(self):
        self.sleeping.remove()
        self.cluster.remove_namespace(self.namespace)


@pytest.fixture(scope="module", name="crowd")
def fixture_crowd(watching, gpus, pods_of_clients):
    cluster = watching.cluster
    made = Crowd(watching, gpus, cluster.in_pod(pods_of_clients["n2", "pod"]))
    try:
        made.begin()
        made.begin_work()
        yield made
    finally:
        made.remove()


def test_an_agent_that_does_not_watch_gpus_keeps_awake_what_asks_for_one(lull, gpus, sleeping):  # pylint: disable=unused-argument
    asking = worker(sleeping, "asking", SLEEP)
    others = worker(sleeping, "others", SLEEP, change=lambda deployment: None, node=machines.GPU_NODE)
    asking.pods()
    others.pods()

    others.until_phase("Asleep")

    [told] = lull.api.until(deployed.NODE_ACTIVITIES, lambda found: [
        entry for entry in found[f"/{machines.GPU_NODE}"]["status"]["workloads"]
        if entry["policy"] == f"{asking.namespace}/asking" and entry["state"] == "Unknown"])
    assert "nvidia.com/gpu" in told["reason"] and "does not watch GPUs" in told["reason"]
    assert asking.status()["phase"] == "Awake"
    assert not asking.has_slept()


def test_launches_and_waits_and_preparations_keep_awake_each_with_its_verdict(lull, crowd):  # pylint: disable=unused-argument
    lull.until_policy(crowd.namespace, lambda policy: (policy["status"].get("lastSleep") or {}).get("time"), "notebook", CERTAIN)

    launching, blocked, spinning = map(crowd.seen, (crowd.launching, crowd.blocked, crowd.spinning))

    assert (launching["state"], blocked["state"], spinning["state"]) == ("active", "active", "quiet")
    assert "the driver's calls saw it work" in launching["reason"]
    assert launching["calls"]["submissions"] > 100
    assert blocked["reason"] == "1 thread waits for the device"
    assert "CPU cores, as if it prepared work" in spinning["reason"]
    for said in (launching, spinning):
        assert set(said["sources"]) >= {"calls", "vendor"}
    for workload in (crowd.launching, crowd.blocked, crowd.spinning):
        assert workload.status()["phase"] == "Awake"
        assert not workload.has_slept()


def test_what_sleeps_frees_its_gpu_for_others_and_its_first_connection_brings_it_back(lull, crowd):
    waiting = crowd.until_waiting(lambda pod: api.condition(pod, "PodScheduled"))
    if not crowd.notebook.has_slept():
        assert "Insufficient nvidia.com/gpu" in waiting["status"]["conditions"][0]["message"]

    crowd.notebook.until_asleep(CERTAIN)
    crowd.until_waiting(lambda pod: api.condition(pod, "Ready") == "True")

    lull.api.delete(f"{PODS.format(crowd.namespace)}/waiting", gracePeriodSeconds=0)
    assert crowd.ask(crowd.notebook).startswith("notebook-")
    crowd.notebook.until_phase("Awake")


def test_a_gpu_that_is_idle_is_reported_and_no_more_unless_the_policy_says_sleep(crowd, lull):  # pylint: disable=unused-argument
    said = crowd.reported.until_condition("GpuIdle", timeout=CERTAIN)

    assert said["reason"] == "Report"
    assert crowd.seen(crowd.reported)["state"] == "idle"
    assert crowd.reported.status()["phase"] == "Awake"
    assert not crowd.reported.has_slept()


def test_nothing_sleeps_for_a_gpu_of_which_the_vendor_says_nothing_any_more(crowd, gpus, lull):
    crowd.reported.until_condition("GpuIdle", timeout=CERTAIN)
    [pod] = crowd.reported.pods()
    gpus.say(lost=[gpus.of(pod)])
    crowd.until_gpu(crowd.reported, "Unknown")

    crowd.reported.change({"idle": SLEEP})
    threading.Event().wait(8)
    seen = crowd.seen(crowd.reported)
    assert (seen["state"], crowd.reported.status()["phase"]) == ("unknown", "Awake"), seen
    assert "NVML" in seen["reason"]
    assert not crowd.reported.has_slept()

    gpus.say()
    crowd.reported.until_phase("Asleep", timeout=CERTAIN)
