# SPDX-License-Identifier: Apache-2.0
"""Agents, controllers and the API server die, hang and are replaced while clients are held: they are served all the same."""
import os
import signal

import pytest

import lull as deployed
import places as clients

SLOW = 2500  # milliseconds until the server listens


@pytest.fixture(name="slow")
def fixture_slow(sleeping):
    return sleeping(arguments=[8080, SLOW], wake={"holdTimeout": "2m"})


def held(workload, place):
    """A client whose first packet is held: its demand has been heard of."""
    dialler = clients.dialling(place, workload.address, timeout=150)
    workload.until_phase("Waking", "Awake")
    return dialler


def test_an_agent_that_is_killed_while_it_holds_costs_nobody_the_answer(lull, slow, places):
    dialler = held(slow, places.pod("n2"))

    lull.kill(lull.agent("n2"))

    assert clients.errors(dialler.finish()) == []


def test_rolling_the_agents_while_they_hold_refuses_nobody(lull, slow, places):
    stream = clients.dialling(places.pod("n2"), slow.address, count=None, every=0.05, timeout=150)
    slow.until_phase("Waking")

    lull.api.patch(f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/daemonsets/lull-agent",
                   {"spec": {"template": {"metadata": {"annotations": {"lull.test/rolled": slow.namespace}}}}})
    lull.api.until(f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/daemonsets", lambda found: all(
        item["status"].get("updatedNumberScheduled") == item["status"]["numberReady"] == 2
        and item["status"]["observedGeneration"] == item["metadata"]["generation"] for item in found.values()))
    slow.until_phase("Awake")

    assert clients.errors(stream.halt()) == []


def test_the_api_server_away_for_a_minute_is_waited_for(cluster, sleeping, places):
    workload = sleeping(wake={"holdTimeout": "6m"})
    cluster.stop("kube-apiserver", signal.SIGKILL)
    dialler = clients.dialling(places.pod("n2"), workload.address, timeout=300)
    dialler.join(60)
    assert dialler.is_alive() and clients.errors(dialler.done) == []

    cluster.start("kube-apiserver")

    assert clients.errors(dialler.finish()) == []
    workload.until_phase("Awake")


def test_an_agent_that_does_not_acknowledge_blocks_the_sleep_and_is_named(lull, sleeping):
    workload = sleeping.awake(node="n1", idle={"minAwake": "0s"})
    pid = lull.cluster.container_pid(lull.agent("n2"))
    os.kill(pid, signal.SIGSTOP)
    try:
        workload.change({"idle": {"after": "1s"}})
        condition = workload.until_condition("SleepBlocked")
    finally:
        os.kill(pid, signal.SIGCONT)

    assert "n2" in condition["message"]
    assert workload.replicas() == 1


def test_an_endpoint_that_dies_before_the_release_is_replaced(lull, sleeping, places):
    """It is Ready at once, for it declares no probe, and refuses until it listens, which the first never does."""
    workload = sleeping(arguments=[8080, 2 * SLOW], ready_path=None)
    dialler = held(workload, places.pod("n2"))
    [pod] = workload.pods()
    os.kill(lull.cluster.container_pid(pod), signal.SIGSTOP)
    workload.until_phase("Awake")

    lull.api.delete(f"/api/v1/namespaces/{workload.namespace}/pods/{pod['metadata']['name']}", gracePeriodSeconds=0)
    [met] = dialler.finish()

    assert met.error == ""
    assert not met.text.startswith(pod["metadata"]["name"])


def test_a_leader_that_dies_between_the_two_writes_of_a_wake_leaves_it_to_the_other(lull, cluster, sleeping, places):
    workload = sleeping()
    leader = lull.leader()
    addresses = [pod["status"]["podIP"] for pod in lull.controllers()]
    cluster.faults.answer(503, match=f"PATCH .*/namespaces/{workload.namespace}/deployments/web/scale")
    cluster.faults.divert(*addresses)
    dialler = clients.dialling(places.pod("n1"), workload.address)
    workload.until_phase("Waking")
    assert workload.replicas() == 0

    lull.kill(leader)
    cluster.faults.mend()

    assert clients.errors(dialler.finish()) == []
    workload.until_phase("Awake")


def test_a_leader_that_is_killed_is_followed_by_another_that_puts_to_sleep(lull, sleeping):
    workload = sleeping.awake(idle={"minAwake": "0s"})
    lull.kill(lull.leader())
    workload.change({"idle": {"after": "1s"}})

    workload.until_phase("Asleep")


def test_without_any_controller_a_client_is_held_until_there_is_one(lull, sleeping, places):
    workload = sleeping(wake={"holdTimeout": "2m"})
    scale = f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/deployments/lull-controller/scale"
    lull.api.patch(scale, {"spec": {"replicas": 0}})
    try:
        lull.cluster.until_pods(deployed.NAMESPACE, lambda pods: not pods, deployed.CONTROLLER)
        dialler = clients.dialling(places.pod("n2"), workload.address, timeout=150)
        lull.api.until(deployed.NODE_ACTIVITIES, lambda found: any(
            demand["policy"] == f"{workload.namespace}/web" for item in found.values()
            for demand in item.get("status", {}).get("demands") or ()))
    finally:
        lull.api.patch(scale, {"spec": {"replicas": 2}})

    assert clients.errors(dialler.finish()) == []


def test_nothing_is_put_to_sleep_on_what_was_known_before_an_outage(cluster, sleeping, places):
    workload = sleeping.awake(idle={"after": "4s", "minAwake": "0s"})
    cluster.stop("kube-apiserver", signal.SIGKILL)  # else it serves for up to 20 s more, and the pod is idle after 4
    stream = clients.dialling(places.pod("n2"), workload.address, count=None, every=0.2)
    stream.join(8)

    cluster.start("kube-apiserver")
    stream.join(3)

    assert workload.status()["phase"] == "Awake"
    assert not workload.has_slept()
    assert clients.errors(stream.halt()) == []


def test_while_a_node_is_drained_the_other_serves(lull, cluster, sleeping, places):
    workload = sleeping()
    try:
        cluster.kubectl("drain", "n1", "--delete-emptydir-data", f"--pod-selector={deployed.CONTROLLER}", timeout=90)

        met = places.node("n2").dial(workload.address)

        assert met.error == ""
        assert workload.pods()[0]["spec"]["nodeName"] == "n2"
    finally:
        cluster.kubectl("uncordon", "n1")
