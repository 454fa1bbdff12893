# SPDX-License-Identifier: Apache-2.0
"""Nothing stays behind, however far it came. On a second cluster beside the one of the other tests."""
import os
import signal
import subprocess
import sys

import pytest

from lullcluster import build, cgroups, control, down, layout, objects
from lullcluster import cluster as clusters

PROGRAM = build.MODULES.parent / "cluster"


@pytest.fixture(name="second")
def fixture_second(monkeypatch):
    monkeypatch.setenv("LULL_CLUSTER", "second")
    where = layout.Layout()
    down.down(where)
    yield where
    down.down(where)


def bring_up(until=None):
    """Runs "cluster up", and kills it once it has said a word."""
    with subprocess.Popen([sys.executable, PROGRAM, "up"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if until and until in line:
                process.send_signal(signal.SIGKILL)
                return
        assert process.wait() == 0


def servers_of(where):
    """Processes that name this cluster's directory or namespaces, wherever they are."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as words:
                said = words.read()
        except OSError:
            continue
        if str(where.directory).encode() in said or b"/run/netns/second-" in said:
            found.append(said)
    return found


# Where the servers put things by default: each must have been told another place, or have a /var and /run of its own.
USUAL_PLACES = ("/etc/cni", "/etc/kubernetes", "/opt/cni", "/run/containerd", "/run/kubernetes", "/run/nri", "/usr/libexec/kubernetes",
                "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods")


def usual_places():
    return [place for place in USUAL_PLACES if os.path.exists(place)]


@pytest.mark.parametrize("step", ["supervisor", "etcd, containerd", "API server", "kubelet, kube-proxy"])
def test_down_removes_what_a_killed_up_left(second, step):
    bring_up(until=step)
    assert down.leftovers(second) != []

    down.down(second)

    assert down.leftovers(second) == []
    assert servers_of(second) == []


def test_down_removes_a_whole_cluster_with_pods_whose_supervisor_was_killed(second):
    before = usual_places()
    bring_up()
    cluster = clusters.Cluster(second)
    namespace = cluster.make_namespace()
    objects.create(cluster.api, namespace, objects.deployment("web", 4))
    cluster.ready_pods(namespace, 4)
    supervisors = [pid for pid in cgroups.processes(f"{second.cgroup}/system")
                   if b"lullcluster.supervisor" in open(f"/proc/{pid}/cmdline", "rb").read()]
    assert len(supervisors) == 1
    os.kill(supervisors[0], signal.SIGKILL)

    down.down(second)

    assert down.leftovers(second) == []
    assert servers_of(second) == []
    assert usual_places() == before


def test_up_after_a_crash_starts_anew(second):
    bring_up(until="API server")
    os.kill(next(pid for pid in cgroups.processes(f"{second.cgroup}/system")
                 if b"lullcluster.supervisor" in open(f"/proc/{pid}/cmdline", "rb").read()), signal.SIGKILL)

    bring_up()

    assert all(state["pid"] for state in control.Control(second).status().values())


def test_up_of_a_cluster_that_is_up_changes_nothing(second):
    bring_up()
    before = control.Control(second).status()

    bring_up()

    assert control.Control(second).status() == before
