# SPDX-License-Identifier: Apache-2.0
"""Devices that ResourceClaims gave to pods, as an agent knows them from a real API server. A test writes what a DRA driver and the
scheduler would; the device is none, and a stand-in for NVML says that it is there."""
import agents
import pytest

from lullcluster import objects

RESOURCE = "/apis/resource.k8s.io/v1"
DRIVER, DEVICE = "gpu.lull.test", "gpu-0"
MISC = 10  # the major number of devices that every machine has, taken for NVIDIA's
MINOR = 200


class GpuAgent(agents.Agent):
    """With /proc/devices and an NVML in which there is a device at 0000:65:00.0."""

    def command(self):
        directory = self.run_dir.parent
        (directory / "devices").write_text(f"Character devices:\n {MISC} nvidia\n\nBlock devices:\n", encoding="ascii")
        (directory / "nvml").write_text(f"device minor={MINOR} bus={0x65}\n", encoding="ascii")
        words = [str(word) for word in super().command()]
        lulld = words.index(str(agents.BUILD / "lulld"))
        return [*words[:lulld], "unshare", "--mount", "env", f"LULL_NVML_STATE={directory}/nvml",
                f"LD_LIBRARY_PATH={agents.BUILD}/tests/gpu", "sh", "-c", f'mount --bind {directory}/devices /proc/devices && exec "$@"',
                "sh", *words[lulld:]]


@pytest.fixture(name="agent")
def fixture_agent(running, cluster, namespace, tmp_path):
    running.kubectl("apply", "-f", str(agents.CRDS))
    running.kubectl("wait", "--for=condition=Established", "crd/scaletozeros.lull.dev", "crd/nodeactivities.lull.dev")
    agent = GpuAgent(cluster, "n1", namespace, tmp_path, "--gpu", "--gpu-unused-after", "10s")
    yield agent.start()
    status = agent.stop() if agent.process.poll() is None else agent.process.returncode
    agent.forget()
    cluster.api.delete(f"{agents.API}/nodeactivities/n1")
    assert status == 0


def pool_slice(name, generation, count, *devices):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": DRIVER, "nodeName": "n1",
                     "pool": {"name": "n1", "generation": generation, "resourceSliceCount": count},
                     "devices": [{"name": device, "attributes": {"resource.kubernetes.io/pciBusID": {"string": bus}}}
                                 for device, bus in devices]}}


@pytest.fixture(name="slices")
def fixture_slices(cluster, namespace):
    """Publishes slices of the pool, and removes them."""
    made = []

    def publish(generation, count, *devices):
        name = f"{namespace}-{len(made)}"
        cluster.api.post(f"{RESOURCE}/resourceslices", pool_slice(name, generation, count, *devices))
        made.append(name)
    yield publish
    for name in made:
        cluster.api.delete(f"{RESOURCE}/resourceslices/{name}")


def claiming(cluster, namespace):
    """A Deployment on n1 whose pod has a claim that is allocated."""
    claims = f"{RESOURCE}/namespaces/{namespace}/resourceclaims"
    cluster.api.post(claims, {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "web-gpu"},
                              "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}})
    cluster.api.patch(f"{claims}/web-gpu/status", {"status": {"allocation": {"devices": {"results": [
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": DEVICE}]}}}})
    web = objects.deployment("web", node="n1", ready_path=None)
    web["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "web-gpu"}]
    objects.create(cluster.api, namespace, web)
    agents.Policy(cluster, namespace, "web").write()


def test_an_agent_tells_which_device_a_claim_gave_a_pod_and_that_nobody_opened_it(cluster, namespace, agent, slices):
    slices(1, 1, (DEVICE, "0000:01:00.0"))
    claiming(cluster, namespace)

    def allocation():
        found = [pod for pod in agent.control.get("/v1/gpus")["workloads"] if pod["name"].startswith(f"{namespace}/web-")]
        return found[0]["allocations"][0] if found and found[0]["allocations"] else {}

    def until(bus):
        return agent.control.until(lambda: allocation() and allocation()["bus"] == bus and allocation(), 60, f"the device at {bus}")
    assert until("0000:01:00.0")["name"] == f"{DRIVER}/n1/{DEVICE}"
    assert allocation()["device"] is None                    # there is none at that place

    slices(2, 2, ("gpu-1", "0000:66:00.0"))                  # a new generation, of which one slice is still to come
    until(None)
    slices(2, 2, (DEVICE, "0000:65:00.0"))
    until("0000:65:00.0")
    agent.control.until(lambda: allocation()["device"] == f"nvidia{MINOR}", 60, "the device")
    agent.control.until(lambda: allocation()["state"] == "unused", 60, "unused")
    assert allocation()["unopened"] == 1

    device = next(found for found in agent.control.get("/v1/gpus")["devices"] if found["name"] == f"nvidia{MINOR}")
    assert (device["state"], device["workloads"]) == ("unused", [])
    pod = device["allocated_to"][0]
    assert device["disagreement"] == [f"allocated to {pod}, which has never opened it"]
    told = agents.until_node(cluster, "n1", lambda status: (agents.workload(status, f"{namespace}/web") or {}).get("gpu"))
    assert told["devices"] == 1
    assert agent.control.metrics()["lull_gpu_allocated_devices", frozenset({("workload", pod)})] == 1

    cluster.api.patch(f"{RESOURCE}/namespaces/{namespace}/resourceclaims/web-gpu/status",
                      {"status": {"allocation": None, "reservedFor": None}})
    agent.control.until(lambda: not allocation(), 30, "a claim that is not allocated any more")
