# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import clients                               # noqa: E402  pylint: disable=wrong-import-position
from lullcluster import cluster as clusters  # noqa: E402  pylint: disable=wrong-import-position
from lullcluster import down, up             # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(scope="session", name="running")
def fixture_running():
    """The cluster that is up, or one for this session only."""
    there = clusters.running()
    up.up(mode="nftables")
    yield clusters.Cluster()
    if not there:
        down.down()


@pytest.fixture(name="cluster")
def fixture_cluster(running):
    """The cluster, with every fault mended and every server running again after the test."""
    yield running
    running.faults.mend()
    for name, state in running.control.status().items():
        if not state["wanted"]:
            running.start(name)


@pytest.fixture(name="namespace")
def fixture_namespace(cluster):
    """A namespace for one test: its name."""
    name = cluster.make_namespace()
    yield name
    cluster.remove_namespace(name)


@pytest.fixture(name="reflectors")
def fixture_reflectors(cluster):
    """Starts reflectors (see clients.py), and ends them in good order: a sanitizer's findings fail the test."""
    started = []

    def start(namespace, count=1, **settings):
        started.append(clients.Reflectors(cluster, namespace, count, **settings))
        return started[-1]
    yield start
    assert [one.end() for one in started] == [0] * len(started)


@pytest.fixture(name="watch")
def fixture_watch(cluster, namespace):
    """Starts watchers of the namespace's ConfigMaps (see clients.py), and ends them in good order."""
    started = []

    def start(kubeconfig=None):
        started.append(clients.watch(cluster, namespace, kubeconfig))
        return started[-1]
    yield start
    try:
        assert [one.close() for one in started] == [0] * len(started)
    finally:
        for one in started:
            one.kill()
