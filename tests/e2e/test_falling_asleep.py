# SPDX-License-Identifier: Apache-2.0
"""What keeps a workload awake, and what does not."""
import contextlib
import threading

from lullcluster import objects

import places as clients

SOON = {"after": "2s", "minAwake": "0s"}
LONG = 8  # seconds: several times idle.after


def test_a_long_answer_is_not_slept_through(sleeping, places):
    workload = sleeping.awake()
    asked = threading.Thread(target=lambda: said.append(
        places.pod("n2").get(workload.address, 80, f"/after/{LONG * 1000}", timeout=30)))
    said = []
    asked.start()
    workload.change({"idle": SOON})

    asked.join()
    assert said[0].startswith("web-")
    assert not workload.has_slept()
    workload.until_phase("Asleep")


def test_a_silent_connection_keeps_it_awake_only_if_the_policy_says_so(sleeping, places):
    holding = sleeping.awake("holding", idle={**SOON, "connections": "Hold"})
    ignoring = sleeping.awake("ignoring", idle={**SOON, "connections": "Ignore"})
    place = places.pod("n2")

    with contextlib.closing(place.connect(holding.address, 80)), contextlib.closing(place.connect(ignoring.address, 80)):
        ignoring.until_phase("Asleep")
        threading.Event().wait(LONG / 2)
        assert holding.status()["phase"] == "Awake"
    holding.until_phase("Asleep")


def test_the_kubelets_probes_neither_wake_nor_keep_awake(sleeping):
    def probes(deployment):
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["livenessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
        container["startupProbe"] = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1}
    workload = sleeping.awake(idle=SOON, change=probes)

    workload.until_phase("Asleep")
    threading.Event().wait(3)

    assert workload.status()["phase"] == "Asleep"


def test_scrapers_named_by_selectors_neither_wake_nor_keep_awake(cluster, sleeping, namespace, places):
    objects.create(cluster.api, namespace, objects.deployment("scraper", node="n2"))
    [pod] = cluster.ready_pods(namespace, 1)
    workload = sleeping.awake(idle=SOON, ignore=[{"podSelector": {"matchLabels": {"app": "scraper"}}}])
    stream = clients.dialling(cluster.in_pod(pod), workload.address, count=None, every=0.3)

    workload.until_phase("Asleep")
    threading.Event().wait(2)
    met = stream.halt()

    assert workload.status()["phase"] == "Asleep"
    assert met[-1].error == "ECONNREFUSED"
    assert places.pod("n2").dial(workload.address).error == ""


def test_while_it_works_it_stays_awake(sleeping, places):
    workload = sleeping.awake()
    stream = clients.dialling(places.pod("n1"), workload.address, count=None, every=0.5)
    workload.change({"idle": SOON})

    stream.join(LONG)
    assert workload.status()["phase"] == "Awake"
    assert not workload.has_slept()

    assert clients.errors(stream.halt()) == []
    workload.until_phase("Asleep")


def test_a_horizontal_autoscaler_forbids_sleep_and_the_condition_says_so(cluster, sleeping, namespace):
    cluster.api.post(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers", {
        "metadata": {"name": "web"}, "spec": {"minReplicas": 1, "maxReplicas": 3,
                                              "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    workload = sleeping.awake(idle=SOON)

    told = workload.lull.until_policy(namespace, lambda policy: any(
        "HorizontalPodAutoscaler" in condition["message"] for condition in policy["status"].get("conditions", ())))

    assert told["status"]["phase"] == "Awake"
