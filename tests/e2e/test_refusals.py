# SPDX-License-Identifier: Apache-2.0
"""Workloads that cannot start: clients are refused when holdTimeout is over, not left to hang, and the policy says why."""
import pytest

HOLD = 4  # seconds


def no_image(deployment):
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "lull.test/nothing:1"


def no_node(deployment):
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"lull.test/there-is": "none"}


def crashes(deployment):
    deployment["spec"]["template"]["spec"]["containers"][0]["command"] = ["/bin/nothing"]


def never_ready(deployment):
    deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 9999


REASONS = {"no image": (no_image, "lull.test/nothing:1"), "no node": (no_node, "node"), "crash": (crashes, "/bin/nothing"),
           "never ready": (never_ready, "eady")}


def refused_at_the_hold_timeout(workload, place, said=""):
    """That it failed is told at once, why a moment later: its pods are looked at first."""
    met = place.dial(workload.address)

    assert met.error == "ECONNREFUSED"
    workload.until_condition("WakeFailed", said, timeout=20)


@pytest.mark.parametrize("what", REASONS)
def test_a_client_is_refused_at_the_hold_timeout_and_the_condition_says_why(sleeping, places, what):
    change, said = REASONS[what]
    workload = sleeping(change=change, wake={"holdTimeout": f"{HOLD}s"})

    refused_at_the_hold_timeout(workload, places.pod("n2"), said)


def test_a_quota_that_forbids_its_pods_is_named(cluster, sleeping, places, namespace):
    cluster.api.post(f"/api/v1/namespaces/{namespace}/resourcequotas", {
        "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    cluster.api.until(f"/api/v1/namespaces/{namespace}/resourcequotas",
                      lambda found: found[f"{namespace}/none"].get("status", {}).get("hard"))
    workload = sleeping(wake={"holdTimeout": f"{HOLD}s"})

    refused_at_the_hold_timeout(workload, places.pod("n1"), "quota")


def test_once_it_can_start_it_wakes_after_all(cluster, sleeping, places):
    workload = sleeping(change=no_node, wake={"holdTimeout": f"{HOLD}s"})
    refused_at_the_hold_timeout(workload, places.pod("n2"))

    cluster.api.patch(f"/apis/apps/v1/namespaces/{workload.namespace}/deployments/web",
                      [{"op": "remove", "path": "/spec/template/spec/nodeSelector"}], "json")

    workload.until_phase("Awake")
    assert places.pod("n2").dial(workload.address).error == ""
