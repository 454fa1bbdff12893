# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

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
