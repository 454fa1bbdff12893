# SPDX-License-Identifier: Apache-2.0
"""The states of devices that nobody opened and of those that hang, reached by real processes with real probes."""
import contextlib
import json
import os
import pathlib
import select
import subprocess
import time

import pytest

from conftest import FUSE, LOOP, TUN
from machine.cgroup import Cgroup
from machine.daemon import build_directory
from watcher import Watcher

WORKLOAD = pathlib.Path(__file__).with_name("workload.py")

# Opens what it is told to.
OPENER = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    os.open(line.strip(), os.O_RDONLY)
    print("open", flush=True)
"""


class Program:
    """A child that answers every line with a line."""

    def __init__(self, arguments, cgroup=None):
        def enter():
            (cgroup.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        self.process = subprocess.Popen(arguments, preexec_fn=enter if cgroup else None, text=True,  # pylint: disable=consider-using-with
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        assert select.select([self.process.stdout], [], [], 30)[0], "no answer within 30 s"
        return self.process.stdout.readline()

    def close(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(name="cgroup")
def fixture_cgroup():
    made = Cgroup("lull-gpu-states")
    yield made
    made.remove()


@contextlib.contextmanager
def tenant(cgroup, *allocations, unused_after="1h"):
    """The product's watch of a cgroup to which something is allocated."""
    program = Program([build_directory() / "tests/gpu/tenant", cgroup.path, unused_after, *allocations])

    def read():
        answer = json.loads(program.ask(""))
        return answer["workloads"][0], {device["name"]: device for device in answer["devices"]}
    try:
        yield read
    finally:
        program.close()


def until(holds, timeout, what):
    deadline = time.monotonic() + timeout
    while not (found := holds()):
        assert time.monotonic() < deadline, f"{what} did not come true within {timeout} s"
        time.sleep(0.2)
    return found


def test_what_is_allocated_and_never_opened_is_unused_until_it_is_opened(gpus, cgroup):
    gpus.say(f"device minor={TUN}", f"device minor={LOOP}")
    opener = Program(["/usr/bin/python3", "-c", OPENER], cgroup)
    assert opener.answer() == "ready\n"
    try:
        with tenant(cgroup, "nvidia.com/gpu=1", unused_after="8s") as read:
            seen, _ = until(lambda: (now := read())[0]["reason"] and now, 30, "a verdict")
            assert (seen["state"], seen["open_devices"]) == ("starting", 0)
            seen, devices = until(lambda: (now := read())[0]["state"] == "unused" and now, 60, "unused")
            assert "never opened" in seen["reason"]
            assert seen["disagreement"] == ["nvidia.com/gpu is allocated and was never opened"]
            assert seen["gpu_seconds"]["idle"] == seen["gpu_seconds"]["allocated"] > 0
            assert devices[f"nvidia{TUN}"]["state"] == "free"

            assert opener.ask(gpus.node(TUN)) == "open\n"
            seen, _ = until(lambda: (now := read())[0]["open_devices"] == 1 and now, 60, "the open device")
            assert (seen["state"], seen["disagreement"], seen["allocations"][0]["unopened"]) == ("starting", [], 0)

            assert opener.ask(gpus.node(LOOP)) == "open\n"
            seen, devices = until(lambda: (now := read())[0]["open_devices"] == 2 and now, 60, "the second device")
            assert seen["disagreement"] == [f"nvidia{LOOP} is open and not allocated"]
            assert devices[f"nvidia{LOOP}"]["disagreement"] == ["open in pod, to which it is not allocated"]
    finally:
        opener.close()


@pytest.mark.parametrize("allocation", [f"gpu.nvidia.com/n/gpu-1#GPU-00000000-0000-0000-0000-{LOOP:012}",
                                        "gpu.nvidia.com/n/gpu-1@0000:0b:00.0"])
def test_a_device_that_is_known_is_not_taken_for_another_that_is_open(gpus, cgroup, allocation):
    gpus.say(f"device minor={TUN} bus=10", f"device minor={LOOP} bus=11")
    opener = Program(["/usr/bin/python3", "-c", OPENER], cgroup)
    assert opener.answer() == "ready\n"
    try:
        with tenant(cgroup, allocation, unused_after="1s") as read:
            seen, devices = until(lambda: (now := read())[0]["state"] == "unused" and now[1] and now, 60, "unused")
            assert seen["allocations"][0]["device"] == f"nvidia{LOOP}"
            assert (devices[f"nvidia{LOOP}"]["state"], devices[f"nvidia{LOOP}"]["allocated_to"]) == ("unused", ["pod"])

            assert opener.ask(gpus.node(TUN)) == "open\n"
            seen, devices = until(lambda: (now := read())[0]["open_devices"] == 1 and now, 60, "the open device")
            assert seen["disagreement"] == [f"nvidia{LOOP} (gpu.nvidia.com/n/gpu-1) is allocated and was never opened",
                                            f"nvidia{TUN} is open and not allocated"]
            assert devices[f"nvidia{LOOP}"]["disagreement"] == ["allocated to pod, which has never opened it"]
    finally:
        opener.close()


def test_a_device_at_full_load_without_work_and_at_little_power_is_stuck(node, gpus, cgroup):
    name = cgroup.path.name

    workload = Program(["/usr/bin/python3", WORKLOAD, "0", gpus.node(FUSE), gpus.library], cgroup)

    def say(power):  # the process's share counts, should others have that device open
        gpus.say(f"device minor={FUSE} percent=100 power={power}", f"process 0 {workload.process.pid} 100")
    try:
        assert workload.answer() == "ready\n"
        say(400000)
        control = Watcher(node, cgroup.path, "--stuck-after", "10s").start().control

        def seen():
            return next((found for found in control.get("/v1/gpus")["workloads"] if found["name"] == name), {})
        control.until(lambda: (seen().get("calls") or {}).get("coverage") == "full", 60, "probes")

        # What it draws when it works is known after a minute of readings of which each saw new work.
        readings = set()

        def work_until_known():
            assert workload.ask("1") == "done\n"
            now = seen()
            if now["sources"] == ["calls", "vendor"]:
                readings.add(now["calls"]["submissions"])
            return now["state"] == "active" and len(readings) >= 15
        control.until(work_until_known, 240, "a minute of readings")

        say(150000)
        control.until(lambda: seen()["state"] == "stuck", 90, "stuck")
        assert "100% busy without a submission for" in seen()["reason"]
        assert "at 37% of the power that it draws when it works" in seen()["reason"]
        assert control.metrics()["lull_gpu_state", frozenset({("workload", name), ("state", "stuck")})] == 1

        assert workload.ask("1") == "done\n"
        control.until(lambda: seen()["state"] == "active", 60, "work again")
    finally:
        workload.close()
