# SPDX-License-Identifier: Apache-2.0
"""What lulld makes of processes that have a GPU, with real probes on a stand-in for libcuda."""
import os
import pathlib
import socket
import subprocess

import pytest

from conftest import BTRFS, FUSE, LOOP, TUN
from machine.cgroup import Cgroup
from machine.policy import policy
from watcher import Watcher

WORKLOAD = pathlib.Path(__file__).with_name("workload.py")

# One NVML device a line: all that it knows, no utilisation under MIG, and none of processes.
WHOLE, MIG, COARSE = f"device minor={TUN}", f"device minor={LOOP} mig=1 error=3 process_error=3", f"device minor={BTRFS} process_error=3"


def server(gpus, name, port, minor, *words, on_idle="Sleep"):
    return policy(name, listen=[f"tcp/[::]:{port}"], command=["/usr/bin/python3", WORKLOAD, port, gpus.node(minor), *words],
                  idle={"after": "1s", "minAwake": "1ms", "gpu": {"after": "1s", "onIdle": on_idle}})


def gpu(node, name):
    return node.control.policy(name)["gpu"] or {"state": None}


def is_probed(node, name):
    workload = next((found for found in node.control.get("/v1/gpus")["workloads"] if found["name"] == name), {})
    return (workload.get("calls") or {}).get("coverage") in ("full", "none")


def awake(node, name):
    seen = node.control.policy(name)
    assert seen["phase"] == "Awake", f"{name} is {seen['phase']}: {seen['last_sleep']}"
    return seen


def ask(node, port):
    with node.namespace.entered(), socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"question")
        return connection.recv(100)


def test_only_what_two_sources_call_idle_is_put_to_sleep(node, gpus):
    gpus.say(WHOLE, MIG, COARSE)
    cuda = gpus.library
    node.start(server(gpus, "certain", 8001, TUN, cuda),
               server(gpus, "report", 8002, TUN, cuda, on_idle="Report"),
               server(gpus, "waits", 8003, TUN, cuda, "wait"),
               server(gpus, "around", 8004, TUN),                # no calls are seen
               server(gpus, "unlisted", 8005, FUSE, cuda),       # NVML does not know the device
               server(gpus, "divided", 8006, LOOP, cuda),        # MIG
               server(gpus, "left", 8007, BTRFS, cuda),          # two of a device of which only the whole is known
               server(gpus, "right", 8008, BTRFS, cuda))
    names = [*node.control.policies()]
    for name in names:
        node.control.wake(name)
    for name in names:
        node.control.until_phase("Awake", name, 30)
        node.control.until(lambda: is_probed(node, name), 60, f"probes on {name}")  # pylint: disable=cell-var-from-loop
    for port in range(8001, 8009):
        assert ask(node, port) == b"answer"

    # What one source sees is work, whatever the other says.
    gpus.say(WHOLE, MIG, COARSE, f"process 0 {node.pids('around')[0]} 7")
    node.control.until(lambda: gpu(node, "around")["state"] == "active", 30, "work that only NVML sees")
    gpus.say(WHOLE, MIG, COARSE)

    node.control.until_phase("Asleep", "certain", 200)
    assert "its GPU is idle for" in node.control.policy("certain")["last_sleep"]["reason"]
    node.control.until_condition("GpuIdle", "report", 60)
    assert awake(node, "report")["gpu"]["state"] == "idle"
    for name, lack in [("around", "it has loaded no driver library that lull knows"), ("unlisted", "it does not know the device"),
                       ("divided", "the device is divided by MIG"), ("left", "cannot tell the workloads that share the device apart"),
                       ("right", "cannot tell the workloads that share the device apart")]:
        seen = awake(node, name)
        assert (seen["gpu"]["state"], seen["idle"]["verdict"]) == ("unknown", "unknown"), seen
        assert lack in seen["gpu"]["reason"]
    assert awake(node, "waits")["gpu"]["reason"] == "1 thread waits for the device"

    # Its device is free again; the first connection brings it back, and doubles its window.
    assert ask(node, 8001) == b"answer"
    node.control.until(lambda: gpu(node, "certain")["state"], 30, "its GPU seen again")
    assert gpu(node, "certain")["required_seconds"] >= 2
    assert node.control.metrics()["lull_gpu_saved_seconds_total", frozenset({("policy", "certain")})] > 0

    # A source that is lost makes what it spoke of unknown, and NVML's hanging hangs nobody else.
    gpus.say(WHOLE, MIG, COARSE, "hang")
    node.control.until(lambda: gpu(node, "report")["state"] == "unknown", 60, "the loss of NVML")
    assert "not answer" in gpu(node, "report")["reason"]


@pytest.fixture(name="cgroup")
def fixture_cgroup():
    made = Cgroup("lull-gpu-test")
    yield made
    made.remove()


def test_without_any_policy_who_has_a_gpu_is_found(node, gpus, cgroup):
    name = cgroup.path.name
    gpus.say(f"{WHOLE} percent=0 power=60000 used=1 total=2", f"device minor={LOOP}")

    def enter():
        (cgroup.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    with subprocess.Popen(["/usr/bin/python3", WORKLOAD, "0", gpus.node(TUN), gpus.library], preexec_fn=enter, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            control = Watcher(node, cgroup.path, "--idle-after", "45s").start().control

            def workload():
                return next((found for found in control.get("/v1/gpus")["workloads"] if found["name"] == name), None)
            seen = control.until(workload, 30, "the workload")
            assert (seen["open_devices"], seen["command"], seen["state"]) == (1, "python3", "starting")
            control.until(lambda: workload()["calls"], 30, "its calls")

            process.stdin.write("250\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            control.until(lambda: workload()["state"] == "active", 30, "work")
            assert workload()["calls"]["submissions"] == 250
            assert "has submitted work 250 times" in control.get(f"/v1/gpus/{name}/why")["text"]

            devices = {device["name"]: device for device in control.get("/v1/gpus")["devices"]}
            assert devices[f"nvidia{TUN}"]["workloads"] == [name]
            assert devices[f"nvidia{TUN}"]["power_watts"] == 60
            assert devices[f"nvidia{LOOP}"]["state"] == "free"
            assert name in node.lull("gpu", "list").stdout
            assert name in node.lull("gpu", "top").stdout
            assert "active" in node.lull("gpu", "why", f"nvidia{TUN}").stdout
            control.until(lambda: workload()["state"] == "quiet", 90, "quiet")
            assert sorted(workload()["sources"]) == ["calls", "vendor"]
            control.until(lambda: workload()["state"] == "candidate", 90, "candidate")
            control.until(lambda: workload()["state"] == "idle", 120, "idle")
        finally:
            process.kill()
    control.until(lambda: workload() is None, 60, "the end of the workload")
