# SPDX-License-Identifier: Apache-2.0
"""lulld agent --gpu on a node of a real cluster: what a pod does with a GPU, and what controllers hear of it."""
import json
import subprocess

import agents
import gpus
import pytest

from lullcluster import objects


@pytest.fixture(name="crds", scope="session")
def fixture_crds(running):
    running.kubectl("apply", "-f", str(agents.CRDS))
    running.kubectl("wait", "--for=condition=Established", "crd/scaletozeros.lull.dev", "crd/nodeactivities.lull.dev")


@pytest.fixture(name="gpu")
def fixture_gpu(cluster, tmp_path, monkeypatch):
    gpu = gpus.Gpu(cluster, "n1", tmp_path)
    for name, value in gpu.environment.items():
        monkeypatch.setenv(name, value)
    yield gpu
    gpu.close()


@pytest.fixture(name="agent")
def fixture_agent(cluster, crds, namespace, tmp_path, gpu):  # pylint: disable=unused-argument
    agent = agents.Agent(cluster, "n1", namespace, tmp_path, "--gpu").start()
    yield agent
    status = agent.stop()
    print(agent.said())
    agent.forget()
    cluster.api.delete(f"{agents.API}/nodeactivities/n1")
    assert status == 0


@pytest.fixture(name="pod")
def fixture_pod(cluster, crds, namespace):
    """Of a policy that may be put to sleep once its GPU is idle, too."""
    objects.create(cluster.api, namespace, objects.deployment("web", node="n1", ready_path=None))
    agents.Policy(cluster, namespace, "web", idle={"after": "1s", "minAwake": "0", "gpu": {"after": "1s", "onIdle": "Sleep"}}).write()
    return cluster.ready_pods(namespace, 1, "app=web")[0]


def test_a_pod_is_idle_only_once_its_gpu_is(cluster, agent, gpu, pod, namespace):
    def until(state, gpu_state, timeout):
        def holds(status):
            told = agents.workload(status, f"{namespace}/web") or {}
            return (told.get("state"), told.get("gpu", {}).get("state")) == (state, gpu_state) and told
        return agents.until_node(cluster, "n1", holds, timeout)

    until("Idle", None, 30)  # it has nothing to do with one
    process = gpu.use(pod)
    told = until("Active", "Active", 60)
    assert told["gpu"]["devices"] == 1 and "its GPU is" in told["reason"]

    name = f"{namespace}/{pod['metadata']['name']}"
    done = subprocess.run([agents.BUILD / "lull", "-s", agent.run_dir / "control.sock", "-j", "gpu", "show", name],
                          stdout=subprocess.PIPE, text=True, check=True)
    seen = json.loads(done.stdout)
    assert seen["name"] == name and [use["device"] for use in seen["devices"]] == [gpu.device.name]
    assert agent.policy("web")["gpu"]["on_idle"] == "Sleep"

    def is_probed():
        return any((workload["calls"] or {}).get("coverage") == "full" for workload in agent.control.get("/v1/gpus")["workloads"])
    agent.control.until(is_probed, 60, "probes on its driver library")
    gpus.launch(process, 10)  # what came before was not seen
    until("Idle", "Idle", 240)
    assert "its GPU is idle for" in agent.policy("web")["idle"]["reason"]
    gpus.launch(process)
    assert "its GPU is active" in until("Active", "Active", 30)["reason"]
