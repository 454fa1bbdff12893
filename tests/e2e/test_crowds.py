# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, many services at once: nobody is refused."""
import threading

from lullcluster import api

import places as clients

EVERY = 0.005  # seconds between new connections
AFTER_READY = 2


def test_fifty_clients_at_once_are_all_answered(sleeping, places):
    workload = sleeping()

    met = [dialler.finish() for dialler in [clients.dialling(places.pod(node), workload.address, count=25) for node in ("n1", "n2")]]

    assert [clients.errors(each) for each in met] == [[], []]
    assert max(one.answered for each in met for one in each) < 20


def when_ready(workload):
    """Calls a thread to its end when the workload's endpoint has become ready."""
    def satisfied(slices):
        return any(endpoint["conditions"].get("ready") for item in slices.values()
                   if item["metadata"]["labels"].get("endpointslice.kubernetes.io/managed-by") == "endpointslice-controller.k8s.io"
                   for endpoint in item.get("endpoints") or ())
    workload.lull.api.until(f"/apis/discovery.k8s.io/v1/namespaces/{workload.namespace}/endpointslices", satisfied)


def test_none_that_comes_until_two_seconds_after_ready_is_refused(sleeping, places):
    workload = sleeping(node_port=True)
    address = workload.lull.cluster.where.node("n2").addresses[0]
    streams = [clients.dialling(places.pod(node), workload.address, count=None, every=2 * EVERY) for node in ("n1", "n2")]
    streams += [clients.dialling(places.node("n2"), workload.address, count=None, every=10 * EVERY),
                clients.dialling(places.outside, address, workload.node_port, count=None, every=10 * EVERY)]

    when_ready(workload)
    threading.Event().wait(AFTER_READY)
    met = [stream.halt() for stream in streams]

    assert [clients.errors(each) for each in met] == [[]] * len(met)
    assert all(len(each) > 20 for each in met)


def test_twenty_services_woken_together_are_all_answered(sleeping, places):
    workloads = [sleeping.begin(f"web-{number}", ready_path=None) for number in range(20)]
    for workload in workloads:
        workload.until_asleep()

    streams = [clients.dialling(places.pod(("n1", "n2")[number % 2]), workload.address) for number, workload in enumerate(workloads)]
    met = [one for stream in streams for one in stream.finish()]

    assert clients.errors(met) == []
    for number, one in enumerate(met):
        assert one.text.startswith(f"web-{number}-")


def test_two_services_of_one_workload_both_wake_it(cluster, sleeping, places):
    workload = sleeping()
    service = cluster.api.post(f"/api/v1/namespaces/{workload.namespace}/services", {
        "metadata": {"name": "also"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 81, "targetPort": 8080}]}})
    workload.lull.until_policy(workload.namespace, lambda policy: any(
        frontend["backend"].startswith("also/") for frontend in policy["status"]["frontends"]))

    assert places.pod("n2").dial(service["spec"]["clusterIP"], 81).error == ""
    assert api.condition(workload.pods()[0], "Ready") == "True"
