# SPDX-License-Identifier: Apache-2.0
"""The controller against a real API server; in the agents' place the test says what nodes see."""
import controllers
import pytest


@pytest.fixture(scope="module", name="crds")
def fixture_crds(running):
    controllers.apply_crds(running)


@pytest.fixture(name="start")
def fixture_start(cluster, namespace, crds, tmp_path):
    """Starts a replica; all are ended in good order."""
    started = []

    def start():
        started.append(controllers.Controller(cluster, namespace, tmp_path))
        return started[-1]
    start.all = started
    yield start
    for one in started:
        print(f"--- {one.identity}\n{one.said()}")
    assert [one.end() for one in started] == [0] * len(started)


@pytest.fixture(name="agent")
def fixture_agent(cluster, namespace, crds):
    made = []

    def make(node="n1", **options):
        made.append(controllers.Agent(cluster, namespace, node, **options))
        return made[-1]
    yield make
    for one in made:
        one.remove()


@pytest.fixture(name="policy")
def fixture_policy(cluster, namespace, crds):
    """Makes policies; what is left of them may go without a controller."""
    made = []

    def make(name="web", **spec):
        made.append(controllers.Policy(cluster, namespace, name, **spec))
        return made[-1]
    yield make
    for one in made:
        controllers.release(one)


def test_idle_sleeps_and_a_packet_wakes(cluster, namespace, start, agent, policy):
    controllers.workload(cluster, namespace, replicas=2)
    node, web = agent(), policy()
    start()

    awake = web.until_phase("Awake")
    assert awake["epoch"] == 0
    asleep = controllers.put_to_sleep(web, node)
    assert web.replicas() == 0
    assert (asleep["epoch"], asleep["replicasBefore"], asleep["holding"]) == (1, 2, True)
    assert asleep["lastSleep"]["reason"] == "Idle"
    assert {front["origin"] for front in asleep["frontends"]} == {"ClusterIP"}

    node.demand(web, 1)
    waking = web.until_phase("Waking", "Awake")
    assert waking["lastWake"]["source"] == "10.77.1.9:40000"
    assert waking["lastWake"]["node"] == "n1"
    web.until_replicas(2)
    awake = web.until_phase("Awake")
    assert awake["holding"] is False
    assert awake["savedReplicaSeconds"] > 0
    assert "10.77.1.9" in web.until_event("Woken")
    assert {"Sleeping", "Asleep", "Woken"} <= set(web.events())
