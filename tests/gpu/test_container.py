# SPDX-License-Identifier: Apache-2.0
"""A workload in a real container, with its own mounts and process numbers, and its own copy of the driver's library."""
import os
import stat

import pytest

from conftest import FUSE, MISC, TUN
from container import LIBRARY, Container
from machine.daemon import build_directory
from watcher import Watcher


@pytest.fixture(name="container")
def fixture_container(gpus, tmp_path):
    made = Container(tmp_path / "container", build_directory() / "tests/gpu/client", gpus.library, gpus.node(TUN))
    yield made
    made.close()


def test_a_container_s_own_copies_of_the_library_are_probed_though_deleted_and_replaced(node, gpus, container):
    first = container.processes[0]
    assert first.say(f"open {LIBRARY}") == "opened"
    container.remove_library()

    control = Watcher(node, container.cgroup).start().control
    control.until(lambda: control.get("/v1/gpus")["sources"]["opens"].startswith("seen"), 30, "the driver")
    assert first.say(f"hold /dev/nvidia{TUN}") == "held"

    def workload():
        return next(iter(control.get("/v1/gpus")["workloads"]), None)

    def calls():
        return (workload() or {}).get("calls") or {"coverage": "", "submissions": 0}

    control.until(lambda: calls()["coverage"] == "full", 30, "probes on the deleted library")
    assert (workload()["name"], workload()["command"], calls()["libraries"]) == (container.name, "client", 1)
    assert first.say("call cuLaunchKernel 50") == "called"
    control.until(lambda: calls()["submissions"] == 50, 30, "the calls")
    control.until(lambda: workload()["state"] == "active", 30, "work")

    # A new copy under the old name, which a second process uses beside the first.
    container.put_library(gpus.library)
    second = container.run()
    assert second.say(f"open {LIBRARY}") == "opened"
    control.until(lambda: (calls()["libraries"], calls()["coverage"]) == (2, "full"), 30, "probes on the new library")
    assert second.say("call cuGraphLaunch 7") == "called"
    assert first.say("call cuLaunchKernel 3") == "called"
    control.until(lambda: calls()["submissions"] == 60, 30, "both processes' calls")


def test_a_device_that_the_runtime_refuses_stays_refused(node, gpus, container):
    os.mknod(container.files / "refused", stat.S_IFCHR | 0o666, os.makedev(MISC, FUSE))
    first = container.processes[0]
    control = Watcher(node, container.cgroup).start().control
    control.until(lambda: control.get("/v1/gpus")["sources"]["opens"].startswith("seen"), 30, "the driver")
    assert first.say("hold /refused") == "Operation not permitted"
    assert first.say(f"hold /dev/nvidia{TUN}") == "held"
