# SPDX-License-Identifier: Apache-2.0
"""The main job: a client connects to a Service at zero replicas, wherever the client is."""
import pytest

from lullcluster import api

FROM = {
    # name: (where the client is, how it addresses the workload, whose pods run on n1)
    "pod on the same node": (lambda places: places.pod("n1"), "address"),
    "pod on another node": (lambda places: places.pod("n2"), "address"),
    "pod by IPv6": (lambda places: places.pod("n2"), "address6"),
    "process of the same node": (lambda places: places.node("n1"), "address"),
    "process of another node": (lambda places: places.node("n2"), "address"),
    "process of another node by IPv6": (lambda places: places.node("n2"), "address6"),
    "container": (lambda places: places.in_container("n2"), "address"),
    "hostNetwork container": (lambda places: places.in_container("n2", "host"), "address"),
    "outside by the same node's port": (lambda places: places.outside, "n1"),
    "outside by another node's port": (lambda places: places.outside, "n2"),
}


def target(cluster, workload, how):
    if how in cluster.nodes:
        return cluster.where.node(how).addresses[0], workload.node_port
    return getattr(workload, how), 80


@pytest.mark.parametrize("where", FROM)
def test_the_first_connection_wakes_the_workload_and_is_answered(cluster, sleeping, places, where):
    place, how = FROM[where]
    workload = sleeping(node_port=True, node="n1")

    met = place(places).dial(*target(cluster, workload, how))

    assert met.error == ""
    assert met.text.startswith("web-")
    status = workload.until_phase("Awake")["status"]
    assert status["lastWake"]["cause"] == "Packet"
    assert workload.replicas() == 1
    print(f"{where}: connected after {met.connected:.3f} s")


def test_the_status_and_an_event_name_who_woke_it(cluster, sleeping, places):
    workload = sleeping(node="n1")
    client = places.pod("n2")
    address = places.pods["n2", "pod"]["status"]["podIP"]

    assert client.dial(workload.address).error == ""

    wake = workload.until_phase("Awake")["status"]["lastWake"]
    assert wake["source"].startswith(f"{address}:") and wake["node"] == "n2"
    cluster.api.until(f"/apis/events.k8s.io/v1/namespaces/{workload.namespace}/events",
                      lambda events: any(address in event.get("note", "") for event in events.values()))


def test_after_an_idle_time_it_sleeps_again_and_wakes_again(sleeping, places):
    workload = sleeping(idle={"after": "2s", "minAwake": "0s"}, wake={"replicas": 2})
    for _ in range(2):
        assert places.pod("n2").dial(workload.address).error == ""
        workload.until_phase("Awake")
        assert workload.replicas() == 2

        asleep = workload.until_asleep()

        assert workload.replicas() == 0
        assert asleep["status"]["replicasBefore"] == 2


def test_someone_elses_scale_is_the_truth(cluster, sleeping, places):
    workload = sleeping()
    scale = f"/apis/apps/v1/namespaces/{workload.namespace}/deployments/web/scale"

    cluster.api.patch(scale, {"spec": {"replicas": 2}})
    workload.until_phase("Awake")
    cluster.api.patch(scale, {"spec": {"replicas": 0}})
    workload.until_asleep()

    assert places.pod("n1").dial(workload.address).error == ""
    workload.until_phase("Awake")
    assert workload.replicas() == 2


def test_a_rollout_during_sleep_is_what_wakes(cluster, sleeping, places):
    workload = sleeping()
    deployment = f"/apis/apps/v1/namespaces/{workload.namespace}/deployments/web"
    template = {"metadata": {"labels": {"version": "two"}}}
    cluster.api.patch(deployment, {"spec": {"template": template}})

    met = places.pod("n1").dial(workload.address)

    assert met.error == ""
    [pod] = workload.pods()
    assert pod["metadata"]["labels"]["version"] == "two"
    assert met.text.startswith(pod["metadata"]["name"])


def test_a_chain_of_two_sleeping_services_answers_its_first_request(cluster, sleeping, places, relay_image):
    second = sleeping("second")

    def relays(deployment):
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container.update(image=relay_image, args=["8080", second.address, "80"])
    first = sleeping("first", ready_path=None, change=relays)

    met = places.pod("n2").dial(first.address)

    assert met.error == ""
    assert met.text.startswith("second-")


def test_a_manual_wake_and_a_manual_sleep(cluster, sleeping):
    workload = sleeping()
    policy = f"/apis/lull.dev/v1alpha1/namespaces/{workload.namespace}/scaletozeros/web"

    cluster.api.patch(policy, {"metadata": {"annotations": {"lull.dev/wake": "please"}}})
    assert workload.until_phase("Awake")["status"]["lastWake"]["cause"] == "Manual"
    cluster.api.patch(policy, {"metadata": {"annotations": {"lull.dev/sleep": "please"}}})
    workload.until_phase("Asleep")


def test_deleting_the_policy_of_a_sleeping_workload_wakes_it(cluster, sleeping):
    workload = sleeping()

    cluster.api.delete(f"/apis/lull.dev/v1alpha1/namespaces/{workload.namespace}/scaletozeros/web")

    workload.pods()
    assert workload.replicas() == 1
    cluster.api.until(f"/apis/lull.dev/v1alpha1/namespaces/{workload.namespace}/scaletozeros", lambda found: not found)


def test_kubectl_shows_phase_and_why(cluster, sleeping):
    workload = sleeping()

    shown = cluster.kubectl("--namespace", workload.namespace, "get", "stz").splitlines()

    assert "PHASE" in shown[0]
    assert "Asleep" in shown[1]


def test_a_workload_without_a_readiness_probe_wakes_too(sleeping, places):
    workload = sleeping(ready_path=None)

    met = places.pod("n2").dial(workload.address)

    assert met.error == ""
    assert api.condition(workload.pods()[0], "Ready") == "True"
