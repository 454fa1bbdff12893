# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "cluster"))

import lull as deployed                      # noqa: E402  pylint: disable=wrong-import-position
import places as clients                     # noqa: E402  pylint: disable=wrong-import-position
import workloads                             # noqa: E402  pylint: disable=wrong-import-position
from lullcluster import cluster as clusters  # noqa: E402  pylint: disable=wrong-import-position
from lullcluster import down, image, up      # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(scope="session", name="running")
def fixture_running():
    """The cluster that is up, or one for this session only."""
    there = clusters.running()
    up.up(mode="nftables")
    yield clusters.Cluster()
    if not there:
        down.down()


@pytest.fixture(scope="session", name="installed")
def fixture_installed(running):
    """lull, from its manifests and of this build; gone after the session, unless it was there."""
    lull = deployed.Lull(running)
    there = lull.is_there()
    deployed.import_image(running)
    lull.apply()
    if there:
        lull.restart()
    yield lull
    if not there:
        lull.remove()


@pytest.fixture(name="cluster")
def fixture_cluster(running):
    """The cluster, with every fault mended and every server running again after the test."""
    yield running
    running.faults.mend()
    for name, state in running.control.status().items():
        if not state["wanted"]:
            running.start(name)


@pytest.fixture(name="lull")
def fixture_lull(cluster, installed):  # pylint: disable=unused-argument
    """lull with all its pods Ready, whatever the test before did to them."""
    installed.ready()
    return installed


@pytest.fixture(name="namespace")
def fixture_namespace(cluster):
    """A namespace for one test: its name."""
    name = cluster.make_namespace()
    yield name
    cluster.remove_namespace(name)


@pytest.fixture(name="sleeping")
def fixture_sleeping(lull, namespace):
    """Makes workloads that sleep: sleeping(name, …), see workloads.Maker. Policies go first, while their targets are there."""
    maker = workloads.Maker(lull, namespace)
    yield maker
    maker.remove()


@pytest.fixture(scope="session", name="pods_of_clients")
def fixture_pods_of_clients(running):
    namespace = running.make_namespace()
    yield clients.start_pods(running, namespace)
    running.remove_namespace(namespace)


@pytest.fixture(name="places")
def fixture_places(cluster, pods_of_clients):
    """Where clients are: see places.Places."""
    return clients.Places(cluster, pods_of_clients)


@pytest.fixture(scope="session", name="relay_image")
def fixture_relay_image(running, tmp_path_factory):
    """The image of images/relay.c, on every node: its name."""
    directory = tmp_path_factory.mktemp("relay")
    image.compile_static(HERE / "images/relay.c", directory / "bin/relay")
    running.import_image(directory, "lull.test/relay:1", ["/bin/relay"])
    return "lull.test/relay:1"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows what lull's pods logged and what the statuses of policies and nodes are."""
    outcome = yield
    report = outcome.get_result()
    lull = item.funcargs.get("lull") or item.funcargs.get("installed")
    if report.failed and lull:
        for title, text in lull.story():
            report.sections.append((title, text))
