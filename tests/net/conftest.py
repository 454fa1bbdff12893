# SPDX-License-Identifier: Apache-2.0
"""Each test gets a machine of its own. BUILD says which build is tested, as it does for make."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from machine import Node  # noqa: E402  pylint: disable=wrong-import-position
from machine.namespace import mount_bpffs, private_mounts, unmount  # noqa: E402  pylint: disable=wrong-import-position
from translated import Cluster, Hold  # noqa: E402  pylint: disable=wrong-import-position

CLIENTS = ["loopback", "own", "routed", "bridged"]


def pytest_configure(config):
    private_mounts()


@pytest.fixture
def node(request, tmp_path):
    machine = Node(tmp_path / "m")
    request.node.machine = machine
    yield machine
    if complaints := machine.close():
        pytest.fail("; ".join(complaints) + "\n" + logs(machine), pytrace=False)


@pytest.fixture(params=[f"{kind}-ipv{family}" for kind in CLIENTS for family in (4, 6)])
def place(request):
    """Where a client is, and the family it speaks: ("routed", 6)."""
    kind, family = request.param.split("-ipv")
    return kind, int(family)


@pytest.fixture
def cluster():
    made = Cluster()
    yield made
    made.close()


@pytest.fixture
def hold(cluster, tmp_path):
    """Starts hold on the cluster's node: hold("wait")."""
    started = []
    mount_bpffs(tmp_path / "bpf")

    def start(*options):
        started.append(Hold(cluster, tmp_path / "bpf", *options))
        return started[-1]

    yield start
    for process in started:
        process.close()
    unmount(tmp_path / "bpf")


def logs(machine):
    return "\n".join(f"--- {daemon.log_path.name}\n{daemon.log()}" for daemon in machine.daemons)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    machine = getattr(item, "machine", None)
    if report.when == "call" and report.failed and machine:
        report.sections.append(("lulld", logs(machine)))
